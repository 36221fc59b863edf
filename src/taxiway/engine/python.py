"""Find a Python that the engine's stub can embed: 3.11 or 3.12 with its shared library."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from taxiway.core.errors import Refused

VERSIONS: Final = ((3, 12), (3, 11))
_SYSTEM_LIBRARIES: Final = ("/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib", "/usr/local/lib64")
_ASK: Final = """
import json, sys, sysconfig
get = sysconfig.get_config_var
print(json.dumps({"version": list(sys.version_info[:3]), "executable": sys.executable, "prefix": sys.base_prefix,
                  "libdir": get("LIBDIR"), "multiarch": get("MULTIARCH")}))
"""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A usable Python: `library` is its libpythonX.Y.so.1.0."""

    executable: Path
    version: tuple[int, int, int]
    library: Path

    @property
    def series(self) -> str:
        """`3.11`"""
        return f"{self.version[0]}.{self.version[1]}"


def find(python: Path | None = None) -> Interpreter:
    """The interpreter to build the engine's environment with; `python` leaves no choice.

    The running Python comes first if it fits, then PATH, pyenv, uv. A Python with its own shared library
    goes before one that must borrow the system's. Raises `Refused` naming everything that was looked at.
    """
    looked: list[str] = []
    borrowing: Interpreter | None = None
    for candidate in [python] if python else _candidates():
        found, own = _examine(candidate, looked)
        if found and own:
            return found
        borrowing = borrowing or found
    if borrowing:
        return borrowing
    raise Refused(
        "The engine needs a Python 3.11 or 3.12 with its shared library (libpython3.11.so.1.0 or "
        "libpython3.12.so.1.0), and none was found. Install one: `apt-get install python3.11 libpython3.11`, "
        "`dnf install python3.12 python3.12-libs`, `uv python install 3.12`, or "
        "`PYTHON_CONFIGURE_OPTS=--enable-shared pyenv install 3.12`.",
        "Looked at: " + ("; ".join(looked) or "nothing: no python3.12 or python3.11 on PATH, in pyenv or in uv"),
    )


def of_series(series: str, first: Path | None = None) -> Path:
    """A Python of this series (`3.13`) to make environments with, `first` before all others; raises `Refused`."""
    wanted = [int(part) for part in series.split(".")]
    own = Path(sys.executable) if list(sys.version_info[:2]) == wanted else None
    looked = []
    for candidate in _distinct([p for p in (first, own) if p] + list(_named([f"python{series}"]))):
        facts = _ask(candidate)
        if facts is not None and facts["version"][:2] == wanted:
            return Path(facts["executable"])
        looked.append(str(candidate))
    raise Refused(
        f"The model's Python step needs Python {series}, and none was found. Install one: "
        f"`apt-get install python{series} python{series}-venv` or `uv python install {series}`.",
        "Looked at: " + (", ".join(looked) or f"nothing: no python{series} on PATH, in pyenv or in uv"),
    )


def _candidates() -> Iterator[Path]:
    return _distinct(_places())


def _distinct(paths: Iterable[Path]) -> Iterator[Path]:
    seen: set[Path] = set()
    for path in paths:
        resolved = path.resolve()
        if resolved not in seen:
            seen.add(resolved)
            yield path


def _places() -> Iterator[Path]:
    if sys.version_info[:2] in VERSIONS:
        yield Path(sys.executable)
    yield from _named([f"python{major}.{minor}" for major, minor in VERSIONS])


def _named(names: Sequence[str]) -> Iterator[Path]:
    """Where programs of these names are: on PATH, in pyenv, in uv."""
    for name in names:
        on_path = (shutil.which(name, path=folder) for folder in os.environ.get("PATH", "").split(os.pathsep))
        yield from (Path(found) for found in on_path if found)
    home = Path.home()
    pyenv = Path(os.environ.get("PYENV_ROOT") or home / ".pyenv")
    uv = Path(os.environ.get("UV_PYTHON_INSTALL_DIR") or home / ".local/share/uv/python")
    for name in names:
        for folder in (pyenv / "versions", uv):
            yield from sorted(folder.glob(f"*/bin/{name}"), reverse=True)


def _examine(candidate: Path, looked: list[str]) -> tuple[Interpreter | None, bool]:
    """The interpreter behind `candidate` and whether the library is its own; notes in `looked` what it is not."""
    facts = _ask(candidate)
    if facts is None:
        looked.append(f"{candidate} (does not run)")
        return None, False
    major, minor, micro = facts["version"]
    version = (major, minor, micro)
    if (major, minor) not in VERSIONS:
        looked.append(f"{candidate} (is Python {major}.{minor})")
        return None, False
    name = f"libpython{major}.{minor}.so.1.0"
    libdir = Path(facts["libdir"] or "/nonexistent")
    own = [libdir, libdir / (facts["multiarch"] or ""), Path(facts["prefix"]) / "lib"]
    folders = [*own, *map(Path, _SYSTEM_LIBRARIES)]
    library = next((f / name for f in folders if (f / name).is_file()), None)
    if library is None:
        looked.append(f"{candidate} (no {name} in {', '.join(dict.fromkeys(map(str, folders)))})")
        return None, False
    return Interpreter(Path(facts["executable"]), version, library), library.parent in own


def _ask(candidate: Path) -> dict[str, Any] | None:
    try:
        done = subprocess.run([str(candidate), "-I", "-c", _ASK], capture_output=True, text=True, timeout=30)
        return dict(json.loads(done.stdout)) if done.returncode == 0 else None
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
