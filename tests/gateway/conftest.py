"""Gateways for the tests of this room."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from gateway_harness import Gateway, gateway_in, serving

from taxiway.core.split import TOTAL


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    """A gateway that is not started yet."""
    with gateway_in(tmp_path) as one:
        yield one


@pytest.fixture(scope="module")
def risk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A running gateway: revision 1 of `risk` has all traffic, 2 is ready; `idle` has none."""
    with gateway_in(tmp_path_factory.mktemp("gateway")) as one:
        yield serving(one, one.model("risk", {1: TOTAL}, 2), one.model("idle", {}, 1))
