"""ONNX models on their own: what ONNX Runtime would refuse is an error, and nothing that it loads is."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper
from skl2onnx import to_onnx
from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from taxiway.gates import graph
from taxiway.gates.mistake import Target
from tests.gates.repositories import CONFIG, GOOD, model, texts

ROWS = np.random.default_rng(0).normal(size=(40, 3))
LABELS = (ROWS[:, 0] > 0).astype(np.int64)


def made(*nodes, x=("N", 3), y=("N", 3), kind=TensorProto.FLOAT, domain=""):
    ends = [helper.make_tensor_value_info("X", TensorProto.FLOAT, x), helper.make_tensor_value_info("Y", kind, y)]
    weights = helper.make_tensor("W", TensorProto.FLOAT, [4, 2], [0.0] * 8)
    opsets = [helper.make_opsetid(d, v) for d, v in (("", 17), (domain, 1)) if d or v == 17]
    built = helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:], [weights]), opset_imports=opsets)
    built.ir_version = 8
    return built


def looked_at(built, batched=True, served=None):
    copy = onnx.load_model_from_string(built.SerializeToString())
    return [str(m) for m in graph.check(copy, "g", {}, Target(), batched=batched, served=served)]


def loads(built):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        onnxruntime.InferenceSession(built.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception:
        return False
    return True


@pytest.mark.parametrize(
    ("built", "severity"),
    [
        (made(helper.make_node("Relu", ["X"], ["Y"])), None),
        (made(helper.make_node("MatMul", ["X", "W"], ["Y"]), y=("N", 2)), "error"),
        (made(helper.make_node("MatMul", ["X", "W"], ["Y"]), x=("N", 4), y=("N", 2)), None),
        (made(helper.make_node("Relu", ["X"], ["Y"]), kind=TensorProto.DOUBLE), "error"),
        (made(helper.make_node("Relu", ["X"], ["Y"]), y=("N", 4)), "warning"),
        (made(helper.make_node("Relu", ["Z"], ["Y"])), "error"),
        (made(helper.make_node("Gelu", ["X"], ["Y"], domain="com.microsoft"), domain="com.microsoft"), "warning"),
        (made(helper.make_node("Gelu", ["X"], ["Y"])), "error"),
    ],
    ids=["good", "wrong sizes", "right sizes", "type", "declared", "unknown tensor", "runtime's own", "later opset"],
)
def test_a_model_is_an_error_exactly_when_onnx_runtime_refuses_it(built, severity):
    mistakes = looked_at(built)
    assert any(": error: " in m for m in mistakes) == (severity == "error") == (not loads(built))
    assert any(": warning: " in m for m in mistakes) == (severity == "warning")


@pytest.mark.parametrize("kind", [FloatTensorType, DoubleTensorType], ids=["float32", "float64"])
@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(),
        RandomForestClassifier(3),
        GradientBoostingRegressor(n_estimators=3),
        make_pipeline(PolynomialFeatures(), Ridge()),
    ],
    ids=["logistic", "forest", "boosting", "polynomial"],
)
def test_models_of_scikit_learn_are_errors_exactly_when_onnx_runtime_refuses_them(estimator, kind):
    estimator.fit(ROWS.astype(np.float32), LABELS)
    options = {id(estimator): {"zipmap": False}} if hasattr(estimator, "predict_proba") else None
    opsets = {"": 17, "ai.onnx.ml": 3}
    built = to_onnx(estimator, initial_types=[("X", kind([None, 3]))], target_opset=opsets, options=options)
    errors = [m for m in looked_at(built) if ": error: " in m]
    assert bool(errors) == (not loads(built)), errors


def test_rows_of_float64_straight_into_trees_are_told():
    def trees(kind, **more):
        ends = [helper.make_tensor_value_info("X", kind, ["N", 3]), helper.make_tensor_value_info("Y", kind, ["N", 1])]
        node = helper.make_node("TreeEnsembleRegressor", ["X"], ["Y"], domain="ai.onnx.ml", n_targets=1, **more)
        return onnx.helper.make_model(helper.make_graph([node], "g", ends[:1], ends[1:]))

    exact = helper.make_tensor("v", TensorProto.DOUBLE, [1], [0.5])
    told = "input 'X' is FP64 and goes straight into trees"
    assert told in "\n".join(looked_at(trees(TensorProto.DOUBLE)))
    assert told not in "\n".join(looked_at(trees(TensorProto.FLOAT)))
    assert told not in "\n".join(looked_at(trees(TensorProto.DOUBLE, nodes_values_as_tensor=exact)))


def test_an_operator_of_the_standard_that_the_target_has_not_is_told():
    decode = helper.make_node("ImageDecoder", ["X"], ["Y"])
    ends = [helper.make_tensor_value_info(n, TensorProto.UINT8, None) for n in "XY"]
    opsets = [helper.make_opsetid("", 20)]
    built = helper.make_model(helper.make_graph([decode], "g", ends[:1], ends[1:]), opset_imports=opsets)
    built.ir_version = 9
    assert any("ai.onnx.ImageDecoder is not in ONNX Runtime 1.19.2" in m for m in looked_at(built))
    assert not loads(built)


def test_an_operator_that_the_model_defines_itself_is_none_of_a_foreign_domain():
    built = made(helper.make_node("Twice", ["X"], ["Y"], domain="own"), domain="own")
    assert any("own.Twice is of a domain that the engine does not have" in m for m in looked_at(built))
    add = helper.make_node("Add", ["a", "a"], ["b"])
    opsets = [helper.make_opsetid("", 17)]
    built.functions.append(helper.make_function("own", "Twice", ["a"], ["b"], [add], opsets))
    assert looked_at(built) == []
    assert loads(built)


def test_outputs_that_are_not_served_may_be_as_they_like():
    built = onnx.load_model_from_string(model())
    built.graph.node.add(op_type="Constant", output=["label"]).attribute.add(
        name="value", type=onnx.AttributeProto.TENSOR, t=helper.make_tensor("", TensorProto.INT64, [1], [7])
    )
    built.graph.output.append(helper.make_tensor_value_info("label", TensorProto.INT64, [1]))
    files = GOOD | {"m/1/model.onnx": built.SerializeToString()}
    assert texts(files) == []
    more = 'output [ { name: "label" data_type: TYPE_INT64 dims: [ 1 ] } ]\n'
    files["m/config.pbtxt"] = (CONFIG + more).encode()
    assert any("the first axis of 'label' is fixed to 1" in m for m in texts(files))
