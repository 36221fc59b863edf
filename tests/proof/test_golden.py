import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taxiway.core.errors import Refused
from taxiway.proof.cases import Case
from taxiway.proof.golden import golden
from taxiway.proof.parity import Tolerance, compare

LIMITS = Tolerance(atol=3e-5, rtol=1e-4)


def numbered(rows, labels=None):
    """A case in which the input of each row is its number."""
    x = np.arange(rows, dtype=np.float32)[:, None]
    return Case({"X": x}, {"label": np.zeros((rows, 1), int) if labels is None else np.array(labels)[:, None]})


def singles(samples):
    return [int(s.inputs["X"].data[0]) for s in samples if s.name.startswith("row-")]


def batch(samples):
    (found,) = [s for s in samples if s.name.startswith("batch-")]
    return [int(v) for v in found.inputs["X"].data]


def test_single_rows_are_spread_over_all_rows_from_the_first_to_the_last():
    samples = golden([numbered(71)], [range(71)], LIMITS)
    assert singles(samples) == [0, 10, 20, 30, 40, 50, 60, 70]
    assert [s.name for s in samples] == [*(f"row-{i}" for i in range(1, 9)), "batch-of-5"]


def test_there_is_one_batch_of_five_different_rows():
    samples = golden([numbered(41)], [range(41)], LIMITS)
    assert batch(samples) == [0, 10, 20, 30, 40]
    assert samples[-1].inputs["X"].shape == (5, 1)


def test_few_rows_are_all_taken_and_one_row_makes_no_batch():
    samples = golden([numbered(3)], [range(3)], LIMITS)
    assert (singles(samples), batch(samples)) == ([0, 1, 2], [0, 1, 2])
    assert [s.name for s in golden([numbered(1)], [[0]], LIMITS)] == ["row-1"]


def test_every_label_is_there_even_a_rare_one():
    labels = np.zeros(100, int)
    labels[33], labels[34] = 7, 9
    samples = golden([numbered(100, labels)], [range(100)], LIMITS)
    assert {s.outputs["label"].data[0] for s in samples[:-1]} == {0, 7, 9}
    assert {33, 34} <= set(singles(samples))


def test_rare_text_labels_are_there_too():
    labels = np.array(["common"] * 50, dtype=object)
    labels[21] = "räre"
    samples = golden([numbered(50, labels)], [range(50)], LIMITS)
    assert "räre" in {s.outputs["label"].data[0] for s in samples}


def test_more_labels_than_there_is_room_for_do_not_make_more_samples():
    assert len(golden([numbered(100, range(100))], [range(100)], LIMITS)) == 12


def test_only_good_rows_are_ever_taken():
    labels = np.zeros(40, int)
    labels[5] = 1
    good = [i for i in range(40) if i % 3 == 0]
    samples = golden([numbered(40, labels)], [good], LIMITS)
    assert set(singles(samples)) | set(batch(samples)) <= set(good)


def test_rows_that_offend_or_hang_by_a_hair_are_never_kept():
    case = Case(
        {"X": np.arange(4, dtype=np.float32)[:, None]},
        {
            "label": np.array([[0], [1], [0], [1]]),
            "probabilities": np.array([[1, 0], [0, 1], [0.5, 0.5], [0, 1]], "f4"),
        },
    )
    wrong = case.expected | {"label": np.array([[0], [0], [0], [1]])}
    found = compare([case], [wrong], LIMITS)
    assert singles(golden([case], found.good, LIMITS)) == [0, 3]


def test_rows_are_spread_over_all_cases_and_the_batch_comes_from_the_largest():
    wide = Case({"X": np.full((30, 2), 9, np.float32)}, {"label": np.zeros((30, 1), int)})
    samples = golden([numbered(10), wide], [range(10), range(30)], LIMITS)
    assert {s.inputs["X"].shape for s in samples} == {(1, 1), (1, 2), (5, 2)}


def test_a_sample_holds_the_originals_answer_and_the_tolerance_it_was_proved_with():
    sample = golden([numbered(1, [4])], [[0]], LIMITS)[0]
    assert sample.outputs["label"].data == (4,)
    assert sample.outputs["label"].shape == (1, 1)
    assert (sample.atol, sample.rtol) == (3e-5, 1e-4)


@pytest.mark.parametrize("good", [[[]], [[], []]])
def test_without_one_good_row_there_is_nothing_to_prove_an_engine_with(good):
    with pytest.raises(Refused, match="no answer of the model is certain") as no:
        golden([numbered(3)] * len(good), good, LIMITS)
    assert no.value.code == "no-golden"


@given(st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=60), min_size=1, max_size=4), st.data())
def test_samples_are_few_different_and_good_whatever_the_rows(labels, data):
    cases = [numbered(len(each), each) for each in labels]
    good = [sorted(data.draw(st.sets(st.integers(0, len(each) - 1)))) for each in labels]
    if not any(good):
        return
    samples = golden(cases, good, LIMITS)
    assert 1 <= len(samples) <= 16
    assert sum(s.name.startswith("batch") for s in samples) <= 1
    assert len({s.name for s in samples}) == len(samples)
    assert len(singles(samples)) >= min(8, sum(map(len, good)))
    certain = {labels[c][row] for c, rows in enumerate(good) for row in rows}
    shown = {s.outputs["label"].data[0] for s in samples if s.name.startswith("row-")}
    assert shown <= certain
    assert len(shown) >= min(len(certain), 3)
    assert set(singles(samples)) <= {row for rows in good for row in rows}
