"""The engine's own environment."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from taxiway.app.build.builder import Built
from taxiway.engine import steps
from taxiway.engine.home import EngineHome, default_home
from taxiway.engine.install import install


def install_engine(python: Path | None, progress: Callable[[str], None]) -> EngineHome:
    """Make it where this Python looks for it, if it is not there; raises `Refused`."""
    return install(default_home(), python=python, progress=progress)


def install_step(built: Built, python: Path | None, progress: Callable[[str], None]) -> None:
    """Make the environment of a build's Python step, if it has one, before an engine needs it; raises `Refused`.

    `python` is the interpreter that the notebook ran in.
    """
    if built.step:
        files = (built.folder / "step.json", built.folder / "step-requirements.txt")
        steps.install(default_home(), steps.read(files), python=python, progress=progress)
