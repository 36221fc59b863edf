"""What a person says of the contract."""

import math

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tritonclient.grpc.model_config_pb2 import DataType

from taxiway.app.overrides.lay import apply
from taxiway.catalog.pbtxt import config_pbtxt, enforced, parse
from taxiway.core.contract import Column, Contract, Field
from taxiway.core.errors import Refused
from taxiway.core.sample import Tensor
from taxiway.core.tensor import TensorSpec
from taxiway.engine.backends.onnxruntime.taxiway_onnx import parameter, rules
from taxiway.proof.cases import Case, tensor
from taxiway.proof.contract import contract

TABLE = np.array([[20, 1000, 0], [90, np.nan, 1], [33, 5000, 1]], np.float32)


FEEDS = {
    "X": TABLE,
    "age": np.array([[20.0], [90], [33]], np.float32),
    "visits": np.array([[1], [2], [7]]),
    "city": np.array([["Bern"], ["Oslo"], ["Bern"]], dtype=object),
    "ids": np.array([[1, 2], [3, 4], [5, 6]]),
    "times": np.array([[1.0, 2], [3, 4], [5, 6]]),
    "flag": np.array([[True], [False], [True]]),
    "known": np.array([["a"], ["b"], ["a"]], dtype=object),
}
MADE = contract(
    [Case(FEEDS, {"y": np.ones((3, 1))})],
    {"X": ("age", "income", "member")},
    {"ids": (-1,), "times": (-1,)},
    {"known": ("a", "b", "c")},
)
ROWS = [{name: tensor(values) for name, values in FEEDS.items()}]


def laid(text: str, rows: object = ROWS) -> dict[str, Field]:
    """The inputs by name, once what the YAML says is laid over them."""
    return {f.name: f for f in apply(MADE, yaml.safe_load(text), rows).inputs}


def mistakes(text: str, rows: object = ROWS) -> list[str]:
    with pytest.raises(Refused) as refusal:
        laid(text, rows)
    assert refusal.value.code == "contract"
    return list(refusal.value.reasons)


@pytest.mark.parametrize("nothing", ["", "{}", "inputs: {}", "inputs: {X: {}}"])
def test_nothing_said_changes_nothing(nothing: str) -> None:
    assert apply(MADE, yaml.safe_load(nothing), ROWS) == MADE


def test_what_is_said_of_a_column_holds_for_it_alone() -> None:
    field = laid("inputs: {X: {columns: {age: {min: 0, max: 120}, member: {allowed: [0, 1]}}}}")["X"]
    assert field.table == (
        Column("age", minimum=0, maximum=120, observed=(20.0, 90.0)),
        Column("income", nullable=True, observed=(1000.0, 5000.0)),
        Column("member", allowed=(0, 1), observed=(0.0, 1.0)),
    )


def test_what_is_said_of_a_tensor_holds_for_all_its_columns_but_those_that_say_otherwise() -> None:
    table = laid("inputs: {X: {min: 0, columns: {member: {min: -1, max: 1}, income: {min: null}}}}")["X"].table
    assert [(c.minimum, c.maximum) for c in table] == [(0, None), (None, None), (-1, 1)]


def test_a_tensor_of_one_value_a_row_needs_no_columns() -> None:
    found = laid("inputs: {age: {min: 0, max: 120}, visits: {min: 1, allowed: [1, 2, 7]}, flag: {allowed: [true, no]}}")
    assert found["age"].table == (Column(minimum=0, maximum=120),)
    assert found["visits"].table == (Column(minimum=1, allowed=(1, 2, 7)),)
    assert found["flag"].table == (Column(allowed=(True, False)),)


def test_texts_and_lists_have_rules_of_their_own() -> None:
    found = laid("inputs: {city: {allowed: [Bern, Oslo, Rom], max_bytes: 64}, ids: {max_length: 100, min: 1, max: 9}}")
    assert (found["city"].table, found["city"].max_bytes) == ((Column(allowed=("Bern", "Oslo", "Rom")),), 64)
    assert (found["ids"].table, found["ids"].max_length) == ((Column(minimum=1, maximum=9),), 100)


def test_the_columns_of_an_unnamed_table_are_numbers() -> None:
    plain = Contract((Field(TensorSpec("X", "FP32", (3,)), observed=(0.0, 9.0)),), ())
    field = apply(plain, {"inputs": {"X": {"columns": {1: {"max": 5}}}}}).inputs[0]
    assert [c.maximum for c in field.table] == [None, 5, None]
    with pytest.raises(Refused, match=r"columns\.3: no such column; known are 0, 1, 2"):
        apply(plain, {"inputs": {"X": {"columns": {3: {"max": 5}}}}})


