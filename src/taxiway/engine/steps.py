"""Environments for the Python steps of revisions: the notebook's Python series, its libraries in their very versions.

    <home>/steps/<digest>/venv     one environment for each list of requirements, shared by all that need the same
    <home>/steps/<digest>/ready    written last; a folder without it is unfinished and begun anew

The engine's own environment cannot run them: its numpy is older than the notebook's.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from taxiway.core import digest
from taxiway.core.errors import Refused
from taxiway.engine.alone import alone, run
from taxiway.engine.install import PIP
from taxiway.engine.python import of_series

Progress = Callable[[str], None]

_SPACE: Final = 600_000_000  # bytes: scikit-learn, SciPy, pandas and numpy take 354 MB, and more while unpacking


@dataclass(frozen=True, slots=True)
class Need:
    """What a step needs: a Python series (`3.12`) and the text of its requirements, exact versions only."""

    series: str
    requirements: str

    @property
    def pins(self) -> Iterator[tuple[str, str]]:
        """Distribution and version, one by one."""
        for line in self.requirements.split():
            name, _, version = line.partition("==")
            yield name, version

    @property
    def key(self) -> str:
        """The name of its environment."""
        return digest.short(digest.of_json([self.series, sorted(self.requirements.split())]))


def need(folder: Path) -> Need | None:
    """What the step in a version's folder needs; None when there is no step. Raises `Refused`."""
    step = folder / "step"
    if not step.is_dir():
        return None
    return read((step / "step.json", step / "requirements.txt"))


def read(files: tuple[Path, Path]) -> Need:
    """What a step's description and its requirements say; raises `Refused` when they cannot be read."""
    spec, requirements = files
    try:
        version = json.loads(spec.read_text())["python"]
        return Need(".".join(version.split(".")[:2]), requirements.read_text())
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise Refused(f"the Python step in {spec.parent} cannot be read: {error}") from error


def located(home: Path, wanted: Need) -> Path | None:
    """The Python of a finished environment; None when there is none."""
    folder = home / "steps" / wanted.key
    python = folder / "venv/bin/python"
    return python if (folder / "ready").is_file() and python.exists() else None


def install(home: Path, wanted: Need, *, python: Path | None = None, progress: Progress) -> Path:
    """Make the environment, unless it is there, and return its Python.

    `python` is tried before others of its series. Interrupted, it starts again; called twice at once, the second waits
    for the first. Raises `Refused` with what is missing and how to get it.
    """
    found = located(home, wanted)
    if found:
        return found
    lock = home / "steps" / f"{wanted.key}.lock"
    with _writing(home), alone(lock, "the same libraries", progress):
        found = located(home, wanted)
        return found or _made(home, wanted, python, progress)


def _made(home: Path, wanted: Need, python: Path | None, progress: Progress) -> Path:
    free = shutil.disk_usage(home).free
    if free < _SPACE:
        raise Refused(
            f"The model's Python step needs {_SPACE // 1_000_000} MB of disk for its libraries; {home} has "
            f"{free // 1_000_000} MB free. Make room, or set TAXIWAY_ENGINE_HOME to a folder on another disk."
        )
    if importlib.util.find_spec("pip") is None:
        raise Refused(f"{sys.executable} has no pip. Run `{sys.executable} -m ensurepip` (or add pip to it) first.")
    base = of_series(wanted.series, python)
    folder = home / "steps" / wanted.key
    # A virtual environment knows its own path, so it is built where it will stay: the mark comes last.
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    listed = folder / "requirements.txt"
    listed.write_text(wanted.requirements)
    venv = folder / "venv"
    count = len(wanted.requirements.split())
    progress(f"installing the Python step's {count} libraries for Python {wanted.series}")
    run([str(base), "-m", "venv", "--without-pip", str(venv)], "make a virtual environment for the Python step")
    pip = [sys.executable, "-m", "pip", "--python", str(venv / "bin/python"), "install", *PIP]
    run([*pip, "-r", str(listed)], "install what the model's Python step needs")
    run([str(venv / "bin/python"), "-I", "-c", "import numpy"], "use what the model's Python step needs")
    (folder / "ready").touch()
    return venv / "bin/python"


@contextmanager
def _writing(home: Path) -> Iterator[None]:
    try:
        (home / "steps").mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise Refused(f"The Python step's environment cannot be made in {home}: {error.strerror}") from error
