"""Names, folders, and files that belong to a model: each with one that is right beside it."""

import io
import zipfile

import onnx
import pytest
from onnx import TensorProto, helper

from tests.gates.repositories import CONFIG, GOOD, model, texts, with_config

TORCH = CONFIG.replace("onnxruntime_onnx", "pytorch_libtorch").encode()


def said(files):
    return "\n".join(texts(files))


def zipped(*names):
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name in names:
            archive.writestr(name, b"\x80\x02N.")
    return target.getvalue()


def beside(location="weights.bin", length="24", offset=None):
    """A model that adds two rows of three numbers that lie in another file."""
    weights = TensorProto(name="W", data_type=TensorProto.FLOAT, dims=[2, 3], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", location), ("offset", offset), ("length", length)):
        if value is not None:
            weights.external_data.add(key=key, value=value)
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["N", 3]) for n in "XY"]
    node = helper.make_node("Gemm", ["X", "W"], ["Y"], transB=1)
    ends[1].type.tensor_type.shape.dim[1].dim_value = 2
    made = helper.make_model(
        helper.make_graph([node], "g", ends[:1], ends[1:], [weights]), opset_imports=[helper.make_opsetid("", 17)]
    )
    made.ir_version = 8
    return made.SerializeToString()


def with_weights(data=b"\0" * 24, **more):
    text = CONFIG.replace('"Y" data_type: TYPE_FP32 dims: [ 3 ]', '"Y" data_type: TYPE_FP32 dims: [ 2 ]').encode()
    files = {"m/config.pbtxt": text, "m/1/model.onnx": beside(**more)}
    return files | ({} if data is None else {"m/1/weights.bin": data})


def test_weights_beside_the_model_are_found_and_are_no_strays():
    assert texts(with_weights()) == []
    assert texts(with_weights(b"\0" * 32, offset="8")) == []


@pytest.mark.parametrize(
    ("files", "part"),
    [
        (with_weights(None), "weights 'W' are in m/1/weights.bin, which is missing"),
        (with_weights(b"\0" * 23), "weights 'W' end at byte 24 of m/1/weights.bin, which is shorter"),
        (with_weights(location="../../secret"), "outside the version's folder"),
        (with_weights(location="/etc/passwd"), "outside the version's folder"),
        (with_weights(b"\0" * 20, length="20"), "it is not valid"),
    ],
    ids=["missing", "short", "up", "absolute", "too few for the shape"],
)
def test_weights_that_are_not_where_the_model_says_are_told(files, part):
    assert part in said(files)


def test_a_model_may_be_a_folder_with_its_weights_in_it():
    files = {"m/config.pbtxt": GOOD["m/config.pbtxt"], "m/1/model.onnx/model.onnx": model()}
    assert texts(files) == []
    assert "knows up to 21" in said(files | {"m/1/model.onnx/model.onnx": model(opset=22)})


def test_a_folder_that_is_a_model_and_no_repository_is_told_as_such():
    files = {"config.pbtxt": CONFIG.encode(), "1/model.onnx": model()}
    assert texts(files) == [
        "config.pbtxt: error: this folder is a model, not a repository; give the folder that it lies in"
    ]


def test_a_hidden_folder_would_be_taken_for_a_model():
    assert texts(GOOD | {".git/HEAD": b"ref"}) == [
        ".git: error: Triton takes this folder for a model; move it out of the repository"
    ]


def test_what_nobody_reads_is_a_warning_and_what_is_hidden_or_read_is_none():
    read = {"m/warmup/zeros": b"0", "m/.gitkeep": b"", "m/1/.DS_Store": b"", "m/configs/a.pbtxt": b"", "README.md": b""}
    assert texts(GOOD | read) == []
    mistakes = texts(GOOD | {"m/notes.txt": b"x", "m/1/old.onnx.bak": b"x", "m/drafts/x": b"x"})
    assert [m.split(": ")[0] for m in mistakes] == ["m/1/old.onnx.bak", "m/drafts", "m/notes.txt"]
    assert all(": warning: nothing reads this " in m for m in mistakes)


def test_a_list_of_labels_must_be_there_and_is_no_stray():
    files = with_config(('name: "Y"', 'name: "Y" label_filename: "labels.txt"'))
    assert "5:22: error: label_filename 'labels.txt' is not in the model's folder" in said(files)
    assert texts(files | {"m/labels.txt": b"a\nb\nc"}) == []


def test_a_version_of_more_than_64_bits_is_told():
    assert "at most 64 bits" in said(GOOD | {f"m/{1 << 63}/model.onnx": model()})
    assert texts(GOOD | {f"m/{(1 << 63) - 1}/model.onnx": model()}) == []


def test_a_pytorch_model_that_is_no_torchscript_is_told():
    script = zipped("m/code/__torch__.py", "m/constants.pkl", "m/data.pkl")
    assert texts({"m/config.pbtxt": TORCH, "m/1/model.pt": script}) == []
    mistakes = said({"m/config.pbtxt": TORCH, "m/1/model.pt": zipped("archive/data.pkl")})
    assert "m/1/model.pt: error: this is no TorchScript model" in mistakes
    assert "this is no TorchScript model" in said({"m/config.pbtxt": TORCH, "m/1/model.pt": b"garbage"})
    assert "the model file is missing; there is model.onnx" in said({"m/config.pbtxt": TORCH, "m/1/model.onnx": b"x"})


def test_a_python_model_may_have_files_of_its_own():
    text = CONFIG.replace("onnxruntime_onnx", "python").replace("platform", "backend").encode()
    files = {"m/config.pbtxt": text, "m/1/model.py": b"", "m/1/words.json": b"{}", "m/tables.csv": b""}
    assert texts(files) == []


def test_a_weight_that_is_listed_among_the_inputs_is_no_input():
    made = onnx.load_model_from_string(model())
    made.graph.input.append(helper.make_tensor_value_info("W", TensorProto.FLOAT, [3]))
    made.graph.initializer.append(helper.make_tensor("W", TensorProto.FLOAT, [3], [1, 2, 3]))
    files = GOOD | {"m/1/model.onnx": made.SerializeToString()}
    assert texts(files) == []
    more = 'input [ { name: "W" data_type: TYPE_FP32 dims: [ 3 ] } ]\n'
    files["m/config.pbtxt"] = (CONFIG + more).encode()
    assert texts(files) == [
        "m/config.pbtxt:8:11: error: 'W' is a weight that the model has stored, not an input",
    ]
