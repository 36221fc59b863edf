"""What can be exported, as data: one row for each kind of model, with what happens to it.

`exact` rows pass the parity proof on the notebook's rows and on made ones. `step` rows pass it with a Python step in
front of the ONNX model. `refused` rows have no right conversion, or
one that is known to be silently wrong: they never become a revision, and the refusal names the way out. Every row has
a test of its own name, and docs/support.md is written from this table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Verdict = Literal["exact", "step", "refused"]


@dataclass(frozen=True, slots=True)
class Row:
    """`key` is unique; `code` is that of the refusal (of a step: by ONNX alone); `note` says what to know, or the way
    out.
    """

    key: str
    library: str
    what: str
    verdict: Verdict
    note: str = ""
    code: str = ""


def _exact(key: str, library: str, what: str, note: str = "") -> Row:
    return Row(key, library, what, "exact", note)


def _step(key: str, library: str, what: str, code: str, note: str) -> Row:
    return Row(key, library, what, "step", note, code)


def _refused(key: str, library: str, what: str, code: str, note: str) -> Row:
    return Row(key, library, what, "refused", note, code)


_SK: Final = "scikit-learn"
_XGB: Final = "XGBoost"
_LGB: Final = "LightGBM"
_TORCH: Final = "PyTorch"
_ONNX: Final = "ONNX"

MATRIX: Final[tuple[Row, ...]] = (
    _exact("linear", _SK, "linear and logistic models, ridge, lasso, SGD"),
    _exact("svm", _SK, "support vector machines, with probabilities or without"),
    _exact("naive-bayes", _SK, "naive Bayes"),
    _exact("neighbours", _SK, "nearest neighbours"),
    _exact("mlp", _SK, "multi-layer perceptrons", "regressors of one target"),
    _exact("forest", _SK, "decision trees, random forests, extra trees"),
    _exact("boosting", _SK, "gradient boosting, AdaBoost"),
    _exact("hist-boosting", _SK, "histogram gradient boosting", "missing values included"),
    _exact(
        "forest-after-scaler", _SK, "forests and boosting behind scalers and imputers", "no row takes another branch"
    ),
    _exact("float32", _SK, "all of these on data that is float32 already", "rounded after each step, as there"),
    _exact("steps-that-do-nothing", _SK, "pipelines with 'passthrough' steps"),
    _exact("stacking", _SK, "stacking"),
    _exact("search", _SK, "grid and random searches", "the best estimator"),
    _exact("mixed-table", _SK, "ColumnTransformer over numbers and text", "one tensor for each column, called like it"),
    _exact("unknown-ignored", _SK, "OneHotEncoder(handle_unknown='ignore')"),
    _exact("unknown-error", _SK, "OneHotEncoder and OrdinalEncoder that know their categories", "others get a 400"),
    _exact("number-categories", _SK, "categories that are whole numbers", "int64, also when the table has floats"),
    _exact("sigmoid", _SK, "CalibratedClassifierCV(method='sigmoid') inside or around an estimator"),
    _exact("text-ascii", _SK, "TfidfVectorizer and CountVectorizer with an ASCII token pattern"),
    _step(
        "text-accents",
        _SK,
        "TfidfVectorizer and CountVectorizer with any token pattern",
        "parity",
        r"for ONNX alone: token_pattern=r'[a-zA-Z0-9_]+'",
    ),
    _refused(
        "isotonic",
        _SK,
        "isotonic calibration",
        "parity",
        "steps are found by other roundings: method='sigmoid'",
    ),
    _refused("forest-nan", _SK, "trees and forests fitted on missing values", "parity", "put SimpleImputer in front"),
    _refused(
        "hist-categories",
        _SK,
        "HistGradientBoosting with categorical_features",
        "no-conversion",
        "encode them in the pipeline (OneHotEncoder in a ColumnTransformer)",
    ),
    _step(
        "function",
        _SK,
        "FunctionTransformer, transformers of your own",
        "no-conversion",
        "also with functions of the notebook, and of files next to it",
    ),
    _step("bins", _SK, "KBinsDiscretizer(encode='onehot')", "no-conversion", "ONNX alone: encode='onehot-dense'"),
    _refused(
        "several-targets", _SK, "classifiers of several targets", "not-exportable", "fit one classifier for each target"
    ),
    _refused(
        "cluster", _SK, "clustering, outlier detection", "not-exportable", "only what predicts classes or numbers"
    ),
    _refused("missing-text", _SK, "text columns with missing values", "not-servable", "df[c].fillna('missing')"),
    _refused("dates", _SK, "columns of dates", "not-servable", "turn them into numbers before the pipeline"),
    _exact("xgb-classifier", _XGB, "XGBClassifier, two or more classes", "missing values included"),
    _exact("xgb-regressor", _XGB, "XGBRegressor: squared error, Poisson, gamma"),
    _exact("xgb-forest", _XGB, "XGBRFClassifier"),
    _exact("xgb-named", _XGB, "fitted on a data frame with named columns"),
    _exact("xgb-after-scaler", _XGB, "in a pipeline behind a scaler"),
    _refused("xgb-logistic", _XGB, "XGBRegressor(objective='binary:logistic')", "no-conversion", "use XGBClassifier"),
    _refused("xgb-linear", _XGB, "booster='gblinear'", "no-conversion", "LogisticRegression or Ridge"),
    _refused("xgb-dart", _XGB, "booster='dart'", "no-conversion", "the default booster"),
    _refused("xgb-categories", _XGB, "enable_categorical=True", "no-conversion", "encode them in the pipeline"),
    _exact("lgbm-classifier", _LGB, "LGBMClassifier, two or more classes", "missing values included"),
    _exact("lgbm-regressor", _LGB, "LGBMRegressor: squared error, Poisson"),
    _exact("lgbm-named", _LGB, "fitted on a data frame with named columns"),
    _refused("lgbm-forest", _LGB, "boosting_type='rf'", "no-conversion", "RandomForestClassifier"),
    _refused("lgbm-categories", _LGB, "pandas category columns", "no-conversion", "encode them in the pipeline"),
    _exact("torch-module", _TORCH, "modules, exported in evaluation mode", "free batch axis, weights inside"),
    _exact("torch-lists", _TORCH, "modules over embeddings and lists of any length"),
    _exact("torch-sequences", _TORCH, "LSTM, attention, over sequences of any length"),
    _exact("torchscript", _TORCH, "TorchScript, scripted or loaded from a file", "branches on values are kept"),
    _refused(
        "torch-branch", _TORCH, "branches on the values of a tensor", "data-dependent", "torch.where, or script it"
    ),
    _refused("torch-loop", _TORCH, "a Python loop over the rows", "fixed-batch", "compute on all rows at once"),
    _refused("torch-random", _TORCH, "random numbers in forward", "rebuild-differs", "draw them outside"),
    _refused("torch-uncalled", _TORCH, "a module that the notebook never calls", "no-samples", "call it on some rows"),
    _exact("onnx-ready", _ONNX, "models that the notebook made or opened, and ran"),
    _refused("onnx-new", _ONNX, "opset above 21, IR above 10", "onnx-too-new", "make it with opset 17, IR 8"),
    _refused("onnx-batch", _ONNX, "a fixed batch axis", "fixed-batch", "name the first axis: [None, 30]"),
    _refused("onnx-maps", _ONNX, "outputs that are maps (ZipMap)", "not-servable", "zipmap: False"),
)
