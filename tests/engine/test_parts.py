"""The small deciders and codecs around a server."""

import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taxiway.core.errors import Refused
from taxiway.engine import backoff, ports, status
from taxiway.engine.command import command
from taxiway.engine.home import EngineHome
from taxiway.engine.spec import EngineSpec
from taxiway.engine.status import Ports, Status

HOME = EngineHome(Path("/h"), Path("/h/env"), Path("/h/env/backends"), Path("/lib/python"), "3.11.7")
SPEC = EngineSpec("risk", 2, Path("/r"), Path("/h"), Path("/s/status.json"), Path("/s/log"), exit_timeout_s=7)


def test_a_server_gets_one_model_loopback_and_a_name_of_its_own() -> None:
    argv = command(HOME, SPEC, Ports(1001, 1002, 1003), "tw01").argv
    assert argv[0] == "/h/env/triton/pytriton/tritonserver/bin/tritonserver"
    assert {a for a in argv if "address" in a} == {f"--{k}-address=127.0.0.1" for k in ("http", "grpc", "metrics")}
    assert {"--http-port=1001", "--grpc-port=1002", "--metrics-port=1003"} < set(argv)
    assert {"--model-control-mode=explicit", "--load-model=risk", "--disable-auto-complete-config"} < set(argv)
    assert {"--exit-timeout-secs=7", "--backend-config=python,shm-region-prefix-name=tw01_"} < set(argv)


def test_a_server_gets_only_the_environment_it_needs() -> None:
    env = command(HOME, SPEC, Ports(1, 2, 3), "tw01").env
    assert env["PATH"].startswith("/h/env/venv/bin:")
    assert env["LD_LIBRARY_PATH"] == "/h/env/triton/nvidia_pytriton.libs:/lib/python"
    assert set(env) == {"PATH", "LD_LIBRARY_PATH", "LANG", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"}


def test_a_server_that_had_served_is_replaced_at_once_and_then_ever_later() -> None:
    assert [backoff.delay(n, was_ready=True) for n in (1, 2, 3, 4, 5, 99)] == [0, 2, 4, 8, 10, 10]
    assert [backoff.delay(n, was_ready=False) for n in (1, 2, 99_999)] == [1, 2, 10]


def test_free_ports_are_the_preferred_ones_unless_one_is_taken() -> None:
    first = ports.free()
    assert len(set(first.each())) == 3
    assert ports.free(first) == first
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", first.grpc))
        taken.listen()
        assert first.grpc not in ports.free(first).each()


_ports = st.builds(Ports, *[st.integers(1, 65535)] * 3)
_status = st.builds(
    Status,
    model=st.text(),
    number=st.integers(1),
    state=st.sampled_from(["starting", "ready", "failed", "stopped"]),
    run=st.text(),
    keeper_pid=st.integers(1),
    since=st.floats(0, 1e10),
    pid=st.none() | st.integers(1),
    stubs=st.lists(st.integers(1)).map(tuple),
    ports=st.none() | _ports,
    reason=st.none() | st.text(),
    restarts=st.integers(0),
)


@given(_status)
def test_a_status_survives_its_file(tmp_path_factory: pytest.TempPathFactory, value: Status) -> None:
    path = tmp_path_factory.getbasetemp() / "status.json"
    status.write(path, value)
    assert status.read(path) == value


@pytest.mark.parametrize("text", ["", "{", "[]", '{"model": "m"}', '{"stubs": []}', '{"stubs": [], "more": 1}', "null"])
def test_a_status_that_cannot_be_read_is_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "status.json"
    assert status.read(path) is None
    path.write_text(text)
    assert status.read(path) is None


def test_a_spec_survives_its_file_and_a_broken_one_is_refused(tmp_path: Path) -> None:
    assert EngineSpec.from_json(SPEC.to_json()) == SPEC
    with pytest.raises(Refused, match="does not describe an engine"):
        EngineSpec.read(tmp_path / "nothing")
    for text in ('{"model": "m"}', "[]", "{"):
        (tmp_path / "spec").write_text(text)
        with pytest.raises(Refused, match="does not describe an engine"):
            EngineSpec.read(tmp_path / "spec")
