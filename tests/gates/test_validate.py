"""Gate 2: each mistake on a good repository with that one thing changed, and many at once."""

# ruff: noqa: E501 - tables of cases are read line by line

import onnx
import pytest
from onnx import TensorProto, helper

from taxiway.catalog.pbtxt import config_pbtxt
from taxiway.gates.mistake import Machine
from tests.gates.repositories import CONFIG, GOOD, contract, found, model, texts, with_config


def test_a_good_repository_has_no_mistake():
    assert texts(GOOD) == []


def test_what_taxiway_writes_itself_has_no_mistake():
    files = {"m/config.pbtxt": config_pbtxt("m", contract()).encode(), "m/1/model.onnx": model()}
    assert texts(files, contract=contract()) == []


@pytest.mark.parametrize(
    ("change", "place", "said"),
    [
        (("max_batch_size", "max_bach_size"), "3:1", "unknown key 'max_bach_size' in ModelConfig; did you mean 'max_batch_size'?"),
        (("max_batch_size: 8", "max_batch_size: many"), "3:17", "max_batch_size: expected a whole number, got 'many'"),
        (("TYPE_FP32 dims: [ 3 ] } ]\noutput", "TYPE_FLOAT dims: [ 3 ] } ]\noutput"), "4:32", "data_type: unknown value 'TYPE_FLOAT'"),
        (('name: "X" ', 'nam: "X" '), "4:11", "unknown key 'nam' in ModelInput; did you mean 'name'?"),
        (('name: "m"', "name: m"), "1:7", "name: expected text in quotes, got 'm'"),
        (("dynamic_batching { }", "dynamic_batching {"), "7:18", "'}' is missing at the end"),
        (("max_batch_size: 8", "max_batch_size: 8\nmax_batch_size: 9"), "4:1", "key 'max_batch_size' stands here twice"),
        (('name: "m"', 'name: "other"'), "1:1", "name is 'other', but the folder is 'm'"),
        (('platform: "onnxruntime_onnx"\n', ""), "1:1", "neither platform nor backend is set"),
        (("onnxruntime_onnx", "onnxruntme"), "2:1", "unknown backend 'onnxruntme'"),
        (("dims: [ 3 ] } ]\noutput", "dims: [ 0 ] } ]\noutput"), "4:42", "dims [0] must be positive"),
        (("dims: [ 3 ] } ]\noutput", "dims: [ -1, 3 ] } ]\noutput"), "4:42", "the batch axis does not belong into dims"),
        (("TYPE_FP32 dims: [ 3 ] } ]\noutput", "TYPE_INT64 dims: [ 3 ] } ]\noutput"), "4:21", "input 'X' is TYPE_FP32 in the model, not TYPE_INT64"),
        (('name: "X"', 'name: "Z"'), "4:11", "the model has no input 'Z'; its inputs are X"),
        (('name: "Y"', 'name: "Z"'), "5:12", "the model has no output 'Z'; its outputs are Y"),
        (("max_batch_size: 8", "max_batch_size: 0"), "7:1", "dynamic_batching does nothing while max_batch_size is 0"),
        (("batching { }", "batching { preferred_batch_size: [ 64 ] }"), "7:20", "preferred_batch_size 64 is above max_batch_size 8"),
        (("batching { }", "batching { max_queue_delay_microseconds: 50000 }"), "7:20", "every request may wait 50 ms"),
        (("batching { }", "batching { default_queue_policy { max_queue_size: 3 } }"), "7:20", "a queue policy stalls"),
        (("instance_group [ { count: 1 kind: KIND_AUTO } ]\n", ""), "1:1", "two copies on a CPU"),
        (("KIND_AUTO", "KIND_GPU"), "6:29", "KIND_GPU fails to load where there is no GPU"),
        (("count: 1", "count: 9"), "6:20", "9 instances share 4 cores"),
        (("dynamic_batching { }", "response_cache { enable: true }"), "7:1", "the response cache gives answers of an earlier model"),
        (("dynamic_batching { }", "version_policy { specific { versions: [ 1, 4 ] } }"), "7:1", "version_policy names [4], but the folders are 1"),
        (("data_type: TYPE_FP32 dims: [ 3 ] } ]\noutput", "data_type: TYPE_FP32 dims: [ 3 ] allow_ragged_batch: true } ]\noutput"), "4:54", "allow_ragged_batch means something else"),
        (("dynamic_batching { }", 'model_warmup [ { name: "w" batch_size: 1 inputs { key: "Q" value { data_type: TYPE_FP32 dims: [ 3 ] zero_data: true } } } ]'), "7:16", "warm-up sends 'Q', which is no input"),
    ],
    ids=range(26),
)  # fmt: skip
def test_a_mistake_in_the_configuration_is_told_in_its_place(change, place, said):
    mistakes = texts(with_config(change))
    assert any(m.startswith(f"m/config.pbtxt:{place}:") and said in m for m in mistakes), mistakes


