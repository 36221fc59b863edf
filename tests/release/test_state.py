from hypothesis import given
from hypothesis import strategies as st

from taxiway.release.entries import ADMIT, RETIRE, ROLLBACK, SPLIT, WAKE, Entry
from taxiway.release.state import replay


def journal(*events):
    entries = []
    for action, value in events:
        if action in (SPLIT, ROLLBACK):
            detail = {"split": {str(n): w for n, w in value.items()}, "before": {}}
        else:
            detail = {"number": value, "digest": f"d{value}"}
        entries.append(Entry(len(entries) + 1, float(len(entries)), "ann", action, "risk", detail, ""))
    return entries


def state(*events):
    return replay(journal(*events)).models["risk"]


ONE_THEN_TWO = ((ADMIT, 1), (SPLIT, {1: 10000}), (ADMIT, 2))


def test_a_new_revision_is_live_and_held_without_traffic():
    risk = state(*ONE_THEN_TWO)
    assert risk.split == {1: 10000}
    assert risk.live() == {1, 2}


def test_during_a_canary_a_rollback_leads_to_the_one_that_answered_alone():
    assert state(*ONE_THEN_TWO, (SPLIT, {1: 9000, 2: 1000})).back() == 1


def test_after_a_promotion_the_previous_revision_stays_live_and_is_where_a_rollback_leads():
    risk = state(*ONE_THEN_TWO, (SPLIT, {1: 9000, 2: 1000}), (SPLIT, {2: 10000}))
    assert risk.back() == 1
    assert risk.live() == {1, 2}


def test_rolling_back_twice_goes_two_steps_back_and_never_forth_again():
    three = (*ONE_THEN_TWO, (SPLIT, {2: 10000}), (ADMIT, 3), (SPLIT, {3: 10000}))
    once = state(*three, (ROLLBACK, {2: 10000}))
    assert once.back() == 1
    twice = state(*three, (ROLLBACK, {2: 10000}), (ROLLBACK, {1: 10000}))
    assert twice.back() is None


def test_a_first_revision_has_nothing_to_go_back_to():
    assert state((ADMIT, 1), (SPLIT, {1: 10000})).back() is None


def test_a_retired_revision_is_not_live_but_one_with_traffic_stays():
    assert state(*ONE_THEN_TWO, (RETIRE, 2)).live() == {1}
    assert state(*ONE_THEN_TWO, (RETIRE, 1)).live() == {1, 2}


def test_an_old_revision_can_be_woken():
    risk = state(*ONE_THEN_TWO, (SPLIT, {2: 10000}), (ADMIT, 3), (SPLIT, {3: 10000}), (WAKE, 1))
    assert risk.live() == {1, 2, 3}


def test_entries_of_a_newer_version_change_nothing():
    assert state(*ONE_THEN_TWO, ("teleport", 9)) == state(*ONE_THEN_TWO)


@given(
    st.lists(
        st.one_of(
            st.tuples(st.sampled_from([ADMIT, WAKE, RETIRE]), st.integers(1, 5)),
            st.tuples(
                st.sampled_from([SPLIT, ROLLBACK]),
                st.sampled_from([{1: 10000}, {2: 10000}, {3: 10000}, {1: 5000, 2: 5000}, {2: 9999, 4: 1}]),
            ),
        ),
        min_size=1,
        max_size=30,
    )
)
def test_whatever_happened_what_answers_and_what_a_rollback_needs_is_live(events):
    risk = state(*events)
    assert set(risk.split) <= risk.live()
    assert risk.back() is None or risk.back() in risk.live()
    assert risk.split != {risk.back(): 10000}
    assert len(set(risk.stable)) == len(risk.stable)