def test_a_column_may_have_missing_values_where_the_rest_is_finite() -> None:
    field = laid("inputs: {X: {finite: true, columns: {income: {nullable: true}, age: {nullable: true}}}}")["X"]
    assert (field.finite, field.infinite, [c.nullable for c in field.table]) == (False, False, [True, True, False])


def test_missing_values_can_be_accepted_everywhere_and_infinities_too() -> None:
    found = laid("inputs: {age: {finite: false}, times: {infinite: true}, X: {nullable: true}}")
    assert (found["age"].finite, found["age"].infinite, found["age"].table) == (False, False, ())
    assert (found["times"].finite, found["times"].infinite, found["times"].table) == (False, True, (Column(),))
    assert all(c.nullable for c in found["X"].table)
    assert enforced(apply(MADE, {"inputs": {"times": {"infinite": True}}}))["nan"]["times"] == []


def test_an_inferred_partner_can_be_taken_away_or_named() -> None:
    assert MADE.inputs[5].same_length_as == "ids"
    assert laid("inputs: {times: {same_length_as: null}}")["times"].same_length_as is None
    assert laid("inputs: {ids: {same_length_as: times}}")["ids"].same_length_as == "times"


def test_what_the_model_knows_can_be_narrowed_only() -> None:
    assert laid("inputs: {known: {allowed: [b, a]}}")["known"].table[0].allowed == ("b", "a")
    assert mistakes("inputs: {known: {allowed: [a, b, d]}}") == [
        "contract.inputs.known: the model does not know 'd'; allowed can only be a part of what it knows"
    ]
    assert "does not know other values" in mistakes("inputs: {known: {allowed: null}}")[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", None),
        ("3", "contract: expected a mapping, not 3; its keys are inputs"),
        ("input: {}", "contract.input: no such key; did you mean 'inputs'?"),
        ("inputs: 3", "contract.inputs: expected a mapping, not 3"),
        ("inputs: {Xs: {}}", "contract.inputs.Xs: no such input; did you mean 'X'?"),
        ("inputs: {x: {}}", "contract.inputs.x: no such input; did you mean 'X'?"),
        ("inputs: {nope: {}}", "contract.inputs.nope: no such input; known are X, age, visits, city"),
        ("inputs: {X: 3}", "contract.inputs.X: expected a mapping, not 3; its keys are finite"),
        ("inputs: {X: {minimum: 3}}", "contract.inputs.X.minimum: no such key; did you mean 'min'?"),
        ("inputs: {X: {columns: {agee: {}}}}", "contract.inputs.X.columns.agee: no such column; did you mean 'age'?"),
        ("inputs: {X: {columns: {age: {finite: true}}}}", "contract.inputs.X.columns.age.finite: no such key"),
        ("inputs: {X: {columns: [age]}}", "contract.inputs.X.columns: expected a mapping"),
        ("inputs: {X: {finite: 1}}", "contract.inputs.X.finite: expected true or false, not 1"),
        ("inputs: {X: {min: zero}}", "contract.inputs.X.min: expected a number, or null for no bound, not 'zero'"),
        ("inputs: {X: {min: true}}", "contract.inputs.X.min: expected a number"),
        ("inputs: {X: {max: .inf}}", "contract.inputs.X.max: expected a number"),
        (f"inputs: {{X: {{max: 1{'0' * 400}}}}}", "contract.inputs.X.max: expected a number"),
        ("inputs: {X: {min: .nan}}", "contract.inputs.X.min: expected a number"),
        ("inputs: {city: {allowed: []}}", "contract.inputs.city.allowed: expected a list of at least one value"),
        ("inputs: {city: {allowed: Bern}}", "contract.inputs.city.allowed: expected a list"),
        ("inputs: {city: {max_bytes: 0}}", "contract.inputs.city.max_bytes: expected a whole number above 0, not 0"),
        ("inputs: {ids: {max_length: 1.5}}", "contract.inputs.ids.max_length: expected a whole number above 0"),
        ("inputs: {X: {min: 5, max: 3}}", "contract.inputs.X: min 5 is above max 3; nothing would be accepted"),
        ("inputs: {X: {columns: {age: {min: 5, max: 3}}}}", "contract.inputs.X.columns.age: min 5 is above max 3"),
        ("inputs: {X: {min: 5, columns: {age: {max: 3}}}}", "contract.inputs.X.columns.age: min 5 is above max 3"),
        ("inputs: {visits: {min: 0.2, max: 0.8}}", "contract.inputs.visits: no INT64 lies between min 0.2 and max 0.8"),
        ("inputs: {X: {allowed: [0.5]}}", "contract.inputs.X.allowed: FP32 takes whole numbers that it holds exactly"),
        ("inputs: {X: {allowed: [16777217]}}", "contract.inputs.X.allowed: FP32 takes whole numbers"),
        ("inputs: {X: {allowed: [a]}}", "contract.inputs.X.allowed: FP32 takes whole numbers"),
        ("inputs: {visits: {allowed: [1.5]}}", "contract.inputs.visits.allowed: INT64 takes whole numbers of its size"),
        ("inputs: {visits: {allowed: [true]}}", "contract.inputs.visits.allowed: INT64 takes whole numbers"),
        ("inputs: {visits: {allowed: [9223372036854775808]}}", "contract.inputs.visits.allowed: INT64 takes"),
        ("inputs: {city: {allowed: [yes]}}", "contract.inputs.city.allowed: BYTES takes texts (put them in quotes)"),
        ("inputs: {flag: {allowed: [1]}}", "contract.inputs.flag.allowed: BOOL takes true and false, not 1"),
        ("inputs: {flag: {min: 0}}", "contract.inputs.flag.min: only numbers have bounds, this is BOOL"),
        ("inputs: {city: {max: 3}}", "contract.inputs.city.max: only numbers have bounds, this is BYTES"),
        ("inputs: {visits: {nullable: true}}", "contract.inputs.visits.nullable: only floats can be missing"),
        ("inputs: {visits: {finite: true}}", "contract.inputs.visits.finite: only floats can be infinite"),
        ("inputs: {X: {finite: true, infinite: true}}", "contract.inputs.X: finite and infinite cannot both be true"),
        ("inputs: {X: {max_bytes: 3}}", "contract.inputs.X.max_bytes: only texts (BYTES)"),
        ("inputs: {X: {max_length: 3}}", "contract.inputs.X.max_length: no dim of [3] varies in length"),
        ("inputs: {ids: {columns: {a: {}}}}", "contract.inputs.ids.columns: the last axis has any length"),
        ("inputs: {ids: {same_length_as: timess}}", "no input 'timess'; did you mean 'times'?"),
        ("inputs: {ids: {same_length_as: ids}}", "a tensor is always as long as itself"),
        ("inputs: {ids: {same_length_as: X}}", "'X' has dims [3], of which not exactly one varies in length"),
    ],
)
def test_a_mistake_is_placed_and_explained(text: str, said: str | None) -> None:
    if said is None:
        assert laid(text) == {f.name: f for f in MADE.inputs}
        return
    found = mistakes(text)
    assert len(found) == 1
    assert said in found[0]


