"""Moving traffic under load."""

import math

import pytest

from tests.e2e.load import Load

pytestmark = pytest.mark.processes


@pytest.fixture
def load(live):
    request = live.json("request", "risk")
    return lambda **more: Load(live.platform.address, "risk", request["body"], request["token"], **more)


def test_a_split_of_90_to_10_is_kept_within_statistical_bounds(live, load):
    live.taxiway("traffic", "risk", "1=90", "2=10")
    with load() as callers:
        callers.reached(6000)
    n, k = callers.total, callers.answers[(200, "2")]
    assert callers.failed == []
    assert abs(k - 0.1 * n) < 4 * math.sqrt(n * 0.1 * 0.9), (k, n)


def test_a_rollback_under_load_loses_no_request(live, load):
    live.taxiway("traffic", "risk", "2=100")
    with load() as callers:
        callers.reached(500, "2")
        done = live.json("rollback", "risk", "--reason", "test")
        before = callers.answers[(200, "2")]
        callers.reached(500, "1")
        after = callers.answers[(200, "2")]
    assert callers.failed == []
    assert done["after"] == {"1": 100.0}
    assert after - before < 500  # those under way at the moment of the switch


def test_moving_back_and_forth_under_load_loses_no_request(live, load):
    with load() as callers:
        for share in (1, 5, 25, 50, 100, 0):
            split = [f"1={100 - share}", f"2={share}"]
            live.taxiway("traffic", "risk", *split)
            callers.reached(callers.total + 200)
    assert callers.failed == []
    assert callers.answers[(200, "2")] > 0


def test_every_change_is_in_the_history_with_who_and_why(live):
    live.taxiway("traffic", "risk", "1=50", "2=50", "--reason", "half and half")
    live.taxiway("rollback", "risk", "--reason", "second thoughts")
    *_, moved, back = live.json("history", "risk")
    assert (moved["action"], moved["reason"]) == ("split", "half and half")
    assert moved["detail"] == {"before": {"1": 10000}, "split": {"1": 5000, "2": 5000}}
    assert (back["action"], back["reason"], back["detail"]["split"]) == ("rollback", "second thoughts", {"1": 10000})
    assert back["actor"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("traffic", "risk", "1=90", "2=20"), 2, "add up to 110"),
        (("traffic", "risk", "1"), 2, "REVISION=PERCENT"),
        (("traffic", "risk", "9=100"), 1, "no revision 9; it has 1, 2"),
        (("traffic", "nobody", "1=100"), 1, "no model 'nobody'; models: recommend, risk"),
        (("rollback", "risk", "--to", "9"), 1, "no revision 9"),
        (("rollback", "recommend"), 1, "nothing to go back to"),
        (("traffic", "Risk!", "1=100"), 2, "model name 'Risk!'"),
        (("history", "nobody"), 1, "no model 'nobody'"),
    ],
)
def test_a_wrong_word_changes_nothing_and_says_what_is_right(live, words, code, said):
    before = live.model()["revisions"], len(live.json("history", "risk"))
    done = live.taxiway(*words, check=False)
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr
    assert (live.model()["revisions"], len(live.json("history", "risk"))) == before