@pytest.mark.parametrize(
    ("name", "files", "said"),
    [
        ("m/1/model.onnx", {"m/1/model.onnx": model(opset=22)}, "it uses ai.onnx 22"),
        ("m/1/model.onnx", {"m/1/model.onnx": model(ir=11)}, "its IR version is 11"),
        ("m/1/model.onnx", {"m/1/model.onnx": model("Nonsense")}, "operator ai.onnx.Nonsense does not exist"),
        ("m/1/model.onnx", {"m/1/model.onnx": model("Own", "my.ops")}, "of a domain that the engine does not have"),
        ("m/1/model.onnx", {"m/1/model.onnx": model("Gelu", "com.microsoft")}, "exists in ONNX Runtime only"),
        ("m/1/model.onnx", {"m/1/model.onnx": model(batch=4)}, "the first axis of 'X' is fixed to 4"),
        ("m/1/model.onnx", {"m/1/model.onnx": model("Own", "my.ops", inside=True)}, "my.ops.Own is of a domain that"),
        ("m/1/model.onnx", {"m/1/model.onnx": b""}, "the file is empty"),
        ("m/1/model.onnx", {"m/1/model.onnx": b"version https://git-lfs.github.com/spec/v1\n"}, "Git LFS pointer"),
        ("m/1/model.onnx", {"m/1/model.onnx": b"\x00garbage" * 9}, "this is no ONNX model"),
        ("m/1/model.onnx", {"m/1/model.onnx": model(marks={"taxiway.onnxruntime.min": "1.25.0"})}, "needs ONNX Runtime 1.25.0"),
        ("m/3.partial", {"m/3.partial/model.onnx": model()}, "Triton reads this folder as version 3"),
        ("m/v2", {"m/v2/model.onnx": model()}, "a version folder is a number alone: 2"),
        ("m/02", {"m/02/model.onnx": model()}, "without zeros in front"),
        ("m/2/model.onnx", {"m/2/Model.onnx": model()}, "the model file is missing; there is Model.onnx"),
        ("m/1/config.pbtxt", {"m/1/config.pbtxt": CONFIG.encode()}, "does not read a configuration in a version folder"),
        ("m/triton_python_backend_stub", {"m/triton_python_backend_stub": b"#!"}, "would run this program"),
        ("k/config.pbtxt", {"k/1/model.onnx": model()}, "there is no configuration"),
    ],
    ids=range(18),
)  # fmt: skip
def test_a_mistake_in_a_file_or_folder_is_told_with_its_path(name, files, said):
    mistakes = texts(GOOD | files)
    assert any(m.startswith(name) and said in m for m in mistakes), mistakes


def test_a_model_without_versions_or_models_at_all_is_told():
    assert "there is no version folder" in "\n".join(texts({"m/config.pbtxt": CONFIG.encode()}))
    assert "there is no model" in "\n".join(texts({}))