def test_every_mistake_is_told_at_once() -> None:
    found = mistakes(
        """
        output: {}
        inputs:
          nope: {}
          X: {min: a, columns: {agee: {}, age: {max: b, colour: red}}}
          age: {max: 50}
          city: {allowed: [Bern], max_bytes: 3}
        """
    )
    places = [sentence.split(":")[0] for sentence in found]
    assert sorted(places) == [
        "contract.inputs.X.columns.age.colour",
        "contract.inputs.X.columns.age.max",
        "contract.inputs.X.columns.agee",
        "contract.inputs.X.min",
        "contract.inputs.age",
        "contract.inputs.city",
        "contract.inputs.city",
        "contract.inputs.nope",
        "contract.output",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("X: {columns: {age: {max: 80}}}", "X.columns.age: max 80 would refuse 1 of the 3 proved values, such as 90.0"),
        (
            "age: {min: 30}",
            "age: min 30 would refuse 1 of the 3 proved values, such as 20.0 (they reach from 20 to 90)",
        ),
        ("visits: {max: 1}", "visits: max 1 would refuse 2 of the 3 proved values, such as 2 (they reach from 1 to 7)"),
        ("visits: {allowed: [1, 2]}", "visits: allowed would refuse 1 of the 3 proved values, such as 7"),
        ("city: {allowed: [Bern]}", "city: allowed would refuse 1 of the 3 proved values, such as 'Oslo'"),
        ("city: {max_bytes: 3}", "city: max_bytes 3 would refuse 3 of the 3 proved values, such as 'Bern'"),
        ("ids: {max_length: 1}", "ids: max_length 1 would refuse 1 of the 1 proved values, such as 2"),
        ("X: {finite: true}", "X.columns.income: not nullable: it would refuse 1 of the 3 proved values, such as nan"),
        ("X: {columns: {income: {nullable: false}}}", "X.columns.income: not nullable: it would refuse 1 of the 3"),
    ],
)
def test_a_rule_that_the_proved_rows_break_is_refused_with_their_number(text: str, said: str) -> None:
    found = mistakes(f"inputs: {{{text}}}")
    assert len(found) == 1
    assert f"contract.inputs.{said}" in found[0]
    assert "golden samples would be refused" in found[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("X: {columns: {age: {max: 80}}}", "X.columns.age: max 80 would refuse proved values, such as 90.0"),
        ("age: {min: 30}", "age: min 30 would refuse proved values, such as 20.0 (they reach from 20 to 90)"),
        ("X: {finite: true}", "X.columns.income: not nullable: it would refuse proved values"),
    ],
)
def test_without_rows_the_contract_itself_remembers_their_range(text: str, said: str) -> None:
    found = mistakes(f"inputs: {{{text}}}", [])
    assert len(found) == 1
    assert f"contract.inputs.{said}" in found[0]


