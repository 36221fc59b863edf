import json

import numpy as np
import pytest

from taxiway.core.contract import Column, Contract
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


def lists(*shapes, names=("a", "b"), output=None):
    """The contract of lists with these lengths of `a` and `b`, a case for each; `output` has its own lengths."""
    lengths = output or [a for a, _ in shapes]
    cases = [
        Case({names[0]: np.ones((1, a)), names[1]: np.ones((1, b))}, {"y": np.ones((1, n)), "z": np.ones((1, 1))})
        for (a, b), n in zip(shapes, lengths, strict=True)
    ]
    return contract(cases, {}, {names[0]: (-1,), names[1]: (-1,), "y": (-1,)})


def test_a_named_table_has_a_column_for_each_name_with_what_was_seen_in_it():
    values = np.array([[1, np.nan], [3, np.inf], [2, -5]], np.float32)
    field = one(values, columns=("age", "income"))
    assert field.table == (
        Column("age", observed=(1.0, 3.0)),
        Column("income", nullable=True, observed=(-5.0, -5.0)),
    )
    assert (field.finite, field.infinite) == (False, True)


def test_nothing_that_was_seen_becomes_a_bound():
    field = one(np.array([[1.0, 2.0]], np.float32), columns=("a", "b"))
    assert all((c.minimum, c.maximum, c.allowed) == (None, None, None) for c in field.table)


def test_a_missing_value_in_any_case_makes_its_column_nullable():
    field = one(np.array([[1.0, 2.0]], np.float32), others=[np.array([[np.nan, 2.0]], np.float32)], columns=("a", "b"))
    assert [c.nullable for c in field.table] == [True, False]


def test_an_unnamed_table_has_columns_only_where_values_are_missing():
    assert one(np.array([[1.0, 2.0]])).table == ()
    assert [c.nullable for c in one(np.array([[1.0, np.nan]])).table] == [False, True]
    assert not one(np.array([[1.0, np.nan]])).infinite


def test_a_list_of_any_length_accepts_missing_values_anywhere_or_nowhere():
    missing = one(np.array([[1.0, np.nan]]), dims=(-1,))
    assert (missing.table, missing.finite, missing.infinite) == ((), False, False)
    infinite = one(np.array([[1.0, np.inf]]), dims=(-1,))
    assert (infinite.table, infinite.finite, infinite.infinite) == ((Column(),), False, True)


def test_names_of_the_last_axis_hold_for_rows_within_rows():
    field = one(
        np.array([[[1.0, 2.0], [3.0, np.nan]]]), dims=(-1, 2), columns=("a", "b"), others=[np.array([[[9.0, 2.0]]])]
    )
    assert field.table == (Column("a", observed=(1.0, 9.0)), Column("b", nullable=True, observed=(2.0, 2.0)))


def test_names_that_do_not_fit_the_last_axis_make_no_columns():
    assert one(np.ones((1, 3), np.float32), columns=("a",)).table == ()


def test_texts_may_be_four_times_as_long_as_the_longest_and_at_least_256_bytes():
    assert one(np.array([["é"]], dtype=object)).max_bytes == 256
    assert one(np.array([["é" * 50]])).max_bytes == 400
    assert one(np.array([["a"]], dtype=object), others=[np.array([["b" * 100]], dtype=object)]).max_bytes == 400
    assert one(np.ones((1, 1))).max_bytes is None


@pytest.mark.parametrize(
    ("values", "known", "members"),
    [
        (np.array([["a"]], dtype=object), (np.str_("a"), None, "b"), ("a", "b")),
        (np.array([[1]]), (np.int64(1), 2), (1, 2)),
        (np.array([[1.0]], np.float32), (1.0, float("nan")), (1.0,)),
    ],
)
def test_values_that_the_model_refuses_are_refused(values, known, members):
    case = Case({"x": values}, {"y": np.ones((1, 1))})
    table = contract([case], {}, allowed={"x": known}).inputs[0].table
    assert [c.allowed for c in table] == [members]
    assert all(type(m) in (str, int, float) for m in table[0].allowed)
    assert contract([case], {}, allowed={"x": ()}).inputs[0].table == ()


def test_allowed_values_hold_in_every_named_column_and_keep_what_is_known_of_it():
    case = Case({"x": np.array([[1.0, np.nan]])}, {"y": np.ones((1, 1))})
    made = contract([case], {"x": ("a", "b")}, allowed={"x": (1.0,)})
    assert [(c.name, c.nullable, c.allowed) for c in made.inputs[0].table] == [
        ("a", False, (1.0,)),
        ("b", True, (1.0,)),
    ]


def test_lists_that_are_equally_long_in_every_case_go_together():
    made = lists((3, 3), (5, 5))
    assert [f.same_length_as for f in (*made.inputs, *made.outputs)] == [None, "a", "a", None]


def test_lists_of_other_lengths_do_not():
    made = lists((3, 3), (5, 4), output=[3, 4])
    assert [f.same_length_as for f in (*made.inputs, *made.outputs)] == [None, None, "b", None]
    assert [f.same_length_as for f in lists((3, 2), output=[1]).outputs] == [None, None]


def test_a_tensor_with_two_open_dims_goes_with_no_other():
    case = Case({"a": np.ones((1, 3)), "b": np.ones((1, 3, 3))}, {"y": np.ones((1, 1))})
    made = contract([case], {}, {"a": (-1,), "b": (-1, -1)})
    assert [f.same_length_as for f in made.inputs] == [None, None]


def test_the_inferred_contract_survives_its_json():
    made = contract(
        [Case({"x": np.array([[1.0, np.nan]], np.float32)}, {"y": np.array([["a"]], dtype=object)})],
        {"x": ("a", "b")},
        allowed={"x": (np.float32(1),)},
    )
    assert Contract.from_json(json.loads(json.dumps(made.to_json(), allow_nan=False))) == made
