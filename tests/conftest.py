"""What every test package may use."""

import os

# One thread each for the arrays of all test processes: there is nothing to gain, and forks are safe.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import settings

from taxiway.engine.home import EngineHome, default_home
from taxiway.engine.install import install

# Time limits per example would fail on a busy machine for no fault of the code.
settings.register_profile("taxiway", deadline=None)
settings.load_profile("taxiway")


@pytest.fixture(scope="session")
def engine_home() -> EngineHome:
    """The installed engine, made on first use."""
    return install(default_home(), progress=print)
