"""`taxiway validate`: gate 2 over a folder, or over a stored revision. Reads only."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import psutil

from taxiway.app.config import read
from taxiway.app.wire import Platform
from taxiway.catalog import store
from taxiway.catalog.store import Stored
from taxiway.core.contract import Contract
from taxiway.core.errors import Altered, Refused
from taxiway.core.revision import Revision
from taxiway.gates.mistake import Machine, Mistake, Target
from taxiway.gates.validate import validate

_SERVICE: Final = "service.json"
_LARGEST: Final = 2 << 30
_DEEPEST: Final = 8


def folder(path: Path) -> tuple[Mistake, ...]:
    """The mistakes of a model repository on disk; raises `Refused` for a wrong taxiway.yaml in it or beside it."""
    if not path.is_dir():
        raise Refused(f"{path} is no folder; give a model repository (<model>/config.pbtxt in it)", code="no-folder")
    return _found(path, None)


def revision(platform: Platform, wanted: Revision) -> tuple[Mistake, ...]:
    """The mistakes of a stored revision, its contract included."""
    stored = store.load(platform.places.catalog, wanted)
    return _found(stored.repository, stored.contract(), own=_unaltered(stored))


def _unaltered(stored: Stored) -> bool:
    try:
        store.verify(stored)
    except Altered:
        return False
    return True


def _found(root: Path, contract: Contract | None, *, own: bool = False) -> tuple[Mistake, ...]:
    outside: list[Mistake] = []
    files = dict(_files(root, outside))
    unread = {m.path for m in outside}
    timeout_ms = _timeout_ms(root.absolute(), outside)
    found = validate(files, target=Target(), machine=machine(), contract=contract, timeout_ms=timeout_ms, own=own)
    # A file that was not read is there all the same.
    return tuple(sorted({*outside, *(m for m in found if m.path not in unread)}))


def _timeout_ms(root: Path, outside: list[Mistake]) -> int | None:
    """After how long a request is given up: as a revision's service.json says, or a taxiway.yaml; None: not known."""
    try:
        said = json.loads((root.parent / _SERVICE).read_bytes())
    except (OSError, ValueError, RecursionError):
        said = None
    if isinstance(said, dict) and "timeout_ms" in said:
        timeout_ms = said["timeout_ms"]
        if type(timeout_ms) is int and timeout_ms > 0:
            return timeout_ms
        wrong = f"timeout_ms is {json.dumps(timeout_ms)[:40]}; expected a whole number above 0"
        outside.append(Mistake(f"../{_SERVICE}", 0, 0, "error", wrong))
        return None
    beside = (root / read.NAME, root.parent / read.NAME)
    written = next((path for path in beside if path.is_file()), None)
    return read.read(written).serving.timeout_ms if written else None


def machine() -> Machine:
    """This machine. A GPU is there when its driver's device is."""
    return Machine(os.cpu_count() or 1, psutil.virtual_memory().available, Path("/dev/nvidia0").exists())


def _files(root: Path, outside: list[Mistake]) -> Iterator[tuple[str, bytes]]:
    """Path in the repository -> bytes; what cannot or must not be read goes into `outside`."""
    base = root.resolve()
    rest = [root]
    while rest:
        folder = rest.pop()
        for path in _entries(root, folder, outside):
            name = path.relative_to(root).as_posix()
            reason = _bad_link(path, base) if path.is_symlink() else None
            if reason is None and path.is_dir() and name.count("/") >= _DEEPEST:
                reason = "folders in folders, or links that go round in circles; a repository is not that deep"
            if reason is not None:
                outside.append(Mistake(name, 0, 0, "error", reason))
            elif path.is_dir():
                rest.append(path)
            elif path.is_file():
                yield from _read(path, name, outside)


def _entries(root: Path, folder: Path, outside: list[Mistake]) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        name = folder.relative_to(root).as_posix()
        outside.append(Mistake(name, 0, 0, "error", f"cannot be read: {error.strerror}"))
        return []


def _bad_link(path: Path, base: Path) -> str | None:
    try:
        target = path.resolve(strict=True)
    except (OSError, RuntimeError):  # a circle is the one or the other, by the Python's version
        return "a link that leads nowhere; copy the file"
    return None if target.is_relative_to(base) else "a link that leads out of the repository; copy the file"


def _read(path: Path, name: str, outside: list[Mistake]) -> Iterator[tuple[str, bytes]]:
    try:
        if path.stat().st_size <= _LARGEST:
            yield name, path.read_bytes()
        else:
            outside.append(Mistake(name, 0, 0, "warning", "larger than 2 GB, so that it was not looked at"))
    except OSError as error:
        outside.append(Mistake(name, 0, 0, "error", f"cannot be read: {error.strerror}"))
