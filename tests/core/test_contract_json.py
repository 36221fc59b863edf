"""The contract's words, and their JSON."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taxiway.core.contract import Column, Contract, Field
from taxiway.core.tensor import DTYPES, TensorSpec

_numbers = st.floats(-1e9, 1e9) | st.integers(-(2**63), 2**63)
_ranges = st.none() | st.tuples(_numbers, _numbers)


@st.composite
def _column(draw: st.DrawFn, nullable: bool) -> Column:
    least, greatest = draw(st.none() | _numbers), draw(st.none() | _numbers)
    if least is not None and greatest is not None:
        least, greatest = min(least, greatest), max(least, greatest)
    return Column(
        name=draw(st.text(max_size=9)),
        nullable=nullable and draw(st.booleans()),
        minimum=least,
        maximum=greatest,
        allowed=draw(st.none() | st.lists(st.text(max_size=5) | _numbers | st.booleans(), min_size=1).map(tuple)),
        observed=draw(_ranges),
    )


@st.composite
def _field(draw: st.DrawFn) -> Field:
    dims = tuple(draw(st.lists(st.integers(1, 4) | st.just(-1), max_size=3)))
    finite = draw(st.booleans())
    size = draw(st.sampled_from([0, 1, max(dims[-1], 1) if dims else 1]))
    return Field(
        TensorSpec(draw(st.text(max_size=9)), draw(st.sampled_from(sorted(DTYPES))), dims),
        columns=tuple(draw(st.lists(st.text(max_size=5), max_size=3))),
        finite=finite,
        max_length=draw(st.none() | st.integers(1, 999)),
        observed=draw(_ranges),
        table=tuple(draw(_column(not finite)) for _ in range(size)),
        max_bytes=draw(st.none() | st.integers(1, 999)),
        same_length_as=draw(st.none() | st.text(max_size=5)),
        infinite=not finite and draw(st.booleans()),
    )


_fields = st.lists(_field(), max_size=3).map(tuple)


@given(st.builds(Contract, _fields, _fields, st.integers(0, 512)))
def test_a_contract_is_what_its_json_says(contract: Contract) -> None:
    text = json.dumps(contract.to_json(), allow_nan=False)
    again = Contract.from_json(json.loads(text))
    assert again == contract
    assert json.dumps(again.to_json()) == text


OLD = {
    "inputs": [
        {
            "name": "X",
            "dtype": "FP32",
            "dims": [2],
            "columns": ["a", "b"],
            "finite": True,
            "max_length": None,
            "observed": [0.0, 1.5],
        },
    ],
    "outputs": [
        {
            "name": "y",
            "dtype": "FP32",
            "dims": [-1],
            "columns": [],
            "finite": True,
            "max_length": 512,
            "observed": None,
        },
    ],
    "max_batch": 128,
}


def test_a_plain_contract_is_written_as_it_always_was() -> None:
    assert Contract.from_json(OLD).to_json() == OLD


def test_a_contract_written_before_infinities_were_told_apart_takes_them() -> None:
    old = {**OLD["inputs"][0], "finite": False}
    assert Field.from_json(old).infinite
    assert Field.from_json(Field.from_json(old).to_json()).infinite
    assert not Field.from_json({**old, "infinite": False}).infinite


def test_a_column_says_only_what_it_has_to_say() -> None:
    assert Column().to_json() == {}
    assert Column("age", minimum=0, maximum=0.0, allowed=(0,)).to_json() == {
        "name": "age",
        "minimum": 0,
        "maximum": 0.0,
        "allowed": [0],
    }


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"minimum": 2, "maximum": 1}, "minimum 2 is above maximum 1"),
        ({"minimum": math.nan}, "bounds must be finite"),
        ({"maximum": math.inf}, "bounds must be finite"),
        ({"allowed": ()}, "at least one value"),
    ],
)
def test_a_column_that_accepts_nothing_is_none(values: dict, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Column("age", **values)


def test_a_table_has_a_column_for_each_element_or_one_for_all() -> None:
    Field(TensorSpec("X", "FP32", (3,)), table=(Column(),) * 3)
    Field(TensorSpec("X", "FP32", (3,)), table=(Column(),))
    Field(TensorSpec("ids", "INT64", (-1,)), table=(Column(),))
    with pytest.raises(ValueError, match="table has 2 columns, the last axis 3"):
        Field(TensorSpec("X", "FP32", (3,)), table=(Column(),) * 2)
    with pytest.raises(ValueError, match="table has 2 columns, the last axis any number"):
        Field(TensorSpec("ids", "INT64", (-1,)), table=(Column(),) * 2)


@pytest.mark.parametrize("values", [{"infinite": True}, {"table": (Column(nullable=True),)}])
def test_what_is_finite_cannot_accept_what_is_not(values: dict) -> None:
    with pytest.raises(ValueError, match="finite forbids"):
        Field(TensorSpec("X", "FP32", (3,)), **values)
