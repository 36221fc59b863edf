"""Served models and keepers."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from kept import Keep, Kept, keeping
from small_models import CONTRACTS, MODELS, put, row

from taxiway.catalog.pbtxt import config_pbtxt
from taxiway.core.sample import Golden
from taxiway.engine.home import EngineHome


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Triton repository with the models `risk`, `items`, `text` and `root`, all as version 1."""
    root = tmp_path_factory.mktemp("repository")
    for name, make in MODELS.items():
        put(root, name, make(), config_pbtxt(name, CONTRACTS[name], scalars=frozenset({"scores"})))
    return root


@pytest.fixture
def keep(engine_home: EngineHome, repository: Path, tmp_path: Path) -> Iterator[Keep]:
    """Makes keepers (not yet started) and ends whatever they have left."""
    with keeping(engine_home.root, repository, tmp_path) as make:
        yield make


@pytest.fixture(scope="session")
def served(
    engine_home: EngineHome, repository: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Kept]]:
    """All models of the repository, served: for tests that only ask."""
    with keeping(engine_home.root, repository, tmp_path_factory.mktemp("served")) as make:
        running = {name: make(name).start() for name in CONTRACTS}
        yield {name: one.ready() for name, one in running.items()}


@pytest.fixture(scope="session")
def golden(served: dict[str, Kept], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A golden sample of `risk`."""
    inputs = {"X": row()}
    path = tmp_path_factory.mktemp("golden") / "golden.json"
    path.write_text(json.dumps(Golden("ones", inputs, served["risk"].infer(inputs)).to_json()))
    return path
