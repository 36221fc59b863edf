import json

import numpy as np
import pytest
from onnx_models import chain, over_the_batch

from taxiway.proof.cases import Case
from taxiway.proof.ort import Served
from taxiway.proof.parity import Tolerance, compare, same_in_batches, tolerance

LIMITS = Tolerance(atol=1e-5, rtol=1e-4)


def numbers(*values):
    return np.array(values, dtype=np.float32).reshape(len(values), -1)


def case(expected, name="prediction", **more):
    first = np.arange(len(expected) * 2, dtype=np.float32).reshape(-1, 2)
    return Case({"X": first}, {name: expected} | more)


def of(expected, got, limits=LIMITS):
    return compare([case(expected)], [{"prediction": got}], limits)


def test_numbers_within_the_tolerance_pass_and_beyond_it_do_not():
    wanted = np.array([[0.0], [100.0], [-100.0]])
    inside = np.array([[0.9e-5], [100.0099], [-100.0099]])
    outside = np.array([[1.2e-5], [100.0102], [-100.0102]])
    assert of(wanted, inside).offences == ()
    assert [o.row for o in of(wanted, outside).offences] == [0, 1, 2]
    assert of(wanted, outside).offending_rows == 3


def test_the_relative_tolerance_is_of_the_expected_value_not_of_the_answer():
    limits = Tolerance(atol=0.0, rtol=0.5)
    assert of(np.array([[1.0]]), np.array([[1.6]]), limits).offending_rows == 1
    assert of(np.array([[1.6]]), np.array([[1.0]]), limits).offending_rows == 0


def test_errors_are_measured_even_when_they_pass():
    found = of(np.array([[2.0], [0.0]]), np.array([[2.0001], [1e-6]]))
    assert found.outputs["prediction"].absolute == pytest.approx(1e-4)
    assert found.outputs["prediction"].relative == pytest.approx(5e-5)
    assert found.outputs["prediction"].flips == 0


@pytest.mark.parametrize(
    ("want", "have"), [(np.nan, 1.0), (1.0, np.nan), (np.inf, -np.inf), (np.inf, 1.0), (1.0, np.inf)]
)
def test_nan_or_infinity_on_one_side_only_is_an_offence_that_json_can_say(want, have):
    found = of(numbers(want), numbers(have))
    assert found.offending_rows == 1
    assert found.outputs["prediction"].absolute == np.finfo(np.float64).max
    json.dumps(found.to_json(), allow_nan=False)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_nan_or_infinity_on_both_sides_is_the_same(value):
    found = of(numbers(value, 1.0), numbers(value, 1.0))
    assert found.offences == ()
    assert found.outputs["prediction"].absolute == 0.0


def test_answers_of_another_shape_are_wrong_in_every_row():
    for got in (np.ones((3, 2)), np.ones((6, 1)), np.ones((2, 1))):
        found = of(np.ones((3, 1)), got)
        assert found.offending_rows == 3
        assert found.good == ((),)
        assert found.offences[0].expected == (1.0,)


def labelled(labels, probabilities, got):
    made = case(np.array(labels)[:, None], "label", probabilities=np.array(probabilities, dtype=np.float32))
    answers = {"label": np.array(got)[:, None], "probabilities": made.expected["probabilities"]}
    return compare([made], [answers], LIMITS)


def test_another_label_is_an_offence():
    found = labelled([0, 1, 1], [[0.9, 0.1], [0.2, 0.8], [0.3, 0.7]], [0, 0, 1])
    assert [(o.row, o.output, o.expected, o.got) for o in found.offences] == [(1, "label", (1,), (0,))]
    assert found.flips == 1
    assert found.good == ((0, 2),)


def test_another_label_is_as_right_where_the_two_best_classes_are_as_probable():
    found = labelled([0, 1], [[0.5, 0.5], [0.2, 0.8]], [1, 1])
    assert found.offences == ()
    assert found.flips == 1


