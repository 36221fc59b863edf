"""What every test package may use."""

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
