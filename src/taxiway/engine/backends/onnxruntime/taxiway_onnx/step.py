"""A revision's Python step as the stub sees it: a process of its own that makes the model's tensors of a request's."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from . import frames
from .rules import BadRequest

FOLDER = "step"
PARAMETER = "taxiway_step"
# What Python itself and its libraries raise for values that they do not accept.
_CALLERS = frozenset({"ValueError"})
_MAIN = "import sys; sys.path.append(sys.argv[1]); from taxiway_onnx.worker import main; sys.exit(main(sys.argv[-2:]))"


class StepError(RuntimeError):
    """The step cannot be loaded, has ended, or failed for a reason that is not the caller's."""


class Step:
    """Starts the worker in `folder` with `python`; raises StepError with the reason when it does not come up.

    `gives` lists the tensors of its answers. `run` marks the process as one of the server's.
    """

    def __init__(self, python: str, folder: Path, run: str = "") -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            code = [python, "-I", "-c", _MAIN, str(Path(__file__).parent.parent)]
            self.process = subprocess.Popen(
                [*code, f"--run={run}step", str(folder), str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                # The server's own libraries are older than the notebook's.
                env={name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"},
            )
        self._link = Connection(ours.detach())
        try:
            _, hello = self._heard()
        except BaseException:
            self.close()
            raise
        if "error" in hello:
            self.close()
            raise StepError(f"the Python step cannot be loaded: {hello['error']}")
        self.gives: Sequence[dict[str, Any]] = hello["gives"]

    def __call__(self, tensors: frames.Tensors) -> frames.Tensors:
        """Raises BadRequest when the step does not accept the values, else StepError."""
        try:
            frames.send(self._link, tensors)
        except OSError as error:
            raise self._ended() from error
        answer, note = self._heard()
        if note.get("kind") in _CALLERS:
            raise BadRequest(f"the model's Python step does not accept these values: {note['error']}")
        if "error" in note:
            raise StepError(f"the model's Python step failed: {note['error']}")
        return answer

    def modules(self) -> list[str]:
        """The top-level modules that the step has loaded so far."""
        frames.send(self._link, {}, ask="modules")
        found: list[str] = self._heard()[1]["modules"]
        return found

    def inputs(self) -> list[dict[str, Any]]:
        """What the ONNX model behind it must take, as entries of a configuration."""
        kinds = {"BYTES": "TYPE_STRING"}
        return [
            {"name": g["name"], "data_type": kinds.get(g["dtype"], f"TYPE_{g['dtype']}"), "dims": [g["width"]]}
            for g in self.gives
        ]

    def close(self) -> None:
        """End the process."""
        self._link.close()
        self.process.kill()
        self.process.wait()

    def _heard(self) -> tuple[frames.Tensors, dict[str, Any]]:
        try:
            return frames.receive(self._link)
        except (EOFError, OSError) as error:
            raise self._ended() from error

    def _ended(self) -> StepError:
        return StepError("the model's Python step has ended (its own words are in the engine's log)")
