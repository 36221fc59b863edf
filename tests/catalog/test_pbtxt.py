"""config.pbtxt: written, read back, compared."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tritonclient.grpc import model_config_pb2 as pb

from taxiway.catalog.pbtxt import Scheduling, check, config_pbtxt, enforced, parse
from taxiway.core.contract import Column, Contract, Field
from taxiway.core.errors import Refused
from taxiway.core.tensor import DTYPES, TensorSpec
from taxiway.engine.backends.onnxruntime.taxiway_onnx import parameter

CONTRACT = Contract(
    inputs=(
        Field(TensorSpec("X", "FP32", (2,)), columns=("age", "größe")),
        Field(TensorSpec("item_ids", "INT64", (-1,)), max_length=512),
        Field(TensorSpec("Z", "FP64", (1,)), finite=False, infinite=True),
    ),
    outputs=(Field(TensorSpec("label", "BYTES", (1,))), Field(TensorSpec("scores", "FP32", (3,)))),
    max_batch=64,
)

_dims = st.lists(st.integers(1, 9) | st.just(-1), max_size=3).map(tuple)
_name = st.text(min_size=1, max_size=9)
_specs = st.builds(TensorSpec, _name, st.sampled_from(sorted(DTYPES)), _dims)


@st.composite
def _field(draw: st.DrawFn) -> Field:
    """Any field whose rules suit the type of its tensor."""
    spec, finite = draw(_specs), draw(st.booleans())
    floats, text = spec.dtype.startswith("FP"), spec.dtype == "BYTES"
    values = st.text(max_size=9) if text else (st.booleans() if spec.dtype == "BOOL" else st.integers(0, 99))
    columns = st.builds(
        Column,
        st.text(max_size=5),
        nullable=st.just(False) if finite else st.booleans(),
        minimum=st.none() if text or spec.dtype == "BOOL" else st.none() | st.integers(0, 50) | st.floats(0, 50),
        maximum=st.none() if text or spec.dtype == "BOOL" else st.none() | st.integers(51, 99),
        allowed=st.none() | st.lists(values, min_size=1, max_size=3).map(tuple),
    )
    width = max(spec.dims[-1], 1) if spec.dims else 1
    sizes = st.sampled_from([0, 1, width])
    return Field(
        spec,
        columns=tuple(draw(st.lists(st.text(max_size=5), max_size=3))),
        finite=finite,
        max_length=draw(st.none() | st.integers(1, 999)),
        table=tuple(draw(sizes.flatmap(lambda n: st.lists(columns, min_size=n, max_size=n)))),
        max_bytes=draw(st.none() | st.integers(1, 999)) if text else None,
        infinite=draw(st.booleans()) and not finite and floats,
    )


_fields = st.lists(_field(), min_size=1, max_size=4, unique_by=lambda f: f.name).map(tuple)


@given(st.builds(Contract, _fields, _fields, st.integers(0, 512)), st.booleans())
def test_what_is_written_reads_back_and_agrees(contract: Contract, warm_up: bool) -> None:
    assert check(parse(config_pbtxt("m", contract, warm_up=warm_up), "config.pbtxt"), contract) == []


@given(st.builds(Contract, _fields, _fields, st.integers(0, 512)))
def test_the_engine_can_read_every_parameter_that_is_written(contract: Contract) -> None:
    config = parse(config_pbtxt("m", contract), "config.pbtxt")
    parameter.read(
        {
            "max_batch_size": config.max_batch_size,
            "input": [
                {"name": i.name, "data_type": pb.DataType.Name(i.data_type), "dims": list(i.dims)} for i in config.input
            ],
            "parameters": {"taxiway_contract": {"string_value": config.parameters["taxiway_contract"].string_value}},
        }
    )


def field(name: str, dtype: str = "FP32", dims: tuple[int, ...] = (2,), **rules: object) -> Field:
    return Field(TensorSpec(name, dtype, dims), **rules)


def rules_of(*inputs: Field) -> dict:
    return enforced(Contract(inputs, CONTRACT.outputs))


def test_a_plain_contract_writes_what_it_always_wrote() -> None:
    assert rules_of(field("X"), field("Z", finite=False, infinite=True)) == {
        "finite": ["X"],
        "max_length": {},
        "columns": {},
    }


def test_missing_values_are_written_as_the_columns_that_may_have_them() -> None:
    two = (Column("a", nullable=True), Column("b"))
    found = rules_of(
        field("some", finite=False, columns=("a", "b"), table=two),
        field("everywhere", finite=False, infinite=True, table=(Column(nullable=True),)),
        field("unknown", finite=False),
        field("infinite", dims=(-1,), finite=False, infinite=True, table=(Column(),)),
        field("label", "BYTES", (1,), finite=False, columns=("c",), table=(Column(),)),
    )
    assert found["finite"] == []
    assert found["nan"] == {"some": [0], "infinite": []}
    assert found["no_infinity"] == ["some", "unknown"]
    assert found["columns"] == {"some": ["a", "b"]}


def test_ranges_and_allowed_values_are_written_by_column_or_for_all() -> None:
    young = Column("age", minimum=0, maximum=120)
    found = rules_of(
        field("X", table=(young, Column("size", minimum=0.5)), columns=("age", "size")),
        field("Y", table=(young, young)),
        field("ids", "INT64", (-1,), table=(Column(maximum=9),)),
        field("codes", "INT8", (3,), table=(Column(), Column(allowed=(1, 2)), Column())),
        field("city", "BYTES", (1,), table=(Column(allowed=("Bern", "Örebro")),), max_bytes=64),
    )
    assert found["range"] == {
        "X": {"0": [0, 120], "1": [0.5, None]},
        "Y": {"*": [0, 120]},
        "ids": {"*": [None, 9]},
    }
    assert found["allowed"] == {"codes": {"1": [1, 2]}, "city": {"*": ["Bern", "Örebro"]}}
    assert found["max_bytes"] == {"city": 64}
    assert found["columns"] == {"X": ["age", "size"]}


def test_lists_that_go_together_are_written_and_outputs_are_not() -> None:
    ids, times = field("ids", "INT64", (-1,)), field("times", dims=(-1,), same_length_as="ids")
    scores = field("scores", dims=(-1,), same_length_as="ids", table=(Column(maximum=1),))
    assert enforced(Contract((ids, times), (scores,))) == {
        "finite": ["times"],
        "max_length": {},
        "columns": {},
        "same_length": {"times": "ids"},
    }


def test_a_mixed_table_is_an_input_for_each_of_its_columns() -> None:
    contract = Contract(
        (field("age", dims=(1,)), field("visits", "INT64", (1,)), field("city", "BYTES", (1,), max_bytes=256)),
        CONTRACT.outputs,
    )
    config = parse(config_pbtxt("m", contract, scalars=frozenset({"age"})), "config.pbtxt")
    assert [(i.name, pb.DataType.Name(i.data_type), list(i.dims), i.HasField("reshape")) for i in config.input] == [
        ("age", "TYPE_FP32", [1], True),
        ("visits", "TYPE_INT64", [1], False),
        ("city", "TYPE_STRING", [1], False),
    ]
    assert check(config, contract) == []


def test_a_changed_rule_is_a_disagreement() -> None:
    limited = Contract((field("X", table=(Column(maximum=1), Column())),), CONTRACT.outputs)
    free = Contract((field("X"),), CONTRACT.outputs)
    found = check(parse(config_pbtxt("m", limited), "config.pbtxt"), free)
    assert [sentence.split(",")[0] for sentence in found] == ['parameter taxiway_contract is \'{"columns": {}']
    assert check(parse(config_pbtxt("m", limited), "config.pbtxt"), limited) == []


def test_the_written_configuration_is_complete() -> None:
    config = parse(config_pbtxt("risk", CONTRACT, scalars=frozenset({"label"})), "config.pbtxt")
    assert (config.name, config.platform, config.max_batch_size) == ("risk", "onnxruntime_onnx", 64)
    assert [(i.name, pb.DataType.Name(i.data_type), list(i.dims)) for i in config.input] == [
        ("X", "TYPE_FP32", [2]),
        ("item_ids", "TYPE_INT64", [-1]),
        ("Z", "TYPE_FP64", [1]),
    ]
    assert [(o.name, o.HasField("reshape"), list(o.reshape.shape)) for o in config.output] == [
        ("label", True, []),
        ("scores", False, []),
    ]
    assert [(g.count, g.kind) for g in config.instance_group] == [(1, pb.ModelInstanceGroup.KIND_AUTO)]
    assert config.HasField("dynamic_batching")
    assert not config.dynamic_batching.HasField("default_queue_policy")
    assert config.parameters["taxiway_contract"].string_value == (
        '{"columns": {"X": ["age", "gr\\u00f6\\u00dfe"]}, "finite": ["X"], "max_length": {"item_ids": 512}}'
    )


def test_what_is_said_of_scheduling_is_written_and_what_is_not_leaves_no_trace() -> None:
    text = config_pbtxt("risk", CONTRACT, scheduling=Scheduling(3, 1_000_000))
    config = parse(text, "config.pbtxt")
    assert [(g.count, g.kind) for g in config.instance_group] == [(3, pb.ModelInstanceGroup.KIND_AUTO)]
    assert config.dynamic_batching.max_queue_delay_microseconds == 1_000_000
    assert config_pbtxt("risk", CONTRACT, scheduling=Scheduling(1, 0)) == config_pbtxt("risk", CONTRACT)
    assert "max_queue_delay" not in config_pbtxt("risk", CONTRACT)


def test_nothing_waits_for_a_batch_where_there_is_none() -> None:
    alone = Contract(CONTRACT.inputs, CONTRACT.outputs, 0)
    assert config_pbtxt("m", alone, scheduling=Scheduling(1, 500)) == config_pbtxt("m", alone)


def test_a_model_without_batches_gets_no_batcher() -> None:
    config = parse(config_pbtxt("m", Contract(CONTRACT.inputs, CONTRACT.outputs, 0)), "config.pbtxt")
    assert not config.HasField("dynamic_batching")


def test_the_warm_up_row_fills_open_dims_with_one_value() -> None:
    sample = parse(config_pbtxt("m", CONTRACT, warm_up=True), "config.pbtxt").model_warmup[0]
    assert {name: list(entry.dims) for name, entry in sample.inputs.items()} == {"X": [2], "item_ids": [1], "Z": [1]}
    assert all(entry.zero_data for entry in sample.inputs.values())


@pytest.mark.parametrize(
    ("text", "place", "what"),
    [
        ('name: "m"\nmax_batch: 3', "2:1", 'no field named "max_batch"'),
        ('input [ { name: "x"\n  data_type: TYPE_FLOAT } ]', "2:14", "no value named TYPE_FLOAT"),
        ('max_batch_size: "many"', "1:17", "Couldn't parse integer"),
        ("input [ { name: 3 } ]", "1:17", "Expected string"),
        ('name: "m', "1:7", "String missing ending quote"),
        ('name: "m" input [', "1:18", 'Expected "{"'),
    ],
)
def test_a_mistake_in_a_file_is_placed_and_explained(text: str, place: str, what: str) -> None:
    with pytest.raises(Refused) as refusal:
        parse(text, "models/m/config.pbtxt")
    assert str(refusal.value).startswith(f"models/m/config.pbtxt:{place}: ")
    assert what in str(refusal.value)


@given(st.text())
def test_any_text_parses_or_is_refused(text: str) -> None:
    with suppress(Refused):
        parse(text, "config.pbtxt")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("max_batch_size: 64", "max_batch_size: 8"), "max_batch_size is 8, the contract says 64"),
        (('name: "X"', 'name: "W"'), "input 'W' is not in the contract, which has X, item_ids, Z"),
        (("dims: 2", "dims: 3"), "input 'X' is TYPE_FP32 [3], the contract says TYPE_FP32 [2]"),
        (("TYPE_STRING", "TYPE_INT64"), "output 'label' is TYPE_INT64 [1], the contract says TYPE_STRING [1]"),
        (("taxiway_contract", "other"), "parameter taxiway_contract is missing"),
        (("512", "513"), 'parameter taxiway_contract is \'{"columns"'),
        (('\\"finite\\"', "finite"), "parameter taxiway_contract is"),
    ],
)
def test_a_disagreement_with_the_contract_is_said(change: tuple[str, str], expected: str) -> None:
    text = config_pbtxt("m", CONTRACT)
    assert change[0] in text
    found = check(parse(text.replace(*change), "config.pbtxt"), CONTRACT)
    assert any(sentence.startswith(expected) for sentence in found), found
