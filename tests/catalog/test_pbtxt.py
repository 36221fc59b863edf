"""config.pbtxt: written, read back, compared."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tritonclient.grpc import model_config_pb2 as pb

from taxiway.catalog.pbtxt import check, config_pbtxt, parse
from taxiway.core.contract import Contract, Field
from taxiway.core.errors import Refused
from taxiway.core.tensor import DTYPES, TensorSpec

CONTRACT = Contract(
    inputs=(
        Field(TensorSpec("X", "FP32", (2,)), columns=("age", "größe")),
        Field(TensorSpec("item_ids", "INT64", (-1,)), max_length=512),
        Field(TensorSpec("Z", "FP64", (1,)), finite=False),
    ),
    outputs=(Field(TensorSpec("label", "BYTES", (1,))), Field(TensorSpec("scores", "FP32", (3,)))),
    max_batch=64,
)

_dims = st.lists(st.integers(1, 9) | st.just(-1), max_size=3).map(tuple)
_name = st.text(min_size=1, max_size=9)
_fields = st.lists(
    st.builds(
        Field,
        spec=st.builds(TensorSpec, _name, st.sampled_from(sorted(DTYPES)), _dims),
        columns=st.lists(st.text(max_size=5), max_size=3).map(tuple),
        finite=st.booleans(),
        max_length=st.none() | st.integers(1, 999),
    ),
    min_size=1,
    max_size=4,
    unique_by=lambda f: f.name,
).map(tuple)


@given(st.builds(Contract, _fields, _fields, st.integers(0, 512)), st.booleans())
def test_what_is_written_reads_back_and_agrees(contract: Contract, warm_up: bool) -> None:
    assert check(parse(config_pbtxt("m", contract, warm_up=warm_up), "config.pbtxt"), contract) == []


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