def test_a_tie_is_not_kept_as_a_sample_even_where_the_label_came_out_the_same():
    found = labelled([0, 1, 2], [[0.5, 0.5, 0], [0.2, 0.8, 0], [0.1, 0.4499999, 0.4500001]], [0, 1, 2])
    assert found.offences == ()
    assert found.good == ((1,),)


def test_a_near_tie_wider_than_the_margin_is_none():
    assert labelled([0], [[0.5001, 0.4999]], [1]).offending_rows == 1


def test_text_labels_are_compared_as_text():
    found = labelled(["é", "b"], [[0.1, 0.9], [0.8, 0.2]], np.array(["é", "c"], dtype=object))
    assert [(o.row, o.expected, o.got) for o in found.offences] == [(1, ("b",), ("c",))]


def test_labels_alone_have_no_ties():
    made = case(np.array([[1], [2]]), "label")
    found = compare([made], [{"label": np.array([[1], [3]])}], LIMITS)
    assert found.offending_rows == 1
    assert found.good == ((0,),)


def test_an_output_called_probabilities_may_have_any_shape():
    shaped = np.full((2, 3, 4), 0.5, dtype=np.float32)
    made = case(np.array([[1], [2]]), "label", probabilities=shaped)
    found = compare([made], [{"label": np.array([[1], [2]]), "probabilities": shaped}], LIMITS)
    assert (found.offences, found.good) == ((), ((0, 1),))


def test_a_row_that_is_wrong_in_two_outputs_counts_once_and_is_shown_for_each():
    made = case(np.ones((2, 1)), "a", b=np.ones((2, 1)))
    found = compare([made], [{"a": np.array([[1.0], [2.0]]), "b": np.array([[1.0], [3.0]])}], LIMITS)
    assert found.offending_rows == 1
    assert [(o.row, o.output) for o in found.offences] == [(1, "a"), (1, "b")]


def test_an_offence_says_row_output_both_answers_and_the_input():
    (offence,) = of(numbers(1.0, 2.0), numbers(1.0, 2.5)).offences
    assert offence.inputs == (2.0, 3.0)
    assert str(offence) == "row 1: prediction is [2.5], the notebook's model says [2]; input [2, 3]"


def test_long_rows_are_cut_in_the_message():
    wide = Case({"X": np.arange(20.0)[None]}, {"y": np.ones((1, 1))})
    (offence,) = compare([wide], [{"y": np.zeros((1, 1))}], LIMITS).offences
    assert str(offence).endswith("input [0, 1, 2, 3, 4, 5, 6, 7, ...]")


def test_at_most_five_offences_are_listed_but_all_are_counted():
    found = of(np.zeros((100, 1)), np.ones((100, 1)))
    assert len(found.offences) == 5
    assert found.offending_rows == 100


def test_rows_are_counted_through_all_cases():
    one, two = case(np.zeros((3, 1))), case(np.zeros((2, 1)))
    answers = [{"prediction": np.zeros((3, 1))}, {"prediction": np.array([[0.0], [9.0]])}]
    found = compare([one, two], answers, LIMITS)
    assert found.rows == 5
    assert [o.row for o in found.offences] == [4]
    assert found.offences[0].inputs == (2.0, 3.0)
    assert found.good == ((0, 1, 2), (0,))
    assert found.outputs["prediction"].absolute == 9.0


def test_the_figures_say_what_was_measured():
    found = labelled([0, 1], [[0.5, 0.5], [0.2, 0.8]], [1, 1]).to_json()
    assert (found["rows"], found["label_flips"], found["max_abs_error"]) == (2, 1, 0.0)
    assert found["per_output"]["label"]["flips"] == 1
    assert found["tolerance"] == {"atol": 1e-5, "rtol": 1e-4, "tie": 1e-5}
    assert found["batches"] == [1, 2, 5]


