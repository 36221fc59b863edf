"""Trees, converted so that no row takes another branch than it did in the notebook.

A tree compares a value with a threshold; the last bit of either decides. Converters round twice: thresholds to the
nearest float32, and the scalers in front of the tree compute in float32 where scikit-learn computes in float64. On
data with ties (whole numbers, prices) that sends up to a third of the rows elsewhere. Here instead:

- what stands in front of the tree is converted in float64 and its result cast to float32 once, as the libraries
  themselves do before they compare (scikit-learn's trees and XGBoost take float32; LightGBM and HistGradientBoosting
  compare in float64, for them it is nearly so);
- thresholds that are kept in float64 are rounded down to a float32, so that `x <= threshold` is the same for every
  float32 `x`.

Where a converter cannot do the front in float64, the plain conversion is used and parity decides.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import onnx
from onnx import TensorProto, compose, helper

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
# Of what may stand in front of a tree, these calculate nothing with the numbers that they let through.
_KEEPING: Final = frozenset(
    {"Pipeline", "ColumnTransformer", "SimpleImputer", "OneHotEncoder", "OrdinalEncoder", "FunctionTransformer"}
)
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


def keeps_float32(front: Any) -> bool:
    """Whether float32 numbers come out of `front` as they went in (or as means, or as codes of categories)."""
    inner = [s for _, s in getattr(front, "steps", ())] + [s for _, s, _ in getattr(front, "transformers_", ())]
    return type(front).__name__ in _KEEPING and all(isinstance(s, str) or keeps_float32(s) for s in inner)


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


def joined(front: Any, tree: Any, inputs: Signature, opsets: Mapping[str, int]) -> Any:
    """One graph of `front` (float64 inside) and `tree` (float32): cast, front, cast, tree."""
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
