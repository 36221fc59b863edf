import numpy as np
import pytest

from taxiway.proof.cases import Case
from taxiway.proof.contract import contract


def one(values, *, dims=None, columns=(), others=()):
    """The field of an input with these values."""
    cases = [Case({"x": np.asarray(v)}, {"y": np.zeros((len(v), 1), np.float32)}) for v in (values, *others)]
    made = contract(cases, {"x": columns}, None if dims is None else {"x": dims})
    assert [f.name for f in made.outputs] == ["y"]
    return made.inputs[0]


def test_names_types_and_dims_are_those_of_the_rows():
    case = Case(
        {"X": np.ones((4, 3), np.float32), "ids": np.ones((4, 1), np.int64)},
        {"label": np.array([["a"]] * 4, dtype=object), "probabilities": np.ones((4, 2), np.float32)},
    )
    made = contract([case], {})
    assert [(f.name, f.spec.dtype, f.spec.dims) for f in (*made.inputs, *made.outputs)] == [
        ("X", "FP32", (3,)),
        ("ids", "INT64", (1,)),
        ("label", "BYTES", (1,)),
        ("probabilities", "FP32", (2,)),
    ]
    assert made.max_batch == 128


def test_a_dim_that_the_graph_leaves_open_is_open_and_bounded():
    field = one(np.ones((2, 7), np.float32), dims=(-1,))
    assert field.spec.dims == (-1,)
    assert field.max_length == 512
    assert one(np.ones((2, 7), np.float32)).max_length is None
    assert one(np.ones((2, 7), np.float32), dims=(7,)).max_length is None


def test_the_bound_is_never_less_than_what_was_seen():
    assert one(np.ones((1, 3), np.float32), dims=(-1,), others=[np.ones((1, 700), np.float32)]).max_length == 700


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_allowed_only_when_it_was_seen(bad):
    assert one(np.array([[1.0], [2.0]], np.float32)).finite
    assert not one(np.array([[1.0], [bad]], np.float32)).finite
    assert not one(np.array([[1.0]], np.float32), others=[np.array([[bad]], np.float32)]).finite


def test_the_observed_range_spans_all_cases_and_leaves_out_what_is_not_finite():
    field = one(np.array([[1.0], [np.nan]], np.float32), others=[np.array([[-7.5], [np.inf]], np.float32)])
    assert field.observed == (-7.5, 1.0)
    assert one(np.array([[3], [9]])).observed == (3.0, 9.0)
    assert one(np.array([[np.nan]], np.float32)).observed is None


def test_text_has_no_range_and_counts_as_finite():
    for text in (np.array([["é"], ["b"]]), np.array([["é"], ["b"]], dtype=object)):
        field = one(text)
        assert (field.spec.dtype, field.observed, field.finite, field.max_length) == ("BYTES", None, True, None)


def test_columns_keep_their_names_and_order():
    assert one(np.ones((1, 2), np.float32), columns=("zeta", "alpha")).columns == ("zeta", "alpha")
    assert one(np.ones((1, 2), np.float32)).columns == ()
