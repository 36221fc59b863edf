"""Stop and start everything; spoil what lies on disk in between."""

import os
import signal

import psutil
import pytest

from tests.e2e.conftest import EXAMPLES, eventually, left_behind
from tests.e2e.load import Load

pytestmark = pytest.mark.processes


@pytest.fixture
def two(site):
    site.taxiway("ship", str(EXAMPLES / "risk/notebook.ipynb"))
    site.taxiway("ship", str(EXAMPLES / "risk/notebook_v2.ipynb"), "--name", "risk")
    site.taxiway("traffic", "risk", "1=60", "2=40")
    return site


def test_a_restart_of_everything_keeps_revisions_and_traffic(two):
    before = [(r["number"], r["digest"], r["traffic_percent"]) for r in two.model()["revisions"]]
    two.taxiway("down")
    assert left_behind(two.state) == []
    assert two.taxiway("status", check=False).returncode == 1
    two.taxiway("up")
    assert [(r["number"], r["digest"], r["carried_percent"]) for r in two.model()["revisions"]] == before
    request = two.json("request", "risk")
    with Load(two.platform.address, "risk", request["body"], request["token"]) as callers:
        callers.reached(300)
    assert callers.failed == []
    assert callers.answers[(200, "1")]
    assert callers.answers[(200, "2")]


def test_starting_twice_is_one_start_and_everything_killed_at_once_is_started_afresh(two):
    assert "already running" in two.taxiway("up").stderr
    boss = int((two.state / "run/supervisord.pid").read_text())
    pids = [p["pid"] for p in two.status()["processes"]]
    for pid in [boss, *pids]:
        os.kill(pid, signal.SIGKILL)
    assert eventually(lambda: two.taxiway("status", check=False).returncode == 1)
    two.taxiway("up")
    two.settled()


def test_a_stop_ends_engines_whose_keepers_are_all_gone(two):
    engines = [two.revision(n)["pid"] for n in (1, 2)]
    boss = int((two.state / "run/supervisord.pid").read_text())
    for pid in [boss, *(p["pid"] for p in two.status()["processes"])]:
        os.kill(pid, signal.SIGKILL)
    assert two.taxiway("down").stdout.strip() == "stopped"
    assert not [pid for pid in engines if psutil.pid_exists(pid) and psutil.Process(pid).status() != "zombie"]
    assert left_behind(two.state) == []


def test_files_that_were_garbled_are_named_and_a_stop_works_all_the_same(two):
    settings = two.state / "platform.json"
    good = settings.read_text()
    settings.write_text('{"port"')
    refused = two.taxiway("status", check=False)
    assert (refused.returncode, "platform.json cannot be read" in refused.stderr) == (1, True)
    assert two.taxiway("down").stdout.strip() == "stopped"
    settings.write_text(good)
    for rest in two.state.glob("control.db*"):
        rest.unlink()
    for text, said in ((None, "is gone or cut short"), ("{", "is gone or cut short"), ("{" * 999, "cannot be used")):
        if text:
            (two.state / "control.db").write_text(text)
        refused = two.taxiway("up", check=False)
        assert (refused.returncode, f"control.db {said}" in refused.stderr) == (1, True), refused.stderr
    assert left_behind(two.state) == []


def test_a_lost_report_of_an_engine_is_written_again(two):
    for report in (two.state / "run/engines").glob("*.json"):
        report.write_text("{")
    two.settled()
    assert two.revision(1)["carried_percent"] == 60


def test_one_altered_byte_is_refused_and_the_others_take_the_traffic(two):
    two.taxiway("down")
    model = two.state / "catalog/risk/2/repository/risk/2/model.onnx"
    good = model.read_bytes()
    model.chmod(0o644)
    model.write_bytes(good[:100] + bytes([good[100] ^ 1]) + good[101:])
    done = two.taxiway("up", check=False)
    assert done.returncode == 1
    assert "model.onnx was changed" in done.stderr
    assert eventually(lambda: two.revision(1)["carried_percent"] == 100)
    assert two.revision(2)["state"] == "failed"
    assert "model.onnx was changed" in two.revision(2)["reason"]
    refused = two.taxiway("traffic", "risk", "2=100", check=False)
    assert refused.returncode == 1
    assert "model.onnx was changed" in refused.stderr
    model.write_bytes(good)
    two.settled()  # nothing to do but to restore the file
    assert two.revision(2)["carried_percent"] == 40


def test_stopping_what_is_stopped_is_no_error(site):
    site.taxiway("down")
    assert "nothing was running" in site.taxiway("down").stdout
