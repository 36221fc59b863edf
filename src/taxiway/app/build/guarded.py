"""Run one of our modules in the notebook's environment, under a guard that ends whatever it starts.

The module's process says what it has to say through a pipe of its own, a JSON object a line: `progress` (a line for a
person), `refused` with its `code`, or `done`. It and everything below it end when this process does.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import taxiway as package
from taxiway.app.build.interpreter import Interpreter
from taxiway.core.errors import Refused

# What a notebook's process may still take to end once everything is said, and its guard to end the rest.
_GRACE_S: Final = 5.0

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Task:
    """The Python module that does it, the notebook it is about, the folder it writes to, the Python it runs in."""

    module: str
    notebook: Path
    out: Path
    python: Interpreter
    more: Mapping[str, Any] = field(default_factory=dict)


def run(task: Task, progress: Progress, timeout_s: float) -> dict[str, Any]:
    """Do `task`; what its process said. Raises `Refused` when that refuses, dies or takes too long."""
    said: dict[str, Any] = {}
    with _guarded(task) as (events, stop):
        timer = threading.Timer(timeout_s, stop)
        timer.start()
        try:
            while "ended" not in said and (line := events.readline()):
                event = _event(line)
                said |= event
                if "progress" in event:
                    progress(event["progress"])
                elif "done" in event or "refused" in event:
                    timer.cancel()
                    timer = threading.Timer(_GRACE_S, stop)
                    timer.start()
        finally:
            expired = not timer.is_alive()
            timer.cancel()
    if "refused" in said:
        raise Refused(*said["refused"], code=said["code"])
    if said.get("done") is not True:
        raise _died(task.notebook, said, timeout_s if expired else None)
    return said


def _event(line: str) -> dict[str, Any]:
    """What was said; nothing when whoever said it was killed while speaking."""
    with contextlib.suppress(ValueError):
        event = json.loads(line)
        if isinstance(event, dict):
            return event
    return {}


@contextlib.contextmanager
def _guarded(task: Task) -> Iterator[tuple[Any, Callable[[], None]]]:
    """What the processes say, a JSON object a line, and how to end them; they end when this one does, too."""
    events_read, events_write = os.pipe()
    lifeline_read, lifeline_write = os.pipe()
    notebook, out = task.notebook.absolute(), task.out.absolute()
    spec: dict[str, Any] = {**task.more, "notebook": str(notebook), "out": str(out), "module": task.module}
    spec |= {"events": events_write, "lifeline": lifeline_read, "python": str(task.python.path)}
    with (
        os.fdopen(events_read, errors="replace") as events,
        os.fdopen(lifeline_write, "wb") as lifeline,
        _lent(task.python) as lent,
    ):
        try:
            guard = subprocess.Popen(
                # -P: a file next to the notebook that is called like a library of ours is not taken for it.
                [sys.executable, "-P", "-m", "taxiway.app.build.guard", json.dumps(spec | {"lent": lent})],
                cwd=notebook.parent if notebook.parent.is_dir() else out,
                env={**os.environ, "MPLBACKEND": "Agg", "PYTHONHASHSEED": "0"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=(events_write, lifeline_read),
                start_new_session=True,
            )
        finally:
            os.close(events_write)
            os.close(lifeline_read)
        try:
            yield events, lifeline.close
        finally:
            lifeline.close()
            try:
                guard.wait(_GRACE_S)
            except subprocess.TimeoutExpired:
                guard.kill()
                guard.wait()


@contextlib.contextmanager
def _lent(python: Interpreter) -> Iterator[str | None]:
    """A folder that another Python finds this package in, and nothing else of our environment."""
    if python.own:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="taxiway-lent-") as folder:
        (Path(folder) / "taxiway").symlink_to(Path(package.__file__).parent)
        yield folder


def _died(notebook: Path, said: Mapping[str, Any], timeout_s: float | None) -> Refused:
    if timeout_s is not None:
        return Refused(f"{notebook.name} was still running after {timeout_s:g} s and was stopped", code="timeout")
    code = said.get("ended")
    how = "was killed" if code is None else f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
    words = said.get("last_words") or ["(it said nothing)"]
    return Refused(f"{notebook.name}: the process that ran it {how}; its last words:", *words, code="build-died")
