"""Gate 2 on what taxiway.yaml has made of a build."""

import pytest
from tests.gates.repositories import GOOD, contract

from taxiway.app import ship
from taxiway.app.config import read
from taxiway.app.config.model import Config
from taxiway.core.errors import Refused
from taxiway.gates.mistake import Machine


class Said(list):
    """The steps of a ship that keep what is said."""

    say = list.append


@pytest.fixture
def gate(tmp_path, monkeypatch):
    """Gate 2 over a good repository with what a text for taxiway.yaml says of serving; what it had to say."""
    monkeypatch.setattr(ship, "machine", lambda: Machine(cores=2, memory=1 << 30))

    def gate(text):
        (tmp_path / "taxiway.yaml").write_text(text)
        config = read.read(tmp_path / "taxiway.yaml")
        serving, said = config.serving, Said()
        pbtxt = GOOD["m/config.pbtxt"].decode()
        pbtxt = pbtxt.replace("count: 1", f"count: {serving.instances}")
        delay = f"dynamic_batching {{ max_queue_delay_microseconds: {serving.queue_delay_us} }}"
        files = {f"repository/{p.replace('/1/', '/{number}/')}": data for p, data in GOOD.items()}
        files["repository/m/config.pbtxt"] = pbtxt.replace("dynamic_batching { }", delay).encode()
        ship._validate("m", files, contract(8), config, said)
        return said

    return gate


def test_instances_that_do_not_fit_are_refused_with_the_key_that_asked_for_them(gate, tmp_path):
    with pytest.raises(Refused) as no:
        gate("model: m\nserving:\n  instances: 7\n")
    assert no.value.code == "gate-2"
    assert no.value.reasons[1:] == (
        "m/config.pbtxt:6:20: error: 7 instances need about 1050 MB, 1024 MB are free",
        f"{tmp_path}/taxiway.yaml:3:3: serving.instances: 7 copies of the model are asked for here; "
        "fewer need less memory",
    )


def test_more_instances_than_cores_are_told_and_shipped(gate):
    assert gate("serving: {instances: 2}") == []
    assert gate("serving: {instances: 3}") == [
        "m/config.pbtxt:6:20: warning: 3 instances share 2 cores; more than one a core is slower, not faster"
    ]


def test_a_wait_for_a_batch_is_held_against_the_timeout_that_ships_with_it(gate):
    assert gate("serving: {queue_delay_us: 2000}") == []
    (said,) = gate("serving: {queue_delay_us: 2000, timeout_ms: 10}")
    assert "warning: every request may wait 2 of the 10 ms that it has" in said


def test_only_what_the_contract_contradicts_has_a_place_in_the_configuration(tmp_path):
    (tmp_path / "taxiway.yaml").write_text("contract: {outputs: {y: {min: 0}}}\n")
    config = read.read(tmp_path / "taxiway.yaml")
    for code, before in (("contract", f"{tmp_path}/taxiway.yaml:1:22: "), ("parity", "")):
        with pytest.raises(Refused) as no, ship._placed(config):
            raise Refused("contract.outputs.y: min 0 contradicts", "another", code=code)
        assert (no.value.reasons, no.value.code) == (
            (f"{before}contract.outputs.y: min 0 contradicts", "another"),
            code,
        )
    with pytest.raises(Refused, match=r"^contract\.outputs\.y: no"), ship._placed(Config()):
        raise Refused("contract.outputs.y: no", code="contract")
