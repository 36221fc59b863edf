"""Small real models, a kind of input each."""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from skl2onnx import to_onnx
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import GradientBoostingClassifier

from taxiway.core.contract import Contract, Field
from taxiway.core.sample import Tensor
from taxiway.core.tensor import TensorSpec

COLUMNS = tuple(str(name) for name in load_breast_cancer().feature_names)
CONTRACTS = {
    "risk": Contract(
        inputs=(Field(TensorSpec("X", "FP32", (30,)), columns=COLUMNS),),
        outputs=(Field(TensorSpec("probabilities", "FP32", (2,))),),
    ),
    "items": Contract(
        inputs=(
            Field(TensorSpec("user_id", "INT64", (1,))),
            Field(TensorSpec("item_ids", "INT64", (-1,)), max_length=8),
        ),
        outputs=(Field(TensorSpec("scores", "FP32", (1,))),),
    ),
    "text": Contract(
        inputs=(Field(TensorSpec("T", "BYTES", (1,))),),
        outputs=(Field(TensorSpec("U", "BYTES", (1,))),),
    ),
    "root": Contract(
        inputs=(Field(TensorSpec("X", "FP32", (2,)), finite=False, infinite=True),),
        outputs=(Field(TensorSpec("Y", "FP32", (2,))),),
    ),
}


def _value(name: str, kind: int, shape: list[str | int]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def _model(nodes: list, inputs: list, outputs: list, constants: dict[str, np.ndarray]) -> bytes:
    initial = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, initial)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


def risk() -> bytes:
    X, y = load_breast_cancer(return_X_y=True)
    fitted = GradientBoostingClassifier(n_estimators=50, random_state=0).fit(X, y)
    opset = {"": 17, "ai.onnx.ml": 3}
    return to_onnx(fitted, X[:1].astype(np.float32), options={"zipmap": False}, target_opset=opset).SerializeToString()


def items() -> bytes:
    nodes = [
        helper.make_node("Gather", ["weights", "item_ids"], ["found"]),
        helper.make_node("ReduceSum", ["found", "last"], ["sum"], keepdims=1),
        helper.make_node("Cast", ["user_id"], ["user"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["sum", "user"], ["both"]),
        helper.make_node("Squeeze", ["both", "last"], ["scores"]),
    ]
    inputs = [_value("user_id", TensorProto.INT64, ["N", 1]), _value("item_ids", TensorProto.INT64, ["N", "L"])]
    constants = {"weights": np.arange(10, dtype=np.float32), "last": np.array([1])}
    return _model(nodes, inputs, [_value("scores", TensorProto.FLOAT, ["N"])], constants)


def text() -> bytes:
    inputs, outputs = [_value("T", TensorProto.STRING, ["N", 1])], [_value("U", TensorProto.STRING, ["N", 1])]
    return _model([helper.make_node("Identity", ["T"], ["U"])], inputs, outputs, {})


def root() -> bytes:
    inputs, outputs = [_value("X", TensorProto.FLOAT, ["N", 2])], [_value("Y", TensorProto.FLOAT, ["N", 2])]
    return _model([helper.make_node("Sqrt", ["X"], ["Y"])], inputs, outputs, {})


MODELS = {"risk": risk, "items": items, "text": text, "root": root}


def put(root: Path, name: str, model: bytes, config: str) -> None:
    """Add a model to a repository."""
    (root / name / "1").mkdir(parents=True)
    (root / name / "1" / "model.onnx").write_bytes(model)
    (root / name / "config.pbtxt").write_text(config)


def row(**columns: float) -> Tensor:
    """One row for `risk`, all ones but for `columns` (c3=2.0 sets column 3)."""
    values = [1.0] * 30
    for name, value in columns.items():
        values[int(name[1:])] = value
    return Tensor("FP32", (1, 30), tuple(values))
