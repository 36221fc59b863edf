"""What a notebook read while it ran, and whether that is still the same.

Files are noted with the digest they had when they were first opened, files that were looked for in vain as absent,
folders that were listed with their names. Not noted: what is installed (its version tells), what belongs to the
system, what the notebook wrote itself before it read it, and what is read by processes that it starts or by libraries
that open files behind Python's back. Paths are relative to the notebook's folder, so that the same notebook next to
other data is another build.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import threading
from collections.abc import Mapping
from importlib import util
from pathlib import Path
from typing import Any, Final

from taxiway.core import digest

_CHUNK: Final = 1 << 20
_SYSTEM: Final = ("/usr", "/etc", "/proc", "/sys", "/dev", "/lib", "/lib64", "/bin", "/sbin", "/var/cache", "/run")

Inputs = dict[str, str | None]


def now(folder: Path, name: str) -> str | None:
    """The digest of the file or folder called `name` as seen from `folder`; None when there is none to read."""
    path = os.path.join(folder, name)  # noqa: PTH118 - a slash at the end means a folder, which Path forgets
    try:
        return _of_names(path) if name.endswith(os.sep) else _of_file(path)
    except OSError:
        return None


def same(inputs: Mapping[str, str | None], folder: Path) -> bool:
    """Whether all that was read is still what it was."""
    return all(now(folder, name) == was for name, was in inputs.items())


class Reads:
    """Notes what this process reads from now on; `inputs` fills up as it does. Cannot be undone."""

    def __init__(self, folder: Path, ignored: Path) -> None:
        self.inputs: Inputs = {}
        self._folder = os.path.realpath(folder)
        self._written: set[str] = set()
        self._mine = threading.local()
        home = os.path.expanduser("~")  # noqa: PTH111 - Path.home() raises where there is none
        outside = [*_SYSTEM, *(os.path.join(home, d) for d in (".cache", ".config", ".ipython"))]  # noqa: PTH118
        installed = [sys.prefix, sys.base_prefix, str(ignored)]
        self._never = tuple(os.path.realpath(p) + os.sep for p in installed)
        self._outside = tuple(os.path.realpath(p) + os.sep for p in outside)
        sys.addaudithook(self._heard)

    def _heard(self, event: str, args: tuple[Any, ...]) -> None:
        what = _EVENTS.get(event)
        if what is None or getattr(self._mine, "busy", False):
            return
        self._mine.busy = True
        try:
            what(self, *args)
        except (OSError, ValueError, TypeError):
            pass  # a path that cannot be: whoever opens it hears so
        finally:
            self._mine.busy = False

    def _opened(self, given: Any, mode: Any, flags: Any) -> None:
        path = self._path(given)
        if path is None:
            return
        if _only_writes(mode, flags):
            self._written.add(path)
        elif path not in self._written:
            self._note(path)

    def _connected(self, given: Any) -> None:
        self._opened(given, "r", 0)

    def _made(self, given: Any, *_: Any) -> None:
        path = self._path(given)
        if path is not None:
            self._written.add(path)

    def _listed(self, given: Any) -> None:
        # Looking for modules lists every folder on the way; the modules found are opened and noted as such.
        if "importlib" in sys._getframe(2).f_code.co_filename:
            return
        path = self._path("." if given is None else given)
        if path is not None and path not in self._written:
            self._note(path + os.sep)

    def _note(self, path: str) -> None:
        name = os.path.relpath(path, self._folder) + (os.sep if path.endswith(os.sep) else "")
        if name not in self.inputs:
            self.inputs[name] = now(Path(self._folder), name)

    def _path(self, given: Any) -> str | None:
        """Where `given` leads, or None when that is of no interest."""
        if not isinstance(given, str | bytes | os.PathLike):
            return None
        path = os.path.realpath(os.fsdecode(given))
        if f"{os.sep}__pycache__{os.sep}" in path:
            # Compiled code is read in place of its source as long as that has not changed.
            path = util.source_from_cache(path)
        inside = path.startswith(self._folder + os.sep)
        if f"{path}{os.sep}".startswith(self._never) or (not inside and path.startswith(self._outside)):
            return None
        return path


def _only_writes(mode: Any, flags: Any) -> bool:
    if isinstance(mode, str):
        return bool(set(mode) & set("wax"))
    return bool(flags & (os.O_TRUNC | os.O_EXCL)) or flags & os.O_ACCMODE == os.O_WRONLY


_EVENTS: Final[dict[str, Any]] = {
    "open": Reads._opened,
    "sqlite3.connect": Reads._connected,
    "os.mkdir": Reads._made,
    "os.listdir": Reads._listed,
    "os.scandir": Reads._listed,
}


def _of_file(path: str) -> str | None:
    if not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116
        return None
    found = hashlib.sha256()
    with open(path, "rb") as file:  # noqa: PTH123
        while data := file.read(_CHUNK):
            found.update(data)
    return digest.PREFIX + found.hexdigest()


def _of_names(path: str) -> str:
    names = sorted(n for n in os.listdir(path) if not n.startswith(".") and n != "__pycache__")  # noqa: PTH208
    return digest.of_json(names)
