"""Servers that come back, are taken over, and leave nothing behind."""

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from kept import Keep, Kept, left
from small_models import CONTRACTS, put, row

from taxiway.catalog.pbtxt import config_pbtxt
from taxiway.core.errors import Refused
from taxiway.core.sample import Golden, Tensor
from taxiway.engine import client, proc, server, status
from taxiway.engine.client import EngineError
from taxiway.engine.home import EngineHome
from taxiway.engine.keeper import sweep

pytestmark = pytest.mark.processes
NOTHING: tuple[list[int], list[str]] = ([], [])
ASK = {"X": row()}


def test_a_ready_server_listens_on_loopback_only_and_reports_its_processes(served: dict[str, Kept]) -> None:
    now = served["risk"].status
    assert (now.state, now.reason, now.restarts) == ("ready", None, 0)
    assert now.pid
    assert now.ports
    assert len(now.stubs) == 1
    listening = {c.laddr for c in psutil.Process(now.pid).net_connections() if c.status == psutil.CONN_LISTEN}
    assert {a.port for a in listening} == set(now.ports.each())
    assert {a.ip.removeprefix("::ffff:") for a in listening} == {"127.0.0.1"}
    assert proc.listens(now.pid, now.ports.each())
    assert not proc.listens(os.getpid(), now.ports.each())


def test_a_killed_server_is_replaced_on_the_same_ports(keep: Keep) -> None:
    kept = keep("risk").start().ready()
    before = kept.status
    assert before.pid
    os.kill(before.pid, signal.SIGKILL)
    after = kept.replaced(before.run)
    assert kept.infer(ASK)
    assert (after.ports, after.restarts) == (before.ports, 1)
    assert after.reason == "tritonserver was ended by SIGKILL"
    assert left(before.run) == NOTHING


def test_a_killed_stub_takes_its_server_with_it_and_both_are_replaced(keep: Keep) -> None:
    kept = keep("risk").start().ready()
    before = kept.status
    os.kill(before.stubs[0], signal.SIGKILL)
    after = kept.replaced(before.run)
    assert kept.infer(ASK)
    assert after.reason == f"a process that runs the model (pid {before.stubs[0]}) ended"
    assert left(before.run) == NOTHING


def test_a_server_that_dies_again_and_again_under_load_leaves_no_orphans(keep: Keep) -> None:
    kept = keep("risk").start().ready()
    runs = []
    with asking(kept):
        for _ in range(3):
            before = kept.status
            assert before.pid
            runs.append(before.run)
            os.kill(before.pid, signal.SIGKILL)
            kept.replaced(before.run)
    assert [left(run) for run in runs] == [NOTHING] * 3


def test_a_stub_that_hangs_is_noticed_by_the_golden_sample(keep: Keep, golden: Path) -> None:
    kept = keep("risk", canary=golden, canary_every_s=0.2, canary_timeout_s=1).start().ready()
    before = kept.status
    os.kill(before.stubs[0], signal.SIGSTOP)
    after = kept.replaced(before.run)
    assert after.reason
    assert "golden sample 'ones' was not answered" in after.reason
    assert left(before.run) == NOTHING


def test_a_server_that_answers_the_golden_sample_wrongly_is_never_ready(
    keep: Keep, golden: Path, tmp_path: Path
) -> None:
    right = Golden.from_json(json.loads(golden.read_text()))
    other = replace(right, outputs={"probabilities": Tensor("FP32", (1, 2), (9.0, 9.0))})
    wrong = tmp_path / "wrong.json"
    wrong.write_text(json.dumps(other.to_json()))
    kept = keep("risk", canary=wrong).start()
    failed = kept.until(lambda s: s.state in ("failed", "ready"))
    assert failed.state == "failed"
    assert failed.reason
    assert failed.reason.startswith("ones: output 'probabilities'[0] is ")


