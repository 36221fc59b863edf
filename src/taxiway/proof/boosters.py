"""XGBoost and LightGBM inside scikit-learn's converter, through onnxmltools (extras `xgboost` and `lightgbm`).

Their converters do not know every model of their libraries, and some they convert wrongly without a word. What is
known to be wrong is refused here by name (`refuse`); parity catches what is not known.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, Final

from taxiway.core.errors import Refused

_LINEAR: Final = (
    "gblinear is a linear model, which has no conversion; use LogisticRegression or Ridge from scikit-learn"
)
_DART: Final = "dart drops trees by chance and has no conversion; use the default booster (gbtree)"


def parts(estimator: Any) -> Iterator[Any]:
    """The estimators of XGBoost and LightGBM that `estimator` is or ends with, or stacks, or votes with."""
    if _library(estimator) in ("xgboost", "lightgbm"):
        yield estimator
        return
    inner = [getattr(estimator, "best_estimator_", None), *(s for _, s in getattr(estimator, "steps", ()))]
    for part in (*inner, *_flat(getattr(estimator, "estimators_", ())), getattr(estimator, "final_estimator_", None)):
        if part is not None and not isinstance(part, str):
            yield from parts(part)


def prepared(estimator: Any) -> Any:
    """`estimator`, or a copy of it that the converter understands; registers the converters that it needs.

    Raises Refused for models whose conversion is missing or known to be wrong, and when onnxmltools is not there.
    """
    found = list(parts(estimator))
    if not found:
        return estimator
    for part in found:
        refuse(part)
    _register({_library(part) for part in found})
    if not any(_library(part) == "xgboost" and _names(part) for part in found):
        return estimator
    # The converter reads columns by number; a model fitted on a data frame names them.
    twin = copy.deepcopy(estimator)
    for part in parts(twin):
        if _library(part) == "xgboost":
            part.get_booster().feature_names = None
            part.get_booster().feature_types = None
    return twin


def refuse(part: Any) -> None:
    """Raises Refused when `part` has no right conversion, naming the way out."""
    reason = _xgboost(part) if _library(part) == "xgboost" else _lightgbm(part)
    if reason:
        raise Refused(f"{type(part).__name__} cannot be exported as it was fitted: {reason}", code="no-conversion")


def _xgboost(model: Any) -> str | None:
    booster = str(getattr(model, "booster", None) or "gbtree")
    objective = str(getattr(model, "objective", None) or "")
    if booster == "gblinear":
        return _LINEAR
    if booster == "dart":
        return _DART
    if not hasattr(model, "classes_") and objective.startswith("binary:"):
        return f"a regressor with objective {objective!r} would answer log-odds once converted; use XGBClassifier"
    types = getattr(model.get_booster(), "feature_types", None) or ()
    if "c" in types:
        return (
            "it was fitted with enable_categorical on category columns, which has no conversion; encode them in the "
            "pipeline (OrdinalEncoder or OneHotEncoder in a ColumnTransformer)"
        )
    return None


def _lightgbm(model: Any) -> str | None:
    if model.boosting_type == "rf":
        return 'boosting_type="rf" converts to wrong answers; use the default, or RandomForestClassifier'
    if getattr(model.booster_, "pandas_categorical", None) or _categorical_splits(model):
        return (
            "it was fitted on category columns, whose codes are lost in the conversion; encode them in the pipeline "
            "(OrdinalEncoder or OneHotEncoder in a ColumnTransformer)"
        )
    return None


def _categorical_splits(model: Any) -> bool:
    lines = model.booster_.model_to_string().split("\n")
    return any(line.startswith("num_cat=") and line != "num_cat=0" for line in lines)


def _names(part: Any) -> bool:
    return bool(part.get_booster().feature_names)


def _library(thing: Any) -> str:
    return type(thing).__module__.partition(".")[0]


def _flat(values: Any) -> Iterator[Any]:
    for value in values:
        if isinstance(value, tuple | list):
            yield from _flat(value)
        else:
            yield value


def _register(libraries: set[str]) -> None:
    for name in sorted(libraries):
        try:
            _REGISTER[name]()
        except ImportError as error:
            raise Refused(
                f"exporting a model of {name} needs onnxmltools, which cannot be imported ({error})",
                f"What to do: pip install 'taxiway[{name}]' (or onnxmltools) where the notebook runs.",
                code="missing-extra",
            ) from error


def _register_xgboost() -> None:
    import xgboost
    from onnxmltools.convert.xgboost.operator_converters.XGBoost import convert_xgboost

    for kind in (xgboost.XGBClassifier, xgboost.XGBRFClassifier):
        _add(kind, convert_xgboost)
    for kind in (xgboost.XGBRegressor, xgboost.XGBRFRegressor):
        _add(kind, convert_xgboost, classifier=False)


def _register_lightgbm() -> None:
    import lightgbm
    from onnxmltools.convert.lightgbm.operator_converters.LightGbm import convert_lightgbm

    _add(lightgbm.LGBMClassifier, convert_lightgbm)
    _add(lightgbm.LGBMRegressor, convert_lightgbm, classifier=False)


_REGISTER: Final[dict[str, Callable[[], None]]] = {"xgboost": _register_xgboost, "lightgbm": _register_lightgbm}


def _add(kind: Any, converter: Any, *, classifier: bool = True) -> None:
    from skl2onnx import update_registered_converter
    from skl2onnx.common import shape_calculator as shapes

    options = {"zipmap": [True, False, "columns"], "nocl": [True, False], "raw_scores": [True, False]}
    update_registered_converter(
        kind,
        f"Taxiway{kind.__name__}",
        shapes.calculate_linear_classifier_output_shapes
        if classifier
        else shapes.calculate_linear_regressor_output_shapes,
        converter,
        options=options if classifier else {"split": None},
        overwrite=True,
    )
