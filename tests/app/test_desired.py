from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from taxiway.app.desired import carried, model_traffic
from taxiway.core.revision import Revision
from taxiway.engine.status import Ports, Status
from taxiway.release.state import ModelState


def status(number, state="ready", ports=True):
    where = Ports(100 + number, 200 + number, 300 + number) if ports else None
    return Status("risk", number, state, "run", 1, 0.0, ports=where)


def routed(split, statuses, **more):
    model = ModelState("risk", {s.number: "d" for s in statuses}, split, **more)
    return model_traffic(model, {Revision("risk", s.number): s for s in statuses})


def test_a_held_revision_is_reachable_once_it_is_ready_and_not_before():
    assert [b.number for b in routed({1: 10000}, [status(1), status(2)], woken=2).backends] == [1, 2]
    assert [b.number for b in routed({1: 10000}, [status(1), status(2, "starting")], woken=2).backends] == [1]


def test_while_one_of_a_split_is_down_the_other_takes_its_share():
    assert routed({1: 9000, 2: 1000}, [status(1), status(2, "starting")]).split == {1: 10000}
    assert routed({1: 9000, 2: 1000}, [status(1, "failed"), status(2)]).split == {2: 10000}


def test_when_all_are_down_the_route_stays_so_that_they_answer_the_moment_they_are_back():
    assert routed({1: 10000}, [status(1, "starting")]).split == {1: 10000}


def test_a_revision_that_never_had_an_address_is_not_routed():
    traffic = routed({1: 10000}, [status(1, "failed", ports=False)])
    assert (traffic.backends, traffic.split) == ((), {})


def test_a_model_without_traffic_is_known_but_has_no_split():
    traffic = routed({}, [status(1)], woken=1)
    assert [b.number for b in traffic.backends] == [1]
    assert traffic.split == {}


def test_a_request_has_as_long_as_the_most_patient_routed_revision_says():
    model = ModelState("risk", {1: "d", 2: "d", 3: "d"}, {1: 10000}, woken=2)
    statuses = {Revision("risk", n): status(n, "ready" if n < 3 else "starting") for n in (1, 2, 3)}
    said = {Revision("risk", 1): 900, Revision("risk", 2): 2500, Revision("risk", 3): 60_000}
    assert model_traffic(model, statuses, said).timeout_ms == 2500
    assert model_traffic(replace(model, woken=None), statuses, said).timeout_ms == 900
    assert model_traffic(model, statuses).timeout_ms == 10_000
    assert model_traffic(model, {}, said).timeout_ms == 10_000


@given(st.dictionaries(st.integers(1, 9), st.integers(1, 9999), min_size=1), st.sets(st.integers(1, 9)))
def test_what_is_carried_goes_only_to_those_who_answer_and_is_never_less(split, answering):
    got = carried(split, answering)
    assert set(got) <= answering
    assert sum(got.values()) == (sum(split.values()) if set(split) & answering else 0)
