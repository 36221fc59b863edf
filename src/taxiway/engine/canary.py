"""A golden sample asked again and again: the server's own health answers say nothing about its stub."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from taxiway.core.errors import Refused
from taxiway.core.sample import Golden
from taxiway.engine import client
from taxiway.engine.client import EngineError
from taxiway.engine.spec import EngineSpec

_PATIENCE: Final = 2  # failures in a row


def load(path: Path) -> Golden:
    """The golden sample in `path`; raises `Refused`."""
    try:
        return Golden.from_json(json.loads(path.read_text()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise Refused(f"{path} is not a golden sample: {error}") from None


def ask(spec: EngineSpec, golden: Golden, address: str) -> str | None:
    """What is wrong with the server's answer to `golden`; None when it is right.

    No answer in time from a server that is getting through other work is load, and nothing wrong.
    """
    before = client.executions(address, spec.model)
    try:
        answer = client.infer(address, spec.model, golden.inputs, version=spec.number, timeout_s=spec.canary_timeout_s)
    except EngineError as error:
        busy = error.status == 0 and before is not None and (client.executions(address, spec.model) or 0) > before
        return None if busy else f"golden sample {golden.name!r} was not answered: {error.message}"
    return next(iter(golden.differences(answer)), None)


class Canary:
    """Asks in a thread of its own; `verdict` is set, and `wake` called, after two failures in a row."""

    def __init__(self, spec: EngineSpec, golden: Golden, address: str, wake: Callable[[], None]) -> None:
        self.verdict: str | None = None
        self._spec, self._golden, self._address = spec, golden, address
        self._wake = wake
        self._closed = threading.Event()
        threading.Thread(target=self._run, name="canary", daemon=True).start()

    def _run(self) -> None:
        failures = 0
        while failures < _PATIENCE:
            if self._closed.wait(self._spec.canary_every_s):
                return
            reason = ask(self._spec, self._golden, self._address)
            failures = failures + 1 if reason else 0
            if failures == _PATIENCE and not self._closed.is_set():
                self.verdict = reason
                self._wake()

    def close(self) -> None:
        """Ask no more; an answer still awaited is ignored."""
        self._closed.set()