@contextmanager
def asking(kept: Kept, clients: int = 4) -> Iterator[list[str]]:
    """Requests flow while the body runs; yields what failed."""
    failed: list[str] = []
    over = threading.Event()
    answered = threading.Barrier(clients + 1)

    def ask() -> None:
        address, first = kept.address, True
        while not over.is_set():
            try:
                client.infer(address, kept.spec.model, ASK)
            except EngineError as error:
                failed.append(str(error))
            if first:
                answered.wait()
                first = False

    threads = [threading.Thread(target=ask) for _ in range(clients)]
    for thread in threads:
        thread.start()
    answered.wait()
    try:
        yield failed
    finally:
        over.set()
        for thread in threads:
            thread.join()


def test_a_killed_keeper_costs_no_request_and_its_successor_takes_the_server_over(keep: Keep) -> None:
    kept = keep("risk").start().ready()
    before = kept.status
    with asking(kept) as failed:
        kept.kill()
        kept.start()
        after = kept.until(lambda s: s.keeper_pid != before.keeper_pid and s.state == "ready")
        kept_on = time.monotonic() + 0.5
        while time.monotonic() < kept_on:
            assert kept.infer(ASK)
    assert failed == []
    assert (after.run, after.pid, after.stubs, after.since) == (before.run, before.pid, before.stubs, before.since)
    # The new keeper watches as the old one did, and can stop what it did not start.
    os.kill(before.stubs[0], signal.SIGKILL)
    last = kept.replaced(before.run)
    kept.kill()
    kept.start().until(lambda s: s.keeper_pid != after.keeper_pid)
    assert kept.stop() == 0
    assert left(last.run) == NOTHING


def test_a_server_that_was_still_starting_is_taken_over_too(keep: Keep) -> None:
    kept = keep("risk").start()
    before = kept.until(lambda s: s.pid is not None)
    kept.kill()
    # The keeper may be killed before it has noted the pid.
    status.write(kept.spec.status_file, replace(before, pid=None))
    after = kept.start().until(lambda s: s.state == "ready")
    assert (after.run, after.pid, after.restarts) == (before.run, before.pid, 0)


@pytest.mark.parametrize("victims", ["server", "stub", "server and stub"])
def test_what_died_while_no_keeper_looked_is_cleared_away_and_replaced(keep: Keep, victims: str) -> None:
    kept = keep("risk").start().ready()
    before = kept.status
    assert before.pid
    with asking(kept):  # under load the stub of a killed server lives on
        kept.kill()
        for pid in ([before.pid] if "server" in victims else []) + (list(before.stubs) if "stub" in victims else []):
            os.kill(pid, signal.SIGKILL)
    assert server.lives(before) is ("server" not in victims)
    kept.start()
    after = kept.replaced(before.run)
    assert after.ports == before.ports
    assert kept.infer(ASK)
    assert left(before.run) == NOTHING


def test_sigterm_leaves_no_process_and_no_shared_memory(keep: Keep) -> None:
    kept = keep("risk").start().ready()
    run = kept.status.run
    assert left(run) != NOTHING
    assert kept.stop() == 0
    assert (kept.status.state, kept.status.pid, kept.status.stubs) == ("stopped", None, ())
    assert left(run) == NOTHING
    again = kept.start().until(lambda s: s.state == "ready")
    assert (again.restarts, again.reason) == (0, None)


def test_sigterm_while_starting_or_waiting_is_obeyed_at_once(keep: Keep, tmp_path: Path) -> None:
    starting = keep("risk").start()
    run = starting.until(lambda s: s.pid is not None).run
    assert starting.stop() == 0
    assert left(run) == NOTHING
    put(tmp_path / "r", "bad", b"not a model", config_pbtxt("bad", CONTRACTS["risk"]))
    waiting = keep("bad", repository=tmp_path / "r").start()
    waiting.until(lambda s: s.state == "failed")
    assert waiting.stop() == 0
    assert waiting.status.state == "stopped"
    assert left(waiting.status.run) == NOTHING


