"""Gate 2: each mistake on a good repository with that one thing changed, and many at once."""

# ruff: noqa: E501 - tables of cases are read line by line

import io
import pickle
import zipfile

import numpy as np
import onnx
import pytest
from google.protobuf import text_format
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper
from tritonclient.grpc import model_config_pb2 as pb

from taxiway.catalog.pbtxt import config_pbtxt
from taxiway.core.contract import Contract, Field
from taxiway.core.tensor import TensorSpec
from taxiway.gates import config, pickles
from taxiway.gates.mistake import Machine, Target
from taxiway.gates.validate import validate

CONFIG = """name: "m"
platform: "onnxruntime_onnx"
max_batch_size: 8
input [ { name: "X" data_type: TYPE_FP32 dims: [ 3 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 3 ] } ]
instance_group [ { count: 1 kind: KIND_AUTO } ]
dynamic_batching { }
"""


def model(op="Relu", domain="", opset=17, ir=8, batch="N", dtype=TensorProto.FLOAT, marks=None):
    node = helper.make_node(op, ["X"], ["Y"], domain=domain)
    ends = [helper.make_tensor_value_info(n, dtype, [batch, 3]) for n in "XY"]
    opsets = [helper.make_opsetid("", opset)]
    opsets += [helper.make_opsetid(domain, 1)] if domain else []
    made = helper.make_model(helper.make_graph([node], "g", ends[:1], ends[1:]), opset_imports=opsets)
    made.ir_version = ir
    helper.set_model_props(made, marks or {})
    return made.SerializeToString()


GOOD = {"m/config.pbtxt": CONFIG.encode(), "m/1/model.onnx": model()}


def found(files, machine=None, contract=None):
    return validate(files, target=Target(), machine=machine or Machine(cores=4), contract=contract)


def texts(files, **more):
    return [str(m) for m in found(files, **more)]


def with_config(*changes):
    text = CONFIG
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    return GOOD | {"m/config.pbtxt": text.encode()}


def test_a_good_repository_has_no_mistake():
    assert texts(GOOD) == []


def contract(max_batch=128):
    fields = (Field(TensorSpec("X", "FP32", (3,))),)
    return Contract(fields, (Field(TensorSpec("Y", "FP32", (3,))),), max_batch)


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
    ids=range(17),
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


class Evil:
    def __reduce__(self):
        import os

        return os.system, ("true",)


def zipped(name, data):
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr(name, data)
    return target.getvalue()


@pytest.mark.parametrize(
    ("path", "data", "severity", "said"),
    [
        ("m.pkl", pickle.dumps(Evil()), "error", "system"),
        ("m.pt", zipped("archive/data.pkl", pickle.dumps(Evil())), "error", "system"),
        ("m.joblib", pickle.dumps([1, 2]), "warning", "is a program"),
        ("m.pkl", pickle.dumps([1, 2])[:-3], "error", "cannot be read"),
        ("m.pkl", b"\x80\x04garbage", "error", "cannot be read"),
    ],
    ids=["evil", "evil in torch", "harmless", "cut", "garbage"],
)
def test_pickles_are_scanned_and_never_loaded(path, data, severity, said):
    (mistake,) = pickles.scan(path, data)
    assert mistake.severity == severity
    assert said in mistake.message


def test_arrays_of_objects_are_pickles_and_arrays_of_numbers_are_not():
    def saved(array):
        target = io.BytesIO()
        np.save(target, array, allow_pickle=True)
        return target.getvalue()

    assert pickles.scan("x.npy", saved(np.arange(3))) == []
    (mistake,) = pickles.scan("x.npy", saved(np.array([Evil()], dtype=object)))
    assert "system" in mistake.message
    assert pickles.scan("model.onnx", pickle.dumps(Evil())) == []


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(["m.pkl", "m.pt", "m.npy", "m.npz", "m.joblib"]), st.binary(max_size=200))
def test_any_bytes_can_be_scanned(path, data):
    pickles.scan(path, data)
    pickles.scan(path, b"PK\x03\x04" + data)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_any_text_can_be_read_as_a_configuration(data):
    text = list(CONFIG)
    for _ in range(data.draw(st.integers(0, 6))):
        at = data.draw(st.integers(0, len(text) - 1))
        text[at] = data.draw(st.sampled_from(['"', "{", "}", "[", "]", ":", "x", "7", "\n", "#", ""]))
    files = {"m/config.pbtxt": "".join(text).encode(), "m/1/model.onnx": model()}
    read = config.read("".join(text), "c")
    assert (read.config is None) == bool(read.mistakes)
    for mistake in found(files):
        assert mistake.line >= 0


@settings(max_examples=100, deadline=None)
@given(
    count=st.integers(0, 4),
    dims=st.lists(st.integers(-1, 9), max_size=3),
    delay=st.integers(0, 10**6),
    text=st.text(max_size=12),
    ragged=st.booleans(),
)
def test_whatever_protobuf_writes_is_read_without_a_mistake(count, dims, delay, text, ragged):
    made = pb.ModelConfig(name=text, max_batch_size=count)
    for i in range(count):
        made.input.add(name=f"{text}{i}", data_type=i + 1, dims=dims, allow_ragged_batch=ragged)
    made.dynamic_batching.max_queue_delay_microseconds = delay
    made.parameters["k\"'"].string_value = text
    made.model_warmup.add().inputs["a"].random_data = True
    for single in (False, True):
        written = text_format.MessageToString(made, as_one_line=single)
        read = config.read(written, "c")
        assert read.mistakes == []
        assert read.config == made