def test_outputs_that_are_maps_are_told_with_the_way_out():
    maps = helper.make_map_type_proto(TensorProto.INT64, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
    value = onnx.ValueInfoProto(name="Y", type=helper.make_sequence_type_proto(maps))
    made = onnx.load_model_from_string(model())
    del made.graph.output[:]
    made.graph.output.append(value)
    assert "zipmap=False" in "\n".join(texts(GOOD | {"m/1/model.onnx": made.SerializeToString()}))


def test_instances_that_cannot_fit_into_memory_are_told():
    said = "\n".join(texts(GOOD, machine=Machine(cores=4, memory=1 << 20)))
    assert "1 instances need about 150 MB, 1 MB are free" in said


def test_batches_that_callers_never_fill_are_told():
    files = with_config(
        ("max_batch_size: 8", "max_batch_size: 64"),
        ("batching { }", "batching { preferred_batch_size: [ 64 ] max_queue_delay_microseconds: 500 }"),
    )
    assert "batches of 64 never form: callers send at most 4 rows" in "\n".join(texts(files, contract=contract(4)))


def test_a_contract_and_its_configuration_are_compared():
    said = "\n".join(texts(GOOD, contract=contract(128)))
    assert "m/config.pbtxt:3:1: error: max_batch_size is 8, the contract says 128" in said


def test_many_mistakes_are_told_at_once_in_the_order_of_the_files():
    text = CONFIG.replace("max_batch_size", "max_bach_size").replace("KIND_AUTO", "KIND_ATO").replace('"Y"', "Y")
    files = {"m/config.pbtxt": text.encode(), "m/v1/model.onnx": model(), "m/3.x/model.onnx": b"", "m/x.pkl": b"\x80"}
    said = texts(files)
    for part in (
        "config.pbtxt:3:1",
        "config.pbtxt:5:18",
        "config.pbtxt:6:35",
        "m/v1",
        "m/3.x",
        "m/3.x/model.onnx",
        "m/x.pkl",
    ):
        assert any(part in m for m in said), (part, said)
    assert said == sorted(said, key=lambda m: m.split(":")[0])


def test_mistakes_of_every_kind_are_told_together_each_on_its_line():
    text = """name: "other"
platform: "onnxruntime_onnx"
max_bach_size: 8
input [ { name: "X" data_type: TYPE_FLOAT dims: [ -1, 3 ] } ]
output [
  { name: "Z" data_type: TYPE_FP32 dims: [ 3 ] },
  { name: "Y" data_type: TYPE_FP32 dims: [ 0 ] }
]
instance_group [ { count: 1 kind: KIND_GPU } ]
dynamic_batching { preferred_batch_size: [ 64 ] max_queue_delay_microseconds: 50000 }
response_cache { enable: yes }
response_cache { enable: true }
"""
    files = {"m/config.pbtxt": text.encode(), "m/1/model.onnx": model(opset=22), "m/02/model.onnx": model()}
    said = [(m.path, m.line, m.severity, m.message.split(" ")[0]) for m in found(files)]
    assert said == [
        ("m/02", 0, "error", "a"),
        ("m/1/model.onnx", 0, "error", "it"),
        ("m/config.pbtxt", 1, "error", "name"),
        ("m/config.pbtxt", 3, "error", "unknown"),
        ("m/config.pbtxt", 4, "error", "data_type:"),
        ("m/config.pbtxt", 4, "error", "input"),
        ("m/config.pbtxt", 6, "error", "the"),
        ("m/config.pbtxt", 7, "error", "output"),
        ("m/config.pbtxt", 7, "error", "output"),
        ("m/config.pbtxt", 9, "warning", "KIND_GPU"),
        ("m/config.pbtxt", 10, "error", "preferred_batch_size"),
        ("m/config.pbtxt", 10, "warning", "every"),
        ("m/config.pbtxt", 11, "error", "the"),
        ("m/config.pbtxt", 11, "error", "enable:"),
        ("m/config.pbtxt", 12, "error", "key"),
    ]