def test_what_a_person_allows_goes_before_what_is_inferred_and_is_recorded():
    cases = [case(numbers(0.5, -2000.0))]
    limits = tolerance(cases, atol=0, rtol=0.1)
    assert (limits.atol, limits.rtol) == (0.0, 0.1)
    assert compare(cases, [{"prediction": numbers(0.5, -2000.0)}], limits).to_json()["tolerance"] == {
        "atol": 0.0,
        "rtol": 0.1,
        "tie": 1e-5,
        "overridden": {"atol": 0.02, "rtol": 1e-4},
    }
    assert tolerance(cases, rtol=0.01).to_json() == {
        "atol": 0.02,
        "rtol": 0.01,
        "tie": 1e-5,
        "overridden": {"rtol": 1e-4},
    }
    # To say what would be anyway is to say it.
    assert tolerance(cases, rtol=1e-4).overridden == {"rtol": 1e-4}
    assert tolerance(cases) == Tolerance(atol=0.02)


@pytest.mark.parametrize("kind", [np.int64, np.int8, bool, object])
def test_labels_are_never_tolerated(kind):
    widest = Tolerance(atol=0.1, rtol=0.1)
    right, wrong = np.array([[100], [0]], dtype=kind), np.array([[100], [1]], dtype=kind)
    found = compare([case(right, "label", p=numbers(0.5, 0.5))], [{"label": wrong, "p": numbers(0.55, 0.6)}], widest)
    assert (found.flips, found.offending_rows) == (1, 1)
    assert [(o.row, o.output) for o in found.offences] == [(1, "label")]
    alone = case(right, "label")
    assert not same_in_batches(alone, lambda feeds: {"label": right[[len(feeds["X"]) % 2] * len(feeds["X"])]}, widest)


def test_no_tolerance_at_all_asks_for_the_very_same_numbers():
    limits = tolerance([case(numbers(0.1, 3))], atol=0, rtol=0)
    assert of(numbers(0.1, 3), numbers(0.1, 3), limits).offences == ()
    assert of(numbers(0.1, 3), numbers(np.nextafter(np.float32(0.1), np.float32(1)), 3), limits).offences


def test_the_absolute_tolerance_grows_with_outputs_beyond_one():
    assert tolerance([case(numbers(0.5, 0.1))]).atol == 1e-5
    assert tolerance([case(numbers(0.5, -2000.0)), case(numbers(3.0))]).atol == pytest.approx(0.02)
    assert tolerance([case(numbers(np.nan, np.inf, 50.0))]).atol == pytest.approx(5e-4)
    assert tolerance([case(np.array([[1_000_000]]), "label")]).atol == 1e-5


def test_a_model_that_takes_each_row_by_itself_answers_the_same_in_batches():
    served = Served(chain().SerializeToString())
    rows = Case({"x": np.random.default_rng(0).normal(size=(12, 2)).astype(np.float32)}, {})
    assert same_in_batches(rows, served.run, LIMITS)


def test_a_model_that_normalises_over_the_batch_is_caught():
    served = Served(over_the_batch().SerializeToString())
    rows = Case({"x": np.random.default_rng(0).normal(size=(12, 2)).astype(np.float32)}, {})
    assert not same_in_batches(rows, served.run, LIMITS)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_a_model_that_goes_wrong_at_one_batch_size_is_caught(size):
    def run(feeds):
        return {"label": feeds["x"][:, :1] + (len(feeds["x"]) == size)}

    rows = Case({"x": np.arange(24).reshape(12, 2)}, {})
    assert not same_in_batches(rows, run, LIMITS)


def test_answers_of_another_shape_in_a_batch_are_caught():
    rows = Case({"x": np.ones((6, 2), np.float32)}, {})
    assert not same_in_batches(rows, lambda f: {"y": f["x"].reshape(1, -1) if len(f["x"]) < 6 else f["x"]}, LIMITS)
