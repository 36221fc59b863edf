"""Desired traffic as text: the same bytes every time, complete, and without contradictions."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taxiway.core.errors import Refused
from taxiway.core.split import TOTAL
from taxiway.gateway import listener, render
from taxiway.gateway.desired import Address, Backend, Desired, Issuer, ModelTraffic

GOLDEN = Path(__file__).with_name("golden")
FOLDER = Path("/run/taxiway/xds")
JWKS = '{"keys": [{"kty": "RSA", "n": "…", "e": "AQAB"}]}'


def backend(number: int, port: int = 9000) -> Backend:
    return Backend(number, Address("127.0.0.1", port + 10 * number), Address("127.0.0.1", port + 10 * number + 1))


def desired(*models: ModelTraffic) -> Desired:
    return Desired(
        listen=Address("127.0.0.1", 8080),
        callers=Issuer("callers", "https://callers", "models", JWKS),
        operators=Issuer("operators", "https://operators", "operate", JWKS),
        models=models,
        access_log="/var/log/taxiway/access.log",
    )


CASES = {
    "empty": desired(),
    "one_revision": desired(ModelTraffic("risk", (backend(1),), {1: TOTAL})),
    "canary_and_idle_model": desired(
        ModelTraffic("risk", (backend(2), backend(1)), {1: 9000, 2: 1000}, timeout_ms=2500),
        ModelTraffic("ranker", (backend(7, 9500),), {}),
    ),
}


def shown(texts: dict[str, str]) -> dict[str, str]:
    """The guard has tests of its own; here its text, and the version that follows from it, would only be noise."""
    lds = texts["lds.json"].replace(json.dumps(listener.guard_source()), '"<guard>"')
    version = render.version_of(texts["lds.json"])
    return {**texts, "lds.json": lds.replace(version, "<version>")}


@pytest.mark.parametrize("name", CASES)
def test_the_files_are_the_golden_ones(name: str) -> None:
    # To accept a change: TAXIWAY_ACCEPT_GOLDEN=1 pytest tests/gateway/test_render.py
    folder = GOLDEN / name
    got = shown(render.render(CASES[name], FOLDER))
    if os.environ.get("TAXIWAY_ACCEPT_GOLDEN"):
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("*.json"):
            old.unlink()
        for file, text in got.items():
            (folder / file).write_text(text)
    assert got == {path.name: path.read_text() for path in folder.glob("*.json")}


def test_the_order_in_which_models_and_revisions_are_given_does_not_matter() -> None:
    one = CASES["canary_and_idle_model"]
    other = replace(
        one,
        models=tuple(replace(m, backends=m.backends[::-1], split=dict(reversed(m.split.items()))) for m in one.models)[
            ::-1
        ],
    )
    assert render.render(one, FOLDER) == render.render(other, FOLDER)


def test_a_weight_changes_the_route_table_and_nothing_else() -> None:
    one = CASES["canary_and_idle_model"]
    moved = replace(one, models=(replace(one.models[0], split={1: 8999, 2: 1001}), one.models[1]))
    before, after = render.render(one, FOLDER), render.render(moved, FOLDER)
    assert [name for name in before if before[name] != after[name]] == ["rds.json"]
    assert render.version_of(before["rds.json"]) != render.version_of(after["rds.json"])


numbers = st.lists(st.integers(1, 30), unique=True, max_size=5)


@st.composite
def traffics(draw: st.DrawFn, name: str) -> ModelTraffic:
    ready = draw(numbers)
    used = [n for n in ready if draw(st.booleans())]
    split = {n: TOTAL // len(used) for n in used}
    if used:
        split[used[0]] += TOTAL - sum(split.values())
    return ModelTraffic(name, tuple(backend(n) for n in ready), split)


@given(st.data())
def test_no_route_names_a_cluster_that_does_not_exist_and_every_cluster_has_endpoints(data: st.DataObject) -> None:
    models = [data.draw(traffics(name)) for name in data.draw(st.sets(st.sampled_from(["a", "b-c", "d_e"])))]
    files = render.render(desired(*models), FOLDER)
    known = {c["name"] for c in json.loads(files["cds.json"])["resources"]}
    assert set(named_clusters(json.loads(files["rds.json"]))) <= known
    assert {f"eds-{name}.json" for name in known} == {f for f in files if f.startswith("eds-")}


def named_clusters(value: object) -> list[str]:
    """Every cluster that a route sends to."""
    if isinstance(value, list):
        return [name for one in value for name in named_clusters(one)]
    if not isinstance(value, dict):
        return []
    here = [value["cluster"]] if "cluster" in value else []
    here += [c["name"] for c in value.get("weighted_clusters", {}).get("clusters", [])]
    return here + [name for one in value.values() for name in named_clusters(one)]


@pytest.mark.parametrize(
    ("models", "said"),
    [
        ([ModelTraffic("risk", (backend(1),), {2: TOTAL})], "risk@2 is given traffic but is not ready"),
        ([ModelTraffic("risk", (backend(1),), {1: 9999})], "add up to 10000"),
        ([ModelTraffic("risk", (backend(1), backend(2)), {1: TOTAL, 2: 0})], "must be positive"),
        ([ModelTraffic("risk", (backend(1), backend(1)), {})], "risk@1 is given twice"),
        ([ModelTraffic("risk", (), {}), ModelTraffic("risk", (), {})], "'risk' is given twice"),
        ([ModelTraffic("risk", (), {}, timeout_ms=0)], "timeout_ms is 0"),
        ([ModelTraffic("risk", (), {}, timeout_ms=3_600_001)], "timeout_ms is 3600001"),
    ],
)
def test_a_contradiction_is_refused_in_words(models: list[ModelTraffic], said: str) -> None:
    with pytest.raises(Refused, match=said):
        render.render(desired(*models), FOLDER)


def test_the_bootstrap_names_the_files_and_a_socket_that_only_its_owner_may_use() -> None:
    value = json.loads(render.bootstrap(FOLDER, Path("/run/taxiway/admin.sock")))
    assert value["admin"]["address"]["pipe"] == {"path": "/run/taxiway/admin.sock", "mode": 0o600}
    assert value["dynamic_resources"]["lds_config"]["path_config_source"]["path"] == "/run/taxiway/xds/lds.json"
    assert value["dynamic_resources"]["cds_config"]["path_config_source"]["path"] == "/run/taxiway/xds/cds.json"