def test_a_corrupt_model_fails_with_its_cause(keep: Keep, tmp_path: Path) -> None:
    put(tmp_path / "r", "bad", b"not a model", config_pbtxt("bad", CONTRACTS["risk"]))
    kept = keep("bad", repository=tmp_path / "r").start()
    failed = kept.until(lambda s: s.state == "failed")
    assert failed.reason
    assert failed.reason.startswith("bad/1/model.onnx cannot be loaded: ")
    assert "protobuf" in failed.reason.lower()
    assert left(failed.run) == NOTHING


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("TYPE_FP32\n  dims: 30", "TYPE_FP64\n  dims: 30"), "input 'X' is TYPE_FP32 in the model and TYPE_FP64"),
        (("dims: 30", "dims: 31"), "input 'X' has shape [-1, 30] in the model and [-1, 31] as configured"),
        (('"probabilities"', '"scores"'), "the model has no output 'scores'; its outputs are label, probabilities"),
        (('\\"finite\\"', '\\"final\\"'), "parameter taxiway_contract: unknown key 'final'"),
        (
            ("max_batch_size", "max_batch"),
            'config.pbtxt: 3:10: Message type "inference.ModelConfig" has no field named "max_batch".',
        ),
    ],
    ids=["dtype", "dims", "name", "contract", "syntax"],
)
def test_a_configuration_that_does_not_fit_fails_with_its_cause(
    keep: Keep, repository: Path, tmp_path: Path, change: tuple[str, str], words: str
) -> None:
    shutil.copytree(repository / "risk", tmp_path / "r" / "risk")
    config = tmp_path / "r" / "risk" / "config.pbtxt"
    assert change[0] in config.read_text()
    config.write_text(config.read_text().replace(*change))
    failed = keep("risk", repository=tmp_path / "r").start().until(lambda s: s.state == "failed")
    assert failed.reason
    assert words in failed.reason


def test_without_an_engine_nothing_starts_and_the_way_out_is_named(keep: Keep, tmp_path: Path) -> None:
    kept = keep("risk", home=tmp_path / "nowhere").start()
    assert kept.process
    assert kept.process.wait(timeout=30) == 1
    assert kept.status.state == "failed"
    assert kept.status.reason
    assert "Run `taxiway engine install`" in kept.status.reason
    assert kept.status.reason in kept.said


def test_without_the_revisions_files_nothing_starts(keep: Keep) -> None:
    kept = keep("risk", number=7).start()
    assert kept.process
    assert kept.process.wait(timeout=30) == 1
    assert "must be in place before its engine starts" in kept.said


def test_a_port_that_somebody_else_took_is_left_to_them(keep: Keep) -> None:
    kept = keep("risk").start().ready()
    before = kept.status
    assert kept.stop() == 0
    assert before.ports
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", before.ports.http))
        other.listen()
        kept.start().ready()
        assert kept.status.ports
        assert before.ports.http not in kept.status.ports.each()
        assert kept.infer(ASK)


def test_a_second_keeper_of_the_same_revision_is_refused(keep: Keep) -> None:
    first = keep("risk").start().ready()
    run = first.status.run
    second = keep("risk").start()
    assert second.process
    assert second.process.wait(timeout=30) == 1
    assert f"Another keeper is at work on {second.spec.status_file}." in second.said
    assert first.status.run == run
    assert first.infer(ASK)


def test_a_status_file_of_another_revision_is_not_touched(keep: Keep, tmp_path: Path) -> None:
    first = keep("risk").start().ready()
    other = keep("text", status_file=first.spec.status_file).start()
    first.kill()
    other = keep("text", status_file=first.spec.status_file).start()
    assert other.process
    assert other.process.wait(timeout=30) == 1
    assert "belongs to risk@1" in other.said
    assert first.infer(ASK)


