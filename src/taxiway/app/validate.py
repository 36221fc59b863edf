"""`taxiway validate`: gate 2 over a folder, or over a stored revision. Reads only."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import psutil

from taxiway.app.wire import Platform
from taxiway.catalog import store
from taxiway.core.errors import Refused
from taxiway.core.revision import Revision
from taxiway.gates.mistake import Machine, Mistake, Target
from taxiway.gates.validate import validate

_LARGEST = 2 << 30


def folder(path: Path) -> tuple[Mistake, ...]:
    """The mistakes of a model repository on disk."""
    if not path.is_dir():
        raise Refused(f"{path} is no folder; give a model repository (<model>/config.pbtxt in it)", code="no-folder")
    outside: list[Mistake] = []
    files = dict(_files(path, outside))
    return tuple(sorted({*outside, *validate(files, target=Target(), machine=machine())}))


def revision(platform: Platform, wanted: Revision) -> tuple[Mistake, ...]:
    """The mistakes of a stored revision, its contract included."""
    stored = store.load(platform.places.catalog, wanted)
    outside: list[Mistake] = []
    files = dict(_files(stored.repository, outside))
    found = validate(files, target=Target(), machine=machine(), contract=stored.contract())
    return tuple(sorted({*outside, *found}))


def machine() -> Machine:
    """This machine. A GPU is there when its driver's device is."""
    return Machine(os.cpu_count() or 1, psutil.virtual_memory().available, Path("/dev/nvidia0").exists())


def _files(root: Path, outside: list[Mistake]) -> Iterator[tuple[str, bytes]]:
    base = root.resolve()
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.is_symlink() and not path.resolve().is_relative_to(base):
            outside.append(Mistake(name, 0, 0, "error", "a link that leads out of the repository; copy the file"))
            continue
        if not path.is_file():
            continue
        if path.stat().st_size > _LARGEST:
            outside.append(Mistake(name, 0, 0, "warning", "larger than 2 GB, so that it was not looked at"))
            continue
        try:
            yield name, path.read_bytes()
        except OSError as error:
            outside.append(Mistake(name, 0, 0, "error", f"cannot be read: {error.strerror}"))
