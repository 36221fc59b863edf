"""A converter for SimpleImputer that works in float64, which the operator made for it does not.

ONNX Runtime has `ai.onnx.ml.Imputer` for float32 only; `Where(IsNaN(x), mean, x)` does the same for any float.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from skl2onnx import update_registered_converter
from skl2onnx.common.data_types import DoubleTensorType
from skl2onnx.operator_converters.imputer_op import convert_sklearn_imputer
from skl2onnx.proto import onnx_proto
from skl2onnx.shape_calculators.imputer import calculate_sklearn_imputer_output_shapes
from sklearn.impute import SimpleImputer


def register() -> None:
    """Have skl2onnx use this converter; safe to call again."""
    update_registered_converter(
        SimpleImputer, "TaxiwaySimpleImputer", calculate_sklearn_imputer_output_shapes, _convert, overwrite=True
    )


def _convert(scope: Any, operator: Any, container: Any) -> None:
    model = operator.raw_operator
    fits = len(operator.inputs) == 1 and isinstance(operator.inputs[0].type, DoubleTensorType)
    missing = model.missing_values
    if not fits or model.add_indicator or not (isinstance(missing, float) and math.isnan(missing)):
        convert_sklearn_imputer(scope, operator, container)
        return
    values = np.asarray(model.statistics_, dtype=np.float64)
    if not np.isfinite(values).all():  # columns without any value are dropped
        convert_sklearn_imputer(scope, operator, container)
        return
    gaps, fill = scope.get_unique_variable_name("gaps"), scope.get_unique_variable_name("fill")
    source = operator.inputs[0].full_name
    container.add_initializer(fill, onnx_proto.TensorProto.DOUBLE, [1, len(values)], values.tolist())
    container.add_node("IsNaN", source, gaps, name=scope.get_unique_operator_name("IsNaN"), op_version=13)
    where = scope.get_unique_operator_name("Where")
    container.add_node("Where", [gaps, fill, source], operator.outputs[0].full_name, name=where, op_version=9)