def test_a_stub_that_cannot_start_fails_at_the_deadline_and_leaves_nothing(
    keep: Keep, engine_home: EngineHome, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    environment = home / engine_home.environment.name
    environment.mkdir(parents=True)
    for name in ("venv", "triton"):
        (environment / name).symlink_to(engine_home.environment / name)
    backends = environment / engine_home.backends.name
    shutil.copytree(engine_home.backends, backends)
    shutil.copyfile(engine_home.root / "current.json", home / "current.json")
    stubs = engine_home.environment / "triton/pytriton/tritonserver/python_backend_stubs"
    stub = backends / "python" / "triton_python_backend_stub"
    shutil.copyfile(stubs / "3.8" / stub.name, stub)
    kept = keep("risk", home=home, start_deadline_s=2).start()
    failed = kept.until(lambda s: s.state == "failed")
    assert failed.reason
    assert failed.reason.startswith("not ready within 2 s: ")
    assert "libpython3.8.so.1.0: cannot open shared object file" in failed.reason
    assert left(failed.run) == NOTHING
    assert kept.stop() == 0
    assert left(kept.status.run) == NOTHING


def test_a_large_log_is_set_aside_at_the_next_start(keep: Keep) -> None:
    kept = keep("text")
    with kept.spec.log_file.open("wb") as log:
        log.truncate(20_000_001)
    kept.start().ready()
    assert kept.spec.log_file.stat().st_size < 1_000_000
    assert kept.spec.log_file.with_name("text.log.1").stat().st_size == 20_000_001


def test_a_running_server_is_taken_over_even_when_its_engine_has_been_replaced(keep: Keep, tmp_path: Path) -> None:
    kept = keep("risk").start().ready()
    before = kept.status
    kept.kill()
    successor = keep("risk", home=tmp_path / "nowhere").start()
    after = successor.until(lambda s: s.keeper_pid != before.keeper_pid)
    assert (after.state, after.pid) == ("ready", before.pid)
    assert before.pid
    os.kill(before.pid, signal.SIGKILL)
    failed = successor.until(lambda s: s.state == "failed" and "taxiway engine install" in (s.reason or ""))
    assert left(failed.run) == NOTHING


def test_a_request_that_kills_the_server_costs_moments(keep: Keep) -> None:
    kept = keep("risk").start().ready()
    before = kept.status
    body = b'{"inputs":[{"name":"X","shape":[1099511627776,20],"datatype":"FP32","data":[1]}]}'
    connection = http.client.HTTPConnection(kept.address, timeout=20)
    connection.request("POST", "/v2/models/risk/infer", body)
    with pytest.raises((http.client.HTTPException, OSError)):
        connection.getresponse()
    connection.close()
    after = kept.replaced(before.run)
    assert after.reason
    assert "SIGABRT" in after.reason
    assert kept.infer(ASK)


def test_what_a_killed_keeper_left_can_be_swept_away(keep: Keep) -> None:
    kept = keep("risk").start().ready()
    with pytest.raises(Refused, match="Another keeper is at work"):
        sweep(kept.spec.status_file)
    kept.kill()
    assert left(kept.status.run) != NOTHING
    sweep(kept.spec.status_file)
    assert left(kept.status.run) == NOTHING
    assert (kept.status.state, kept.status.pid) == ("stopped", None)


def test_a_stop_that_comes_while_a_keeper_is_loading_ends_its_predecessors_server(keep: Keep) -> None:
    kept = keep("risk").start().ready()
    run = kept.status.run
    for delay in (0.05, 0.1, 0.15):
        kept.kill()
        kept.start()
        time.sleep(delay)  # the moment is the point: after Python's own start, before or after the keeper's
        assert kept.stop() in (0, -signal.SIGTERM)
        if left(run) == NOTHING:
            return
    raise AssertionError("the server outlived three stops")


def test_a_status_written_by_hand_cannot_name_other_peoples_processes() -> None:
    bystander = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", "abc_"])
    try:
        for run in ("abc", "", "none"):
            server.clear(run, bystander.pid)
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()
