"""Kill each part of a platform that is in use."""

import os
import signal

import pytest

from tests.e2e.conftest import eventually
from tests.e2e.load import Load

pytestmark = pytest.mark.processes


@pytest.fixture
def answers(live):
    request = live.json("request", "risk")
    return lambda: Load(live.platform.address, "risk", request["body"], request["token"], clients=2)


def answering(answers, count=50):
    with answers() as callers:
        callers.reached(count)
    return callers.answers[(200, "1")] >= count


def test_a_killed_controller_costs_no_request_and_is_back(live, answers):
    pid = live.pid("controller")
    with answers() as callers:
        callers.reached(100)
        os.kill(pid, signal.SIGKILL)
        assert eventually(lambda: live.pid("controller") not in (None, pid))
        callers.reached(callers.total + 100)
    assert callers.failed == []
    live.settled()


def test_a_killed_envoy_is_back_with_the_same_traffic(live, answers):
    live.taxiway("traffic", "risk", "1=70", "2=30")
    pid = live.pid("gateway")
    os.kill(pid, signal.SIGKILL)
    assert eventually(lambda: live.pid("gateway") not in (None, pid))
    live.settled()
    assert live.revision(2)["carried_percent"] == 30
    with answers() as callers:
        callers.reached(300)
    assert callers.answers[(200, "1")]
    assert callers.answers[(200, "2")]


def test_a_killed_triton_is_back(live, answers):
    pid = live.revision(1)["pid"]
    os.kill(pid, signal.SIGKILL)
    assert eventually(lambda: live.revision(1)["pid"] not in (None, pid) and live.revision(1)["state"] == "ready")
    live.settled()
    assert answering(answers)


def test_a_killed_stub_is_found_although_triton_says_it_is_ready(live, answers):
    (stub,) = live.revision(1)["stubs"]
    os.kill(stub, signal.SIGKILL)
    assert eventually(lambda: live.revision(1)["stubs"] not in ([], [stub]) and live.revision(1)["state"] == "ready")
    live.settled()
    assert answering(answers)


def test_a_killed_keeper_costs_no_request_and_adopts_the_running_engine(live, answers):
    keeper, triton = live.pid("engine-risk-1"), live.revision(1)["pid"]
    with answers() as callers:
        callers.reached(100)
        os.kill(keeper, signal.SIGKILL)
        assert eventually(lambda: live.pid("engine-risk-1") not in (None, keeper))
        callers.reached(callers.total + 200)
    assert callers.failed == []
    live.settled()
    assert live.revision(1)["pid"] == triton


def test_while_one_of_two_is_down_the_other_answers_all(live, answers):
    live.taxiway("traffic", "risk", "1=50", "2=50")
    # With a file too many it is not started again, for as long as the test needs.
    extra = live.state / "catalog/risk/2/repository/extra"
    extra.touch()
    try:
        os.kill(live.revision(2)["pid"], signal.SIGKILL)
        assert eventually(lambda: live.revision(2)["carried_percent"] == 0 and live.status()["gateway"]["in_force"])
        with answers() as callers:
            callers.reached(200)
            assert callers.answers[(200, "2")] == 0
            extra.unlink()
            live.settled()
            callers.reached(callers.total + 200)
    finally:
        extra.unlink(missing_ok=True)
    assert callers.failed == []
    assert callers.answers[(200, "1")]
    assert callers.answers[(200, "2")]
