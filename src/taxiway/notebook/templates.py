"""The texts that a package is made of; `package.py` fills them in."""

from __future__ import annotations

from typing import Final

TRAIN: Final = '''"""Trains `{model}` as {notebook} does, from a clean start."""

{imports}

{own}
logger = logging.getLogger(__name__)

{confined}
{decorator}def train() -> tuple[Any, dict[str, float]]:
    """The fitted model, and its metrics by name."""
{body}

    metrics: dict[str, float] = {metrics}
    return {result}, metrics


def save(model: Any) -> None:
    """Write the model beside its checksum, which `inference.load` compares."""
    aside = MODEL_FILE.with_suffix(".part")
    joblib.dump(model, aside)
    digest = hashlib.sha256(aside.read_bytes()).hexdigest()
    MODEL_FILE.with_suffix(".sha256").write_text(digest + "\\n")
    aside.replace(MODEL_FILE)


def main() -> None:
    """Train, say how good it is, save."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    model, metrics = train()
    for name, value in metrics.items():
        logger.info("%s %.6g", name, value)
    save(model)
    logger.info("saved to %s", MODEL_FILE)


if __name__ == "__main__":
    main()
'''

CONFINED: Final = '''
def confined_randomness(function):  # type: ignore[no-untyped-def]
    """Have `function` seed the random generators of the process, and put them back as they were."""
    import functools
    import random

    import numpy

    @functools.wraps(function)
    def confined(*args: Any, **kwargs: Any) -> Any:
        numbers, plain = numpy.random.get_state(), random.getstate()
        try:
            import torch
        except ImportError:
            torch = None  # type: ignore[assignment]
        tensors = torch.get_rng_state() if torch is not None else None
        try:
            return function(*args, **kwargs)
        finally:
            numpy.random.set_state(numbers)
            random.setstate(plain)
            if torch is not None:
                torch.set_rng_state(tensors)

    return confined

'''

INFERENCE: Final = '''"""Answers of `{model}`."""

import functools
import hashlib
from typing import Any

import joblib

from {package}.settings import MODEL_FILE


@functools.cache
def load() -> Any:
    """The saved model. A model file is code: it is opened only when it is the one that `train.save` wrote."""
    data = MODEL_FILE.read_bytes()
    if hashlib.sha256(data).hexdigest() != MODEL_FILE.with_suffix(".sha256").read_text().strip():
        raise ValueError(f"{{MODEL_FILE}} is not the file that was saved; train again: python -m {package}.train")
    return joblib.load(MODEL_FILE)


def predict(rows: Any) -> Any:
    """The model's answers to raw rows."""
    model = load()
    return model.predict(rows) if hasattr(model, "predict") else model(rows)
'''

SETTINGS: Final = '''"""What differs between machines: environment variables over the notebook's own values."""

import os
from pathlib import Path

PREFIX = "{prefix}_"
DEFAULTS: dict[str, str] = {{
{defaults}}}
MODEL_FILE = Path(os.environ.get(PREFIX + "MODEL_FILE", "model.joblib"))


def path(name: str) -> Path:
    """The file of the setting `name`."""
    return Path(os.environ.get(PREFIX + name, DEFAULTS[name])).expanduser()
'''

PROJECT: Final = """[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "{model}"
version = "0.1.0"
description = "{model}, taken from {notebook}"
requires-python = ">=3.11"
dependencies = [
{pins}]

[tool.setuptools]
packages = ["{package}"]

[tool.setuptools.package-data]
{package} = ["py.typed"]
"""

PRE_COMMIT: Final = """# Keeps outputs out of notebooks and code tidy: pre-commit install
repos:
  - repo: local
    hooks:
      - id: nbstripout
        name: strip the outputs of notebooks
        entry: nbstripout
        language: python
        additional_dependencies: ["nbstripout>=0.7,<1"]
        files: \\.ipynb$
      - id: ruff
        name: ruff
        entry: ruff check --force-exclude
        language: python
        additional_dependencies: ["ruff>=0.9"]
        types_or: [python]
"""

README: Final = """# {model}

Taken from {notebook}.

    pip install -r requirements.txt
    python -m {package}.train        # trains, says how good it is, saves the model
    python -m pytest tests

Settings (environment variables):

{settings}"""

TESTS: Final = '''"""Training gives what the notebook gave, and what is saved answers alike."""

import numpy as np
import pytest

from {package} import inference, settings, train


@pytest.fixture(scope="module")
def trained():
    return train.train()

{score}
def test_what_was_saved_is_what_was_trained(trained, tmp_path, monkeypatch):
    for module in (train, inference):
        monkeypatch.setattr(module, "MODEL_FILE", tmp_path / settings.MODEL_FILE.name)
    inference.load.cache_clear()
    train.save(trained[0])
    assert type(inference.load()) is type(trained[0])


def test_a_model_file_that_was_changed_is_not_opened(trained, tmp_path, monkeypatch):
    for module in (train, inference):
        monkeypatch.setattr(module, "MODEL_FILE", tmp_path / settings.MODEL_FILE.name)
    inference.load.cache_clear()
    train.save(trained[0])
    with inference.MODEL_FILE.open("ab") as file:
        file.write(b"x")
    with pytest.raises(ValueError, match="not the file that was saved"):
        inference.load()
'''

TEST_SCORE: Final = """
def test_the_score_is_that_of_the_notebook(trained):
    assert np.isclose(trained[1]["score"], {score}, rtol=1e-6)

"""