@pytest.mark.parametrize("rows", [(), [{"Z": Tensor("FP64", (2, 1), (1.0, -math.inf))}]])
def test_infinities_that_were_proved_cannot_be_forbidden(rows: object) -> None:
    plain = Contract((Field(TensorSpec("Z", "FP64", (1,)), finite=False, infinite=True, table=(Column(),)),), ())
    for said in ({"finite": True}, {"infinite": False}):
        with pytest.raises(Refused, match=r"contract\.inputs\.Z: not infinite: it would refuse"):
            apply(plain, {"inputs": {"Z": said}}, rows)


def test_lists_that_were_proved_apart_cannot_be_said_to_go_together() -> None:
    plain = Contract(tuple(Field(TensorSpec(n, "INT64", (-1,))) for n in "ab"), ())
    rows = [{"a": Tensor("INT64", (1, n), (0,) * n), "b": Tensor("INT64", (1, 2), (0, 0))} for n in (1, 2)]
    with pytest.raises(Refused, match="would refuse 1 of the 2 proved requests"):
        apply(plain, {"inputs": {"b": {"same_length_as": "a"}}}, rows)


def test_a_bound_is_met_by_a_proved_value_written_alike() -> None:
    # float32(0.1) is greater than 0.1.
    feeds = {"x": np.array([[0.1], [0.7]], np.float32)}
    made = contract([Case(feeds, {"y": np.ones((2, 1))})], {})
    said = {"inputs": {"x": {"min": 0.1, "max": 0.7}}}
    for rows in ([], [{"x": tensor(feeds["x"])}]):
        assert apply(made, said, rows).inputs[0].table == (Column(minimum=0.1, maximum=0.7),)


_anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["inputs", *(f.name for f in MADE.inputs), "min", "max", "allowed", "columns", "income"])
            | st.sampled_from(["nullable", "finite", "infinite", "max_length", "max_bytes", "same_length_as"])
            | st.text(max_size=3)
            | st.integers(),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.fixed_dictionaries({"inputs": st.dictionaries(st.sampled_from([f.name for f in MADE.inputs]), _anything)}))
def test_any_words_are_laid_over_or_refused(words: dict) -> None:
    try:
        made = apply(MADE, words, ROWS)
    except Refused as refusal:
        assert all(sentence.startswith("contract") for sentence in refusal.reasons)  # noqa: PT017
        return
    assert Contract.from_json(made.to_json()) == made


def _words(numbers: st.SearchStrategy, members: st.SearchStrategy, floats: bool) -> dict[str, st.SearchStrategy]:
    flags = {"nullable": st.booleans()} if floats else {}
    return {"min": st.none() | numbers, "max": st.none() | numbers, "allowed": st.lists(members, min_size=1), **flags}


_whole = st.sampled_from([-5, 0, 1, 2, 7, 20, 90, 5000])
_numeric = _words(_whole | st.sampled_from([0.5, 19.5, 90.5]), _whole, floats=True)
_flags = {"finite": st.booleans(), "infinite": st.booleans()}
_column = st.fixed_dictionaries({}, optional=_numeric)
_columns = st.fixed_dictionaries({}, optional={"age": _column, "income": _column, "member": _column})
_likely = st.fixed_dictionaries(
    {},
    optional={
        "X": st.fixed_dictionaries({}, optional={**_numeric, **_flags, "columns": _columns}),
        "age": st.fixed_dictionaries({}, optional={**_numeric, **_flags}),
        "visits": st.fixed_dictionaries({}, optional=_words(_whole, _whole, floats=False)),
        "times": st.fixed_dictionaries({}, optional={**_flags, "max_length": st.integers(1, 4)}),
        "city": st.fixed_dictionaries(
            {}, optional={"max_bytes": st.integers(3, 5), "allowed": st.permutations(["Bern", "Oslo"])}
        ),
    },
)


@given(_likely)
def test_the_engine_accepts_every_proved_row_under_whatever_is_not_refused(words: dict) -> None:
    try:
        made = apply(MADE, {"inputs": words}, ROWS)
    except Refused:
        return
    config = parse(config_pbtxt("m", made), "config.pbtxt")
    found = parameter.read(
        {
            "max_batch_size": config.max_batch_size,
            "input": [
                {"name": i.name, "data_type": DataType.Name(i.data_type), "dims": list(i.dims)} for i in config.input
            ],
            "parameters": {"taxiway_contract": {"string_value": config.parameters["taxiway_contract"].string_value}},
        }
    )
    rules.enforce(found, FEEDS)
