"""Trees, converted so that no row takes another branch than it did in the notebook.

A tree compares a value with a threshold; the last bit of either decides. Converters round twice: thresholds to the
nearest float32, and the scalers in front of the tree compute in float32 where scikit-learn computes in float64. On
data with ties (whole numbers, prices) that sends up to a third of the rows elsewhere. Here instead:

- what stands in front of the tree is converted in float64 and its result cast to float32 once, as the libraries
  themselves do before they compare (scikit-learn's trees and XGBoost take float32; LightGBM and HistGradientBoosting
  compare in float64, for them it is nearly so); or cast after each step, as happens to data that is float32 already;
- thresholds that are kept in float64 are rounded down to a float32, so that `x <= threshold` is the same for every
  float32 `x`.

Which of these a pipeline needs depends on its data; all are tried, and the proof chooses. Where a converter cannot do
the front in float64 there is the plain conversion.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import onnx
from onnx import TensorProto, compose, helper, numpy_helper

from taxiway.proof.cases import Array
from taxiway.proof.tensors import Signature

_FLOAT32: Final = frozenset(
    {
        "DecisionTreeClassifier",
        "DecisionTreeRegressor",
        "ExtraTreeClassifier",
        "ExtraTreeRegressor",
        "RandomForestClassifier",
        "RandomForestRegressor",
        "ExtraTreesClassifier",
        "ExtraTreesRegressor",
        "GradientBoostingClassifier",
        "GradientBoostingRegressor",
        "XGBClassifier",
        "XGBRegressor",
        "XGBRFClassifier",
        "XGBRFRegressor",
    }
)
_FLOAT64: Final = frozenset(
    {"HistGradientBoostingClassifier", "HistGradientBoostingRegressor", "LGBMClassifier", "LGBMRegressor"}
)
_ARITHMETIC: Final = frozenset({"Add", "Sub", "Mul", "Div"})
_IR: Final = 8


def is_tree(model: Any) -> bool:
    """Whether `model` is a tree, or an ensemble of trees alone."""
    return type(model).__name__ in _FLOAT32 | _FLOAT64


def parts(estimator: Any) -> tuple[Any, Any] | None:
    """(what stands in front, the tree) of a pipeline that ends with a tree; None for all else."""
    estimator = getattr(estimator, "best_estimator_", None) or estimator
    steps = getattr(estimator, "steps", None)
    if not steps or len(steps) < 2 or not is_tree(steps[-1][1]):
        return None
    return estimator[:-1], steps[-1][1]


@dataclass(frozen=True, slots=True)
class Variant:
    """One way of rounding: thresholds down, and every step of the front to float32."""

    floored: bool
    stepwise: bool


def variants(estimator: Any) -> tuple[Variant, ...]:
    """The ways to round `estimator`, the likeliest first; none when it is no pipeline that ends with a tree."""
    found = parts(estimator)
    if found is None:
        return ()
    floors = (False, True) if type(found[1]).__name__ in _FLOAT64 else (True,)
    return tuple(Variant(floor, stepwise) for stepwise in (False, True) for floor in floors)


def floored(model: Any) -> Any:
    """`model`, or a copy whose float64 thresholds are float32 values, none of them larger than it was."""
    name = type(model).__name__
    if name.startswith("HistGradientBoosting"):
        twin = copy.deepcopy(model)
        for predictor in (p for iteration in twin._predictors for p in iteration):
            predictor.nodes["num_threshold"] = floor(predictor.nodes["num_threshold"])
        return twin
    if name.startswith("LGBM"):
        import lightgbm

        twin = copy.deepcopy(model)
        twin._Booster = lightgbm.Booster(model_str=floored_text(model.booster_.model_to_string()))
        return twin
    return model


def floor(values: Array) -> Array:
    """The largest float32 not above each of `values`, as float64."""
    wide = np.asarray(values, dtype=np.float64)
    with np.errstate(over="ignore"):
        narrow = wide.astype(np.float32)
    return np.where(narrow > wide, np.nextafter(narrow, np.float32(-np.inf)), narrow).astype(np.float64)


def floored_text(model: str) -> str:
    """The text form of a LightGBM model with its thresholds rounded down; sizes of its parts are left to the reader."""
    lines = []
    for line in model.split("\n"):
        if line.startswith("threshold="):
            values = floor(np.array(line.removeprefix("threshold=").split(), dtype=np.float64))
            line = "threshold=" + " ".join(repr(v) for v in values.tolist())
        if not line.startswith("tree_sizes="):
            lines.append(line)
    return "\n".join(lines)


def joined(front: Any, tree: Any, inputs: Signature, opsets: Mapping[str, int], *, stepwise: bool) -> Any:
    """One graph of `front` (float64 inside) and `tree` (float32): cast, front, cast, tree."""
    if stepwise:
        _cast_each_step(front)
    first, second = (_with_opsets(m, opsets) for m in (front, tree))
    first, second = compose.add_prefix(first, "front_"), compose.add_prefix(second, "tree_")
    _take_float32(first, inputs)
    _give_float32(first)
    merged = compose.merge_models(first, second, io_map=[(first.graph.output[0].name, second.graph.input[0].name)])
    return _without_prefix(merged)


def _with_opsets(model: Any, opsets: Mapping[str, int]) -> Any:
    # Converters declare the least versions that their operators need; the operators are those of `opsets` all the same.
    domains = {o.domain: o.version for o in model.opset_import} | dict(opsets)
    del model.opset_import[:]
    model.opset_import.extend([helper.make_opsetid(domain, version) for domain, version in domains.items()])
    model.ir_version = _IR
    return model


def _take_float32(model: Any, inputs: Signature) -> None:
    graph, casts = model.graph, []
    read = {name for node in graph.node for name in node.input}
    for value, one in zip(list(graph.input), inputs, strict=True):
        inner = value.name
        value.name = inner.removeprefix("front_")
        if inner not in read:
            continue
        if one.dtype == "FP32":
            casts.append(helper.make_node("Cast", [value.name], [inner], to=TensorProto.DOUBLE))
            value.type.tensor_type.elem_type = TensorProto.FLOAT
        else:
            casts.append(helper.make_node("Identity", [value.name], [inner]))
    nodes = [*casts, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)


def _cast_each_step(model: Any) -> None:
    """Calculate as float32 does: rounded constants, and a rounded result of each step (float64 in between is exact)."""
    arithmetic = [node for node in model.graph.node if node.op_type in _ARITHMETIC]
    constants = {name for node in arithmetic for name in node.input}
    for tensor in model.graph.initializer:
        if tensor.name in constants and tensor.data_type == TensorProto.DOUBLE:
            values = numpy_helper.to_array(tensor)
            tensor.CopyFrom(numpy_helper.from_array(values.astype(np.float32).astype(np.float64), tensor.name))
    nodes: list[Any] = []
    for i, node in enumerate(model.graph.node):
        nodes.append(copy.deepcopy(node))
        if node.op_type in _ARITHMETIC:
            exact, narrow = f"exact_{i}", f"narrow_{i}"
            nodes[-1].output[0] = exact
            nodes.append(helper.make_node("Cast", [exact], [narrow], to=TensorProto.FLOAT))
            nodes.append(helper.make_node("Cast", [narrow], [node.output[0]], to=TensorProto.DOUBLE))
    del model.graph.node[:]
    model.graph.node.extend(nodes)


def _give_float32(model: Any) -> None:
    output = model.graph.output[0]
    model.graph.node.append(helper.make_node("Cast", [output.name], ["front_float32"], to=TensorProto.FLOAT))
    output.name = "front_float32"
    output.type.tensor_type.elem_type = TensorProto.FLOAT


def _without_prefix(model: Any) -> Any:
    for value in model.graph.output:
        plain = value.name.removeprefix("tree_")
        for node in model.graph.node:
            node.output[:] = [plain if name == value.name else name for name in node.output]
            node.input[:] = [plain if name == value.name else name for name in node.input]
        value.name = plain
    return onnx.load_model_from_string(model.SerializeToString())
