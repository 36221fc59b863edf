"""From a notebook to a proved model in a folder.

The notebook runs in a process of its own (`process.py`) under a guard (`guard.py`), so that whatever it
starts ends with it. A finished build is kept under the digest of what it was made from: the notebook, the model asked
for, and the versions of Python and of the libraries that matter; it counts as long as its own bytes, the data that
the notebook read (`inputs.py`) and the versions that it names are what they were.

`into` holds finished builds (twelve hex digits), `.build-*` folders of builds that go on, and a `.lock-*` file for
each of these: whoever holds the lock owns the folders, so what a killed build left is known by its free lock.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import taxiway as package
from taxiway import __version__
from taxiway.app.build import inputs
from taxiway.app.build.interpreter import Interpreter, own
from taxiway.core import digest
from taxiway.core.contract import Contract
from taxiway.core.errors import Refused
from taxiway.core.sample import Golden

TIMEOUT_S: Final = 1800.0
# What a notebook's process may still take to end once everything is said, and its guard to end the rest.
_GRACE_S: Final = 5.0
# What decides the bytes of a build beyond the notebook itself.
_LIBRARIES: Final = (
    "numpy",
    "scikit-learn",
    "skl2onnx",
    "onnx",
    "onnxmltools",
    "onnxruntime",
    "pandas",
    "xgboost",
    "xgboost-cpu",
    "lightgbm",
    "torch",
)
_FORMAT: Final = 3
_SUMS: Final = "sums.json"

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Built:
    """A finished build. `scalars` names outputs whose graph tensor has one value per row and no column.

    `sums` are the digests of the files in `folder`.
    """

    folder: Path
    contract: Contract
    golden: tuple[Golden, ...]
    scalars: frozenset[str]
    summary: dict[str, Any]
    sums: Mapping[str, str]


def build(
    notebook: Path,
    *,
    model: str | None,
    into: Path,
    progress: Progress,
    python: Interpreter | None = None,
    timeout_s: float = TIMEOUT_S,
) -> Built:
    """Build `notebook` with `python` (default: our own), or find it built.

    Raises `Refused` with the reasons; nothing half is left in `into`.
    """
    python = python or own()
    key = _key(notebook, model, python)
    folder = into / key
    with _writing(into):
        into.mkdir(parents=True, exist_ok=True)
    with _lock(into, key, progress):
        if _is_current(folder, notebook, python):
            progress("built already from the same notebook, data and libraries")
            return _read(folder)
        _sweep(into, key)
        with _writing(into):
            aside = Path(tempfile.mkdtemp(prefix=f".build-{key}-", dir=into))
        try:
            _run(_Task(notebook, model, aside, python), progress, timeout_s)
            with _writing(into):
                _put(aside, folder)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
        return _read(folder)


def is_built(notebook: Path, *, model: str | None, into: Path, python: Interpreter | None = None) -> bool:
    """Whether `build` would find `notebook` built already; touches nothing."""
    python = python or own()
    return _is_current(into / _key(notebook, model, python), notebook, python)


@contextlib.contextmanager
def _writing(into: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Refused(f"the build cannot be written to {into}: {error.strerror}", code="cannot-write") from error


def _key(notebook: Path, model: str | None, python: Interpreter) -> str:
    try:
        data = notebook.read_bytes()
    except OSError:
        data = b""  # the process says what is wrong with it
    versions = {name: python.has(name) for name in _LIBRARIES}
    made_from = [_FORMAT, __version__, digest.of_bytes(data), notebook.name, model, python.version, versions]
    return digest.short(digest.of_json(made_from))


def _is_current(folder: Path, notebook: Path, python: Interpreter) -> bool:
    try:
        sums: dict[str, str] = json.loads((folder / _SUMS).read_text())
        if "model.onnx" not in sums or any(
            digest.of_bytes((folder / name).read_bytes()) != was for name, was in sums.items()
        ):
            return False
        pins = [line.split("==") for line in (folder / "requirements.txt").read_text().split()]
        noted: dict[str, str | None] = json.loads((folder / "inputs.json").read_text())
    except (OSError, ValueError, AttributeError, TypeError):
        return False
    return all(python.has(n) == v for n, v in pins) and inputs.same(noted, notebook.absolute().parent)


def _sums(folder: Path) -> dict[str, str]:
    names = sorted(p.name for p in folder.iterdir() if p.name not in (_SUMS, "build.log"))
    return {name: digest.of_bytes((folder / name).read_bytes()) for name in names}


def _put(aside: Path, folder: Path) -> None:
    """Make `aside` the finished build, in place of a damaged one or one of other data."""
    (aside / _SUMS).write_text(json.dumps(_sums(aside), indent=1) + "\n")
    old = Path(tempfile.mkdtemp(prefix=f".build-{folder.name}-", dir=folder.parent))
    try:
        with contextlib.suppress(FileNotFoundError):
            folder.rename(old / "old")
        aside.rename(folder)
    finally:
        shutil.rmtree(old, ignore_errors=True)


def _read(folder: Path) -> Built:
    try:
        summary = json.loads((folder / "build.json").read_text())
        return Built(
            folder=folder,
            contract=Contract.from_json(json.loads((folder / "contract.json").read_text())),
            golden=tuple(Golden.from_json(g) for g in json.loads((folder / "golden.json").read_text())),
            scalars=frozenset(summary["scalars"]),
            summary=summary,
            sums=json.loads((folder / _SUMS).read_text()),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Refused(f"the build in {folder} cannot be read ({error}); remove it and ship again") from error


@contextlib.contextmanager
def _lock(into: Path, key: str, progress: Progress) -> Iterator[None]:
    """Hold the lock of `key`; waits for another build of the same notebook, which may make this one unnecessary."""
    with _writing(into):
        held = _take(into, key, wait=False)
    if held is None:
        progress("waiting for another build of the same notebook")
        with _writing(into):
            held = _take(into, key, wait=True)
    assert held is not None
    try:
        yield
    finally:
        # Removed while it is held: whoever waits for it sees that and takes a new one.
        _lock_file(into, key).unlink(missing_ok=True)
        os.close(held)


def _take(into: Path, key: str, *, wait: bool) -> int | None:
    path = _lock_file(into, key)
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            if path.exists() and os.path.samestat(os.fstat(descriptor), path.stat()):
                return descriptor
        except BlockingIOError:
            os.close(descriptor)
            return None
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _lock_file(into: Path, key: str) -> Path:
    return into / f".lock-{key}"


def _sweep(into: Path, mine: str) -> None:
    """Remove what builds that were killed have left behind."""
    for folder in into.glob(".build-*"):
        key = folder.name.removeprefix(".build-").partition("-")[0]
        if key == mine:
            shutil.rmtree(folder, ignore_errors=True)
            continue
        with contextlib.suppress(OSError):
            held = _take(into, key, wait=False)
            if held is not None:
                shutil.rmtree(folder, ignore_errors=True)
                _lock_file(into, key).unlink(missing_ok=True)
                os.close(held)


@dataclass(frozen=True, slots=True)
class _Task:
    notebook: Path
    model: str | None
    out: Path
    python: Interpreter


def _run(task: _Task, progress: Progress, timeout_s: float) -> None:
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


def _event(line: str) -> dict[str, Any]:
    """What was said; nothing when whoever said it was killed while speaking."""
    with contextlib.suppress(ValueError):
        event = json.loads(line)
        if isinstance(event, dict):
            return event
    return {}


@contextlib.contextmanager
def _guarded(task: _Task) -> Iterator[tuple[Any, Callable[[], None]]]:
    """What the processes say, a JSON object a line, and how to end them; they end when this one does, too."""
    events_read, events_write = os.pipe()
    lifeline_read, lifeline_write = os.pipe()
    notebook, out = task.notebook.absolute(), task.out.absolute()
    spec: dict[str, Any] = {"notebook": str(notebook), "model": task.model, "out": str(out)}
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
