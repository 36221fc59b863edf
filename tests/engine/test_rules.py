"""The contract parameter, as the backend reads and applies it."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from taxiway.engine.backends.onnxruntime.taxiway_onnx import parameter, rules
from taxiway.engine.backends.onnxruntime.taxiway_onnx.rules import BadRequest

INPUTS = [
    {"name": "X", "data_type": "TYPE_FP32", "dims": ["3"]},
    {"name": "ids", "data_type": "TYPE_INT64", "dims": ["-1", "1024"]},
]


def config(parameter: object, *, max_batch_size: int = 8) -> dict:
    text = parameter if isinstance(parameter, str) else json.dumps(parameter)
    return {
        "max_batch_size": max_batch_size,
        "input": INPUTS,
        "parameters": {"taxiway_contract": {"string_value": text}},
    }


READ = parameter.read(config({"finite": ["X"], "max_length": {"ids": 4}, "columns": {"X": ["a", "b", "c"]}}))


def test_without_the_parameter_everything_goes() -> None:
    free = parameter.read({"max_batch_size": 8, "input": INPUTS})
    rules.enforce(free, {"X": np.array([[np.nan] * 3], np.float32)})


@pytest.mark.parametrize(
    ("parameter", "reason"),
    [
        ("{", "is not JSON"),
        ("[]", "must be a JSON object"),
        ({"finit": []}, "unknown key 'finit'"),
        ({"finite": "X"}, "finite must be a list"),
        ({"finite": ["Y"]}, "finite names 'Y'; the inputs are X, ids"),
        ({"finite": [["X"]]}, "finite names"),
        ({"finite": ["ids"]}, "finite names 'ids', which is TYPE_INT64"),
        ({"max_length": ["ids"]}, "max_length must map"),
        ({"max_length": {"ids": 0}}, "whole numbers above 0"),
        ({"max_length": {"ids": True}}, "whole numbers above 0"),
        ({"max_length": {"Y": 3}}, "max_length names 'Y'"),
        ({"columns": {"X": "abc"}}, "columns must map"),
        ({"columns": {"Y": []}}, "columns names 'Y'"),
    ],
)
def test_a_malformed_parameter_is_refused_with_the_reason(parameter: object, reason: str) -> None:
    with pytest.raises(ValueError, match=r"^parameter taxiway_contract") as refusal:
        parameter.read(config(parameter))
    assert reason in str(refusal.value)


def test_only_open_dims_are_bounded() -> None:
    rules.enforce(READ, {"ids": np.zeros((2, 4, 1024))})
    with pytest.raises(BadRequest, match=r"'ids' has 5 values along axis 1; at most 4"):
        rules.enforce(READ, {"ids": np.zeros((2, 5, 1024))})


def test_without_batches_the_first_axis_is_a_dim_too() -> None:
    single = parameter.read(config({"max_length": {"ids": 4}}, max_batch_size=0))
    with pytest.raises(BadRequest, match="along axis 0"):
        rules.enforce(single, {"ids": np.zeros((5, 1024))})


def test_the_first_value_that_is_not_finite_is_named_by_row_and_column() -> None:
    X = np.ones((4, 3), np.float32)
    X[2, 1] = -np.inf
    X[3, 0] = np.nan
    with pytest.raises(BadRequest) as refusal:
        rules.enforce(READ, {"X": X})
    assert str(refusal.value) == (
        "input 'X': row 2, column 1 ('b') is -Infinity (and 1 more); only finite numbers are accepted (counting from 0)"
    )


@given(arrays.arrays(np.float32, arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)))
def test_a_feed_is_clean_exactly_when_nothing_is_raised(X: np.ndarray) -> None:
    try:
        rules.enforce(READ, {"X": X})
        passed = True
    except BadRequest:
        passed = False
    assert passed is rules.clean(READ, {"X": X}) is all(math.isfinite(v) for v in X.reshape(-1))


@given(st.integers(0, 9))
def test_clean_and_enforce_agree_on_lengths(length: int) -> None:
    feed = {"ids": np.zeros((1, length, 1024), np.int8)}
    assert rules.clean(READ, feed) is (length <= 4)
