import json
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taxiway.core.sample import Golden, Tensor

EXPECTED = {"y": Tensor("FP32", (2, 1), (0.25, 0.75))}
GOLDEN = Golden("row 1", {"X": Tensor("FP32", (2, 1), (1.0, 2.0))}, EXPECTED)


def test_the_same_answer_is_right():
    assert GOLDEN.differences(EXPECTED) == []


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({}, "'y' is missing"),
        ({"y": Tensor("FP64", (2, 1), (0.25, 0.75))}, "is FP64"),
        ({"y": Tensor("FP32", (1, 2), (0.25, 0.75))}, r"\[1, 2\]"),
        ({"y": Tensor("FP32", (2, 1), (0.25, 0.76))}, r"'y'\[1\] is 0.76"),
        ({"y": Tensor("FP32", (2, 1), (0.25, math.nan))}, r"'y'\[1\] is nan"),
    ],
)
def test_a_wrong_answer_is_told_with_its_place(answer, said):
    (difference,) = GOLDEN.differences(answer)
    assert re.search(said, difference)


def test_nan_is_right_only_where_nan_is_expected():
    golden = Golden("n", {}, {"y": Tensor("FP32", (1,), (math.nan,))})
    assert golden.differences({"y": Tensor("FP32", (1,), (math.nan,))}) == []
    assert golden.differences({"y": Tensor("FP32", (1,), (0.0,))})


@pytest.mark.parametrize(
    ("dtype", "right", "wrong"),
    [("INT64", 100_000, 100_001), ("INT32", 10, 11), ("UINT8", 1, 0), ("BOOL", True, False), ("BYTES", "a", "b")],
)
def test_labels_are_never_tolerated(dtype, right, wrong):
    golden = Golden("n", {}, {"label": Tensor(dtype, (1,), (right,))}, atol=0.1, rtol=0.1)
    assert golden.differences({"label": Tensor(dtype, (1,), (right,))}) == []
    assert golden.differences({"label": Tensor(dtype, (1,), (wrong,))})


def test_numbers_are_tolerated_as_far_as_the_sample_says():
    golden = Golden("n", {}, {"y": Tensor("FP32", (1,), (10.0,))}, atol=0.1, rtol=0.1)
    assert golden.differences({"y": Tensor("FP32", (1,), (11.09,))}) == []
    assert golden.differences({"y": Tensor("FP32", (1,), (11.11,))})


@pytest.mark.parametrize("want", [math.inf, -math.inf])
@pytest.mark.parametrize("have", [0.0, 3e38, math.nan, "other"])
def test_nothing_is_near_an_infinity(want, have):
    golden = Golden("n", {}, {"y": Tensor("FP32", (1,), (want,))}, atol=0.1, rtol=0.1)
    assert golden.differences({"y": Tensor("FP32", (1,), (want,))}) == []
    assert golden.differences({"y": Tensor("FP32", (1,), (-want if have == "other" else have,))})


def test_a_number_is_the_same_in_however_many_digits_it_is_written():
    golden = Golden("n", {}, {"y": Tensor("FP32", (1,), (0.1,))}, atol=0.0, rtol=0.0)
    assert golden.differences({"y": Tensor("FP32", (1,), (0.10000000149011612,))}) == []
    assert golden.differences({"y": Tensor("FP32", (1,), (0.10000000894069672,))})
    golden = Golden("n", {}, {"y": Tensor("FP64", (1,), (0.1,))}, atol=0.0, rtol=0.0)
    assert golden.differences({"y": Tensor("FP64", (1,), (0.10000000149011612,))})


@given(st.floats(), st.floats(), st.sampled_from(["FP16", "FP32", "FP64"]))
def test_any_two_numbers_can_be_compared(want, have, dtype):
    golden = Golden("n", {}, {"y": Tensor(dtype, (1,), (want,))}, atol=0.0, rtol=0.0)
    assert golden.differences({"y": Tensor(dtype, (1,), (want,))}) == []
    assert len(golden.differences({"y": Tensor(dtype, (1,), (have,))})) in (0, 1)


def test_a_shape_that_does_not_hold_the_data_is_refused():
    with pytest.raises(ValueError, match="holds 6 values, not 2"):
        Tensor("FP32", (2, 3), (1.0, 2.0))


@given(st.lists(st.floats(width=32), max_size=8))
def test_every_float_survives_json(values):
    tensor = Tensor("FP32", (len(values),), tuple(values))
    text = json.dumps(Golden("g", {"X": tensor}, {}).to_json(), allow_nan=False)
    back = Golden.from_json(json.loads(text)).inputs["X"].data
    assert all(a == b or (math.isnan(a) and math.isnan(b)) for a, b in zip(values, back, strict=True))
