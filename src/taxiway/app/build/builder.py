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
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from taxiway import __version__
from taxiway.app.build import inputs
from taxiway.app.build.guarded import Progress, Task, run
from taxiway.app.build.interpreter import Interpreter, own
from taxiway.app.build.options import DEFAULTS, Options
from taxiway.core import digest
from taxiway.core.contract import Contract
from taxiway.core.errors import Refused
from taxiway.core.sample import Golden

TIMEOUT_S: Final = 1800.0
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
_FORMAT: Final = 4
_PROCESS: Final = "taxiway.app.build.process"
_SUMS: Final = "sums.json"


@dataclass(frozen=True, slots=True)
class Built:
    """A finished build. `scalars` names outputs whose graph tensor has one value per row and no column; `step` says
    whether a Python step stands in front of the graph.

    `sums` are the digests of the files in `folder`.
    """

    folder: Path
    contract: Contract
    golden: tuple[Golden, ...]
    scalars: frozenset[str]
    summary: dict[str, Any]
    sums: Mapping[str, str]
    step: bool = False


def build(
    notebook: Path,
    *,
    model: str | None,
    into: Path,
    progress: Progress,
    python: Interpreter | None = None,
    options: Options = DEFAULTS,
    timeout_s: float = TIMEOUT_S,
) -> Built:
    """Build `notebook` with `python` (default: our own) and `options`, or find it built.

    Raises `Refused` with the reasons; nothing half is left in `into`.
    """
    python = python or own()
    key = _key(notebook, model, python, options)
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
            task = Task(_PROCESS, notebook, aside, python, {"model": model, "options": options.to_json()})
            run(task, progress, timeout_s)
            with _writing(into):
                _put(aside, folder)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
        return _read(folder)


def is_built(
    notebook: Path,
    *,
    model: str | None,
    into: Path,
    python: Interpreter | None = None,
    options: Options = DEFAULTS,
) -> bool:
    """Whether `build` would find `notebook` built already; touches nothing."""
    python = python or own()
    return _is_current(into / _key(notebook, model, python, options), notebook, python)


@contextlib.contextmanager
def _writing(into: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Refused(f"the build cannot be written to {into}: {error.strerror}", code="cannot-write") from error


def _key(notebook: Path, model: str | None, python: Interpreter, options: Options) -> str:
    try:
        data = notebook.read_bytes()
    except OSError:
        data = b""  # the process says what is wrong with it
    versions = {name: python.has(name) for name in _LIBRARIES}
    made_from = [_FORMAT, __version__, digest.of_bytes(data), notebook.name, model, python.version, versions]
    made_from.append(options.to_json())
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
            step=summary["step"],
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
