import pytest
from hypothesis import given
from hypothesis import strategies as st

from taxiway.core import split
from taxiway.core.errors import Usage


def test_a_split_is_read_in_hundredths_of_a_percent():
    assert split.parse(["2=90", "3=10"]) == {2: 9000, 3: 1000}
    assert split.parse(["2=99.99", "3=0.01"]) == {2: 9999, 3: 1}


def test_a_revision_at_zero_percent_gets_no_traffic_and_no_entry():
    assert split.parse(["2=100", "3=0"]) == {2: 10000}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["2"], "REVISION=PERCENT"),
        (["x=100"], "REVISION=PERCENT"),
        (["0=100"], "REVISION=PERCENT"),
        (["²=100"], "REVISION=PERCENT"),
        (["2=half"], "not a percentage"),
        (["2=nan"], "between 0 and 100"),
        (["2=inf"], "between 0 and 100"),
        (["2=-10", "3=110"], "between 0 and 100"),
        (["2=99.999", "3=0.001"], "finest step"),
        (["2=50", "2=50"], "named twice"),
        (["2=90", "3=20"], "add up to 110"),
        (["2=90"], "add up to 90"),
    ],
)
def test_a_wrong_split_is_refused_with_what_is_wrong(words, said):
    with pytest.raises(Usage, match=said):
        split.parse(words)


@given(st.dictionaries(st.integers(1, 99), st.integers(1, 10_000), min_size=1, max_size=5))
def test_whatever_is_accepted_adds_up_to_the_whole(weights):
    words = [f"{n}={w / 100:.2f}" for n, w in weights.items()]
    try:
        got = split.parse(words)
    except Usage:
        assert sum(weights.values()) != split.TOTAL
    else:
        assert got == weights
        assert sum(got.values()) == split.TOTAL
