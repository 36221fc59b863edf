"""scikit-learn estimators to ONNX.

One input `X`, float32 [rows, features]; classifiers answer `label` and, when they know probabilities,
`probabilities` [rows, classes]; regressors answer `prediction` [rows, targets].
"""

from __future__ import annotations

import contextlib
import io
import warnings
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from skl2onnx import convert_sklearn
from skl2onnx.common.data_types import FloatTensorType
from sklearn.base import is_classifier, is_regressor

from taxiway.core.errors import Refused
from taxiway.proof.cases import Array, Case, columns_of_rows
from taxiway.proof.graph import finish, rename_outputs

TARGET_OPSET: Final = {"": 17, "ai.onnx.ml": 3}
INPUT: Final = "X"


@dataclass(frozen=True, slots=True)
class Shape:
    """What kind of answers an estimator gives: the output names in the order of the graph."""

    outputs: tuple[str, ...]
    classes: tuple[str, ...] = ()


def shape(estimator: Any) -> Shape:
    """Raises Refused for anything but a classifier with one target or a regressor."""
    name = type(estimator).__name__
    if is_regressor(estimator):
        return Shape(("prediction",))
    classes = getattr(estimator, "classes_", None)
    if not is_classifier(estimator) or classes is None:
        raise Refused(
            f"{name} is neither a classifier nor a regressor; only those can be exported yet. "
            "Choose another model with --model",
            code="not-exportable",
        )
    if isinstance(classes, list):
        raise _several(estimator)
    labels = tuple(str(c) for c in classes.tolist())
    return Shape(("label", "probabilities") if hasattr(estimator, "predict_proba") else ("label",), labels)


def export(estimator: Any, features: int) -> bytes:
    """The ONNX model of `estimator` over `features` columns; the same bytes for the same estimator.

    Raises Refused when there is no conversion, naming what has none.
    """
    answers = shape(estimator)
    options: list[Any] = [{id(estimator): {"zipmap": False}} if "label" in answers.outputs else None]
    if answers.outputs == ("label",):
        # Some classifiers without probabilities have a converter that does not know the option.
        options.append({id(part): {} for part in _answering(estimator)})
    try:
        model = _converted(estimator, features, options)
    except Exception as error:  # converters fail with every kind of error, KeyError and RuntimeError included
        raise _no_conversion(estimator, error) from error
    del model.graph.output[len(answers.outputs) :]
    rename_outputs(model, dict(zip((o.name for o in model.graph.output), answers.outputs, strict=True)))
    return finish(model, own=True)


def _converted(estimator: Any, features: int, options: list[Any]) -> Any:
    """The model by the first of `options` that its converter knows."""
    initial = [(INPUT, FloatTensorType([None, features]))]
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            return convert_sklearn(
                estimator, name="model", initial_types=initial, target_opset=TARGET_OPSET, options=options[0]
            )
    except NameError as error:
        if len(options) == 1 or "zipmap" not in str(error):
            raise
    return _converted(estimator, features, options[1:])


def _answering(estimator: Any) -> list[Any]:
    """Itself, and what inside it gives the answer: the last step of a pipeline, the best estimator of a search."""
    inner = getattr(estimator, "best_estimator_", None) or getattr(estimator, "steps", [(None, None)])[-1][1]
    return [estimator, *(_answering(inner) if inner is not None else [])]


def _no_conversion(estimator: Any, error: Exception) -> Refused:
    steps = [type(s).__name__ for _, s in getattr(estimator, "steps", [])] or [type(estimator).__name__]
    said = " ".join(str(error).split())[:500]
    return Refused(
        f"{' + '.join(steps)} cannot be converted to ONNX: {said}",
        "What to do: replace the part that the message names by one that scikit-learn's ONNX converter knows (see "
        "https://onnx.ai/sklearn-onnx/supported.html), or do that step before the pipeline.",
        code="no-conversion",
    )


def case(estimator: Any, rows: Array, table: Any) -> Case:
    """What `estimator` itself answers to `rows`, as served: float32 in, int64, text or float32 out.

    `rows` is float64 [rows, features] holding float32 values; `table` is the same in the form it was fitted on.
    """
    expected: dict[str, Array] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in shape(estimator).outputs:
            if name == "label":
                expected[name] = _one_target(estimator, columns_of_rows(_labels(np.asarray(estimator.predict(table)))))
            elif name == "probabilities":
                expected[name] = np.asarray(estimator.predict_proba(table)).astype(np.float32)
            else:
                expected[name] = columns_of_rows(np.asarray(estimator.predict(table)).astype(np.float32))
    return Case({INPUT: rows.astype(np.float32)}, expected)


def _one_target(estimator: Any, labels: Array) -> Array:
    # Some classifiers of several yes-or-no targets look like those of one until they answer.
    if labels.shape[1] != 1:
        raise _several(estimator)
    return labels


def _several(estimator: Any) -> Refused:
    return Refused(
        f"{type(estimator).__name__} predicts several targets at once; fit one classifier for each and ship them one "
        "by one",
        code="not-exportable",
    )


def _labels(labels: Array) -> Array:
    """Numbers (booleans too) as int64, text as it is."""
    return labels.astype(object) if labels.dtype.kind in "OUS" else labels.astype(np.int64)
