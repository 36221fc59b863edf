"""Which Python a notebook runs in, and whether that has what a build needs.

The notebook's environment is the person's, not ours: named by `--python`, by a Jupyter kernel (`--kernel`, or the one
that the notebook was written with, when it has a name of its own), else the one that Taxiway runs in. What must be
installed there is small, and looked for before anything runs. Taxiway itself need not be: its code is lent.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from jupyter_core.paths import jupyter_path

from taxiway.core.errors import Refused

NEEDED: Final[Mapping[str, str]] = {
    "ipython": "8.18",
    "nbformat": "5.7",
    "numpy": "1.26",
    "onnx": "1.16",
    "onnxruntime": "1.19.2",
    "scikit-learn": "1.4",
    "skl2onnx": "1.17",
}
# Only for models of that library.
FOR_LIBRARY: Final[Mapping[str, str]] = {
    "xgboost": "onnxmltools",
    "xgboost-cpu": "onnxmltools",
    "lightgbm": "onnxmltools",
    "torch": "onnxscript",
}
_BAD: Final[Mapping[str, tuple[str, ...]]] = {"onnxruntime": ("1.26", "1.27")}
_GENERIC: Final = frozenset({"", "python", "python2", "python3", "ipykernel"})
_ASK: Final = """
import json, sys
from importlib import metadata
found = {}
for one in metadata.distributions():
    name = one.metadata["Name"]
    if name:
        found.setdefault(name.lower().replace("_", "-").replace(".", "-"), one.version)
print(json.dumps({"version": list(sys.version_info[:3]), "packages": found, "prefix": sys.prefix}))
"""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python that can build; `packages` are its distributions with their versions, `own` is Taxiway's own."""

    path: Path
    version: str
    packages: Mapping[str, str]
    own: bool

    def has(self, name: str) -> str | None:
        """The version of distribution `name` there."""
        return self.packages.get(name.lower().replace("_", "-").replace(".", "-"))


def choose(notebook: Path, python: str | None = None, kernel: str | None = None) -> Interpreter:
    """The interpreter for `notebook`; raises `Refused` with what is missing there and the command that installs it."""
    path, where = _path(notebook, python, kernel)
    if path is None:
        return own()
    found = _asked(path, where)
    _check(found, where)
    return found


def own() -> Interpreter:
    """The Python that Taxiway itself runs in."""
    packages = {_canonical(d.metadata["Name"]): d.version for d in metadata.distributions() if d.metadata["Name"]}
    return Interpreter(Path(sys.executable), ".".join(map(str, sys.version_info[:3])), packages, own=True)


def kernels() -> dict[str, Path]:
    """The Jupyter kernels for Python on this machine, with the interpreter of each."""
    found: dict[str, Path] = {}
    for folder in jupyter_path("kernels"):
        for spec in sorted(Path(folder).glob("*/kernel.json")):
            argv = _argv(spec)
            if argv and "python" in Path(argv[0]).name:
                found.setdefault(spec.parent.name.lower(), Path(argv[0]))
    return found


def _argv(spec: Path) -> list[str]:
    try:
        value: Any = json.loads(spec.read_text()).get("argv", [])
        return [str(v) for v in value]
    except (OSError, ValueError, AttributeError):
        return []


def _path(notebook: Path, python: str | None, kernel: str | None) -> tuple[Path | None, str]:
    """The interpreter (None: our own), and how it was named."""
    if python is not None:
        return _executable(python), f"--python {python}"
    known = kernels() if kernel is not None or _kernel_of(notebook) not in _GENERIC else {}
    if kernel is not None:
        if kernel.lower() not in known:
            names = ", ".join(sorted(known)) or "none"
            raise Refused(
                f"--kernel {kernel}: there is no such Jupyter kernel for Python; known: {names}", code="no-python"
            )
        return _executable(str(known[kernel.lower()])), f"--kernel {kernel}"
    mine = _kernel_of(notebook)
    return (known[mine], f"the notebook's kernel {mine!r}") if mine in known else (None, "")


def _executable(python: str) -> Path:
    path = Path(python).expanduser()
    folder = path / "bin" / "python"
    if path.is_dir() and folder.is_file():
        path = folder
    # Not resolved: a virtual environment's python is a link, and what it is called by is what it is.
    path = path.absolute()
    if not path.is_file() or not os.access(path, os.X_OK):
        raise Refused(
            f"--python {python}: there is no Python there; give its path, or that of its virtual environment",
            code="no-python",
        )
    return path


def _kernel_of(notebook: Path) -> str:
    try:
        value: Any = json.loads(notebook.read_bytes())
        return str(value["metadata"]["kernelspec"]["name"]).lower()
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ""


def _asked(path: Path, where: str) -> Interpreter:
    if path == Path(sys.executable):
        return own()
    try:
        done = subprocess.run([str(path), "-I", "-c", _ASK], capture_output=True, text=True, timeout=60, check=True)
        said = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        said_so = getattr(error, "stderr", None) or str(error)
        last = str(said_so).strip().splitlines()[-1:] or ["it said nothing"]
        raise Refused(f"{where}: {path} does not run as a Python: {last[0][:300]}", code="no-python") from error
    return Interpreter(path, ".".join(map(str, said["version"])), said["packages"], own=False)


def _check(found: Interpreter, where: str) -> None:
    major, minor = (int(v) for v in found.version.split(".")[:2])
    if (major, minor) < (3, 11):
        raise Refused(
            f"{where}: {found.path} is Python {found.version}; a build needs 3.11 or newer.",
            "What to do: make an environment with Python 3.11 and the notebook's libraries, and name it by --python.",
            code="no-python",
        )
    wanted = [f"{name}>={least}" for name, least in NEEDED.items() if not _new_enough(found.has(name), least)]
    wanted += [name for library, name in FOR_LIBRARY.items() if found.has(library) and not found.has(name)]
    wanted += [f"{n}!={v}.*" for n, bad in _BAD.items() for v in bad if (found.has(n) or "").startswith(f"{v}.")]
    if wanted:
        quoted = " ".join(f"'{w}'" if set(w) & set("<>!=") else w for w in dict.fromkeys(wanted))
        raise Refused(
            f"{where}: {found.path} lacks what a build needs: {', '.join(dict.fromkeys(wanted))}.",
            f"What to do: {found.path} -m pip install {quoted}",
            code="missing-packages",
        )


def _new_enough(version: str | None, least: str) -> bool:
    return version is not None and _numbers(version) >= _numbers(least)


def _numbers(version: str) -> list[int]:
    return list(_leading(version))


def _leading(version: str) -> Iterator[int]:
    for part in version.split("."):
        digits = "".join(c for c in part if c.isdigit())
        if not part[:1].isdigit():
            return
        yield int(digits)


def _canonical(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")
