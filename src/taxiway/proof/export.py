"""scikit-learn estimators, and those of XGBoost and LightGBM, to ONNX.

What goes in is said by a signature (see `tensors.py`); classifiers answer `label` and, when they know probabilities,
`probabilities` [rows, classes]; regressors answer `prediction` [rows, targets].
"""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from onnx import helper
from skl2onnx import convert_sklearn
from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, Int64TensorType, StringTensorType
from sklearn.base import is_classifier, is_regressor
from sklearn.pipeline import Pipeline

from taxiway.core.errors import Refused
from taxiway.proof import boosters, imputer, trees
from taxiway.proof.cases import Array, Case, columns_of_rows
from taxiway.proof.graph import finish, rename_inputs, rename_outputs
from taxiway.proof.ort import Served
from taxiway.proof.tensors import WHOLE, Input, Signature, used

OPSET: Final = 17
ML_OPSET: Final = 3
_TYPES: Final = {"FP32": FloatTensorType, "INT64": Int64TensorType, "BYTES": StringTensorType}
# One converter's message was 119 MB: it held the model.
_SAID: Final = 500


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


def refuse(estimator: Any) -> None:
    """Raises Refused for estimators that have no conversion, or none that is right."""
    shape(estimator)
    for part in boosters.parts(estimator):
        boosters.refuse(part)
    for part in _answering(estimator):
        if getattr(part, "is_categorical_", None) is not None:
            raise Refused(
                f"{type(part).__name__} was fitted with categorical_features, which convert to wrong answers.",
                "What to do: encode them in the pipeline (OneHotEncoder or OrdinalEncoder in a ColumnTransformer).",
                code="no-conversion",
            )


def export(
    estimator: Any, inputs: Signature, *, opset: int = OPSET, ml_opset: int = ML_OPSET
) -> tuple[bytes, Signature]:
    """The first of the `conversions` of `estimator`."""
    return next(conversions(estimator, inputs, opset=opset, ml_opset=ml_opset))


def conversions(
    estimator: Any, inputs: Signature, *, opset: int = OPSET, ml_opset: int = ML_OPSET
) -> Iterator[tuple[bytes, Signature]]:
    """ONNX models of `estimator` over `inputs` with the inputs they use, the likeliest to be exact first.

    They differ in how they round; which of them answers as the estimator does is for the proof to say. The same
    estimator gives the same bytes. Raises Refused when there is no conversion, naming what has none.
    """
    answers = shape(estimator)
    known = boosters.prepared(_alone(estimator))
    opsets = {"": opset, "ai.onnx.ml": ml_opset}
    for variant in trees.variants(known):
        model = _exactly(known, inputs, variant, opsets)
        if model is not None:
            yield _finished(model, answers, inputs)
    known = trees.floored(known) if trees.is_tree(known) else known
    options: list[Any] = [{id(known): {"zipmap": False}} if "label" in answers.outputs else None]
    if answers.outputs == ("label",):
        # Some classifiers without probabilities have a converter that does not know the option.
        options.append({id(part): {} for part in _answering(known)})
    try:
        model = _converted(known, inputs, options, opsets)
    except Exception as error:  # converters fail with every kind of error, KeyError and RuntimeError included
        raise _no_conversion(estimator, error) from error
    yield _finished(model, answers, inputs)


def _finished(model: Any, answers: Shape, inputs: Signature) -> tuple[bytes, Signature]:
    del model.graph.output[len(answers.outputs) :]
    rename_outputs(model, dict(zip((o.name for o in model.graph.output), answers.outputs, strict=True)))
    _name_locale(model)
    kept = _without_unused(model, inputs)
    return finish(model, own=True), kept


def _alone(estimator: Any) -> Any:
    """A pipeline without the steps that do nothing; when one step is left, that."""
    steps: Any = getattr(estimator, "steps", ())
    left = [(name, step) for name, step in steps if step is not None and not isinstance(step, str)]
    if len(left) == 1:
        return _alone(left[0][1])
    return Pipeline(left) if len(left) < len(steps) else estimator


