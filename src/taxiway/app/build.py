"""From a notebook to a proved model in a folder.

The notebook runs in a process of its own (`build_process.py`), in its own session, so that whatever it starts ends
with it. A finished build is kept under the digest of its inputs: the notebook, the model asked for, the versions of
Python and of the libraries that matter, and every file next to the notebook that it read.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from taxiway import __version__
from taxiway.core import digest
from taxiway.core.contract import Contract
from taxiway.core.errors import Refused
from taxiway.core.sample import Golden

TIMEOUT_S: Final = 1800.0
# What decides the bytes of a build beyond the notebook itself.
_LIBRARIES: Final = ("numpy", "scikit-learn", "skl2onnx", "onnx", "onnxruntime", "pandas")
_FORMAT: Final = 1

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Built:
    """A finished build. `scalars` names outputs whose graph tensor has one value per row and no column."""

    folder: Path
    contract: Contract
    golden: tuple[Golden, ...]
    scalars: frozenset[str]
    summary: dict[str, Any]


def build(notebook: Path, *, model: str | None, into: Path, progress: Progress, timeout_s: float = TIMEOUT_S) -> Built:
    """Build `notebook`, or find it built. Raises `Refused` with the reasons; nothing half is left in `into`."""
    folder = into / digest.short(_key(notebook, model))
    if _is_current(folder):
        progress("built already from the same notebook, data and libraries")
        return _read(folder)
    into.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=".build-", dir=into))
    try:
        _run(notebook, model, aside, progress, timeout_s)
        _put(aside, folder)
    except OSError as error:
        raise Refused(f"the build cannot be written to {into}: {error.strerror}") from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return _read(folder)


def _key(notebook: Path, model: str | None) -> str:
    try:
        data = notebook.read_bytes()
    except OSError:
        data = b""  # the process says what is wrong with it
    versions = {name: metadata.version(name) for name in _LIBRARIES if _is_installed(name)}
    python = ".".join(map(str, sys.version_info[:3]))
    return digest.of_json([_FORMAT, __version__, digest.of_bytes(data), notebook.name, model, python, versions])


def _is_installed(name: str) -> bool:
    with contextlib.suppress(metadata.PackageNotFoundError):
        return bool(metadata.version(name))
    return False


def _is_current(folder: Path) -> bool:
    try:
        read: dict[str, str] = json.loads((folder / "inputs.json").read_text())
        return all(digest.of_bytes(Path(path).read_bytes()) == was for path, was in read.items())
    except (OSError, ValueError):
        return False


def _put(aside: Path, folder: Path) -> None:
    for _ in range(3):
        with contextlib.suppress(OSError):
            aside.rename(folder)
            return
        # An older build whose data has changed, or the same one by somebody who was faster.
        shutil.rmtree(folder, ignore_errors=True)
    aside.rename(folder)


def _read(folder: Path) -> Built:
    try:
        summary = json.loads((folder / "build.json").read_text())
        return Built(
            folder=folder,
            contract=Contract.from_json(json.loads((folder / "contract.json").read_text())),
            golden=tuple(Golden.from_json(g) for g in json.loads((folder / "golden.json").read_text())),
            scalars=frozenset(summary["scalars"]),
            summary=summary,
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Refused(f"the build in {folder} cannot be read ({error}); remove it and ship again") from error


def _run(notebook: Path, model: str | None, out: Path, progress: Progress, timeout_s: float) -> None:
    said: dict[str, Any] = {}
    with _child(notebook, model, out) as (process, events):
        timer = threading.Timer(timeout_s, _kill, [process])
        timer.start()
        try:
            for line in events:
                said = json.loads(line)
                if "progress" in said:
                    progress(said["progress"])
            process.wait()
        finally:
            expired = not timer.is_alive()
            timer.cancel()
    if "refused" in said:
        raise Refused(*said["refused"], code=said["code"])
    if said.get("done") is not True:
        raise _died(notebook, process.returncode, out, timeout_s if expired else None)


@contextlib.contextmanager
def _child(notebook: Path, model: str | None, out: Path) -> Iterator[tuple[subprocess.Popen[bytes], Any]]:
    """The process, and what it says, a JSON object a line. It ends when this process does, however that ends."""
    events_read, events_write = os.pipe()
    lifeline_read, lifeline_write = os.pipe()
    spec = json.dumps(
        {"notebook": str(notebook.absolute()), "model": model, "out": str(out), "events": events_write}
        | {"lifeline": lifeline_read}
    )
    folder = notebook.absolute().parent
    with (out / "build.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "taxiway.app.build_process", spec],
            cwd=folder if folder.is_dir() else out,
            env={**os.environ, "MPLBACKEND": "Agg", "PYTHONHASHSEED": "0"},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=(events_write, lifeline_read),
            start_new_session=True,
        )
    os.close(events_write)
    os.close(lifeline_read)
    try:
        with os.fdopen(events_read) as events:
            yield process, events
    finally:
        _kill(process)
        process.wait()
        os.close(lifeline_write)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the process and everything it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _died(notebook: Path, code: int, out: Path, timeout_s: float | None) -> Refused:
    if timeout_s is not None:
        return Refused(f"{notebook.name} was still running after {timeout_s:g} s and was stopped", code="timeout")
    tail = (out / "build.log").read_text(errors="replace").strip().splitlines()[-8:]
    how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
    return Refused(f"{notebook.name}: the process that ran it {how}; its last words:", *tail, code="build-died")
