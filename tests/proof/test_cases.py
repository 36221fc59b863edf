import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taxiway.proof.cases import Case, columns_of_rows, merged, protocol_dtype, tensor


def case(rows, width, start=0):
    x = np.arange(start, start + rows * width).reshape(rows, width)
    return Case({"x": x}, {"y": -x[:, :1]})


def test_rows_are_taken_in_the_order_asked_for():
    taken = case(4, 2).take([3, 1])
    assert taken.feeds["x"].tolist() == [[6, 7], [2, 3]]
    assert taken.expected["y"].tolist() == [[-6], [-2]]
    assert taken.rows == 2


def test_cases_of_equal_shapes_become_one_and_others_stay_apart():
    together = merged([case(1, 2), case(2, 3), case(2, 2, start=10)])
    assert [c.rows for c in together] == [3, 2]
    assert together[0].feeds["x"].tolist() == [[0, 1], [10, 11], [12, 13]]
    assert together[0].expected["y"].tolist() == [[0], [-10], [-12]]
    assert together[1].feeds["x"].shape == (2, 3)


def test_a_flat_array_is_one_column_and_others_are_left_alone():
    assert columns_of_rows(np.arange(3)).shape == (3, 1)
    assert columns_of_rows(np.ones((3, 2, 2))).shape == (3, 2, 2)


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        ("float32", "FP32"),
        ("float16", "FP16"),
        ("float64", "FP64"),
        ("int64", "INT64"),
        ("uint8", "UINT8"),
        ("bool", "BOOL"),
        ("<U3", "BYTES"),
        (object, "BYTES"),
    ],
)
def test_types_are_called_by_the_protocols_names(dtype, name):
    assert protocol_dtype(np.array([], dtype=dtype)) == name


def test_a_float32_is_written_in_the_fewest_digits():
    made = tensor(np.array([[0.1, 1e-7, 3.0]], dtype=np.float32))
    assert made.data == (0.1, 1e-7, 3.0)
    assert (made.dtype, made.shape) == ("FP32", (1, 3))


@given(st.floats(width=32))
def test_a_float32_written_is_the_same_float32_when_read(value):
    (written,) = tensor(np.array([value], dtype=np.float32)).data
    assert np.array_equal(np.float32(written), np.float32(value), equal_nan=True)


def test_text_and_whole_numbers_are_written_as_python_has_them():
    assert tensor(np.array([["é", "b"]])).data == ("é", "b")
    assert tensor(np.array([2**62], dtype=np.int64)).data == (2**62,)
    assert tensor(np.array([True])).data == (True,)
