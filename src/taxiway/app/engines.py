"""The engine's own environment."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from taxiway.engine.home import EngineHome, default_home
from taxiway.engine.install import install


def install_engine(python: Path | None, progress: Callable[[str], None]) -> EngineHome:
    """Make it where this Python looks for it, if it is not there; raises `Refused`."""
    return install(default_home(), python=python, progress=progress)