def _name_locale(model: Any) -> None:
    # Left out, it means en_US.UTF-8, which few servers have; every glibc that the engine runs on has this one.
    for node in model.graph.node:
        if node.op_type == "StringNormalizer":
            kept = [a for a in node.attribute if a.name != "locale"]
            del node.attribute[:]
            node.attribute.extend([*kept, helper.make_attribute("locale", "C.UTF-8")])


def _without_unused(model: Any, inputs: Signature) -> Signature:
    """Take the inputs that no node reads out of the graph: a caller need not send them."""
    read = {name for node in model.graph.node for name in node.input}
    left = [value for value in model.graph.input if value.name in read]
    if not left:
        return inputs
    del model.graph.input[:]
    model.graph.input.extend(left)
    return used(inputs, [value.name for value in left])


def _exactly(estimator: Any, inputs: Signature, variant: trees.Variant, opsets: dict[str, int]) -> Any | None:
    """A pipeline that ends with a tree, rounded as `variant` says; None when an operator cannot do it."""
    parts = trees.parts(estimator)
    assert parts is not None
    front, tree = parts
    tree = trees.floored(tree) if variant.floored else tree
    between = (Input(WHOLE, "FP32", int(tree.n_features_in_)),)
    zipmap = {id(tree): {"zipmap": False}} if hasattr(tree, "classes_") else None
    imputer.register()
    try:
        first = _converted(front, inputs, [None], opsets, wide=True)
        second = _converted(tree, between, [zipmap], opsets)
        model = trees.joined(first, second, inputs, opsets, stepwise=variant.stepwise)
        Served(bytes(model.SerializeToString()))
    except Exception:  # an operator without float64, in any of its forms
        return None
    return model


def _converted(
    estimator: Any, inputs: Signature, options: list[Any], opsets: dict[str, int], *, wide: bool = False
) -> Any:
    """The model by the first of `options` that its converter knows; `wide` takes numbers as float64."""
    types = _TYPES | ({"FP32": DoubleTensorType} if wide else {})
    initial = [(i.name, types[i.dtype]([None, i.width])) for i in inputs]
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            model = convert_sklearn(
                estimator, name="model", initial_types=initial, target_opset=opsets, options=options[0]
            )
    except NameError as error:
        if len(options) == 1 or "zipmap" not in str(error):
            raise
        return _converted(estimator, inputs, options[1:], opsets, wide=wide)
    # The converter turns a name such as "monthly fee" into one that would do in a program.
    rename_inputs(model, {v.name: i.name for v, i in zip(model.graph.input, inputs, strict=True)})
    return model


def _answering(estimator: Any) -> list[Any]:
    """Itself, and what inside it gives the answer: the last step of a pipeline, the best estimator of a search."""
    inner = getattr(estimator, "best_estimator_", None) or getattr(estimator, "steps", [(None, None)])[-1][1]
    return [estimator, *(_answering(inner) if inner is not None else [])]


def _no_conversion(estimator: Any, error: Exception) -> Refused:
    steps = [type(s).__name__ for _, s in getattr(estimator, "steps", [])] or [type(estimator).__name__]
    said = " ".join(str(error)[: 10 * _SAID].split())[:_SAID]
    return Refused(
        f"{' + '.join(steps)} cannot be converted to ONNX: {said}",
        "What to do: replace the part that the message names by one that scikit-learn's ONNX converter knows (see "
        "https://onnx.ai/sklearn-onnx/supported.html), or do that step before the pipeline.",
        code="no-conversion",
    )


def case(estimator: Any, tensors: Mapping[str, Array], table: Any) -> Case:
    """What `estimator` itself answers to the rows of `tensors`: int64, text or float32 out.

    `table` is the same rows in the form it was fitted on.
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
    return Case(tensors, expected)


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
