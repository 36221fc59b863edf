"""Every row of the support matrix: what is called exact is, what is called refused never becomes a revision."""

import io
import warnings

import numpy as np
import onnxruntime
import pandas as pd
import pytest
import torch
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
)
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Lasso, LinearRegression, LogisticRegression, Ridge, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier
from torch import nn
from xgboost import XGBClassifier, XGBRegressor, XGBRFClassifier

from taxiway.app.build.options import Options
from taxiway.app.build.ways import settled
from taxiway.core.errors import Refused
from taxiway.notebook import candidates
from taxiway.notebook.record import Call
from taxiway.notebook.session import Binding, Run
from taxiway.notebook.torch_calls import Watch
from taxiway.proof.support import MATRIX

RNG = np.random.default_rng(0)
N = 300
# Whole numbers, halves and reals: ties are where conversions go wrong.
X = np.column_stack(
    [RNG.integers(0, 40, N), RNG.integers(0, 9, N) / 2, np.round(RNG.normal(50, 9, N), 1), RNG.normal(size=N)]
)
Y = ((X[:, 0] * 1.3 + X[:, 2] + RNG.normal(0, 9, N)) > 75).astype(int)
Y3 = np.digitize(X[:, 0] + X[:, 2], [60, 80])
AMOUNT = X[:, 0] * 0.5 + X[:, 3] ** 2
GAPS = X.copy()
GAPS[::13, 2] = np.nan
NAMED = pd.DataFrame(X, columns=["age", "grade", "weight at birth", "z"])
TABLE = pd.DataFrame(
    {
        "age": X[:, 0],
        "income": np.where(RNG.random(N) < 0.1, np.nan, np.round(X[:, 2] * 40)),
        "city": RNG.choice(["Köln", "Paris", "Ulm"], N),
        "zip": RNG.integers(1, 6, N),
        "member": RNG.random(N) > 0.5,
    }
)
TEXTS = np.array(["good film", "bad film", "what a good, good day", "awful", "naïve but good", "bad, bad day"] * 20)
GOOD = np.array(["good" in text for text in TEXTS]).astype(int)


def fitted(estimator, rows, target):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.fit(rows, target)
    copied = rows.copy() if hasattr(rows, "copy") else list(rows)
    return Run((Binding("model", 1, estimator),), (Call(1, estimator, "fit", rows, copied, estimator, None),))


def encoded(encoder, numbers=None, columns=("city", "zip", "member")):
    numbers = numbers or make_pipeline(SimpleImputer(), StandardScaler())
    return make_column_transformer((numbers, ["age", "income"]), (encoder, list(columns)))


class Halves(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        self.fitted_ = True
        return self

    def transform(self, X):
        return np.asarray(X) / 2


def asked(module, *calls):
    """A run in which `module` was called on each of `calls`."""
    found = []

    def note(owner, given, result, training):
        found.append(Call(1, owner, "forward", None, {"inputs": given, "training": training}, None, result))

    watch = Watch(note)
    hooks = [
        nn.modules.module.register_module_forward_pre_hook(watch._begin),
        nn.modules.module.register_module_forward_hook(watch._end, with_kwargs=True, always_call=True),
    ]
    try:
        with torch.no_grad():
            for args in calls:
                module(*args)
    finally:
        for hook in hooks:
            hook.remove()
    return Run((Binding("model", 1, module),), tuple(found))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.body = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 2))

    def forward(self, features):
        return torch.softmax(self.body(features), 1)


class Ranker(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.items = nn.Embedding(20, 4)

    def forward(self, user: torch.Tensor, items: torch.Tensor):
        return {"scores": (self.items(user)[:, None, :] * self.items(items)).sum(-1), "best": self.items(items).amax(1)}


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.lstm = nn.LSTM(4, 5, batch_first=True)

    def forward(self, sequence):
        return self.lstm(sequence)[0][:, -1]


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)

    def forward(self, sequence):
        return self.layer(sequence).mean(1)


class Branching(Net):
    def forward(self, features):
        if features.abs().max() > 1e6:
            return torch.zeros(features.shape[0], 2)
        return self.body(features)


class Looping(Net):
    def forward(self, features):
        return torch.stack([self.body[4](self.body[0](row)) for row in features])


class Dice(Net):
    def forward(self, features):
        return self.body(features + torch.randn_like(features))


ROWS = torch.from_numpy(X.astype(np.float32))


def ready_onnx(opset=17, ir=8, batch="N", output=None):
    import skl2onnx
    from skl2onnx.common.data_types import FloatTensorType

    model = skl2onnx.convert_sklearn(
        LogisticRegression(max_iter=1000).fit(X, Y),
        initial_types=[("X", FloatTensorType([None if batch == "N" else batch, 4]))],
        options=None if output == "maps" else {"zipmap": False},
        target_opset={"": 17, "ai.onnx.ml": 3},
    )
    model.ir_version = ir
    next(o for o in model.opset_import if o.domain == "").version = opset
    if batch == "N":
        session = onnxruntime.InferenceSession(model.SerializeToString()) if (opset, ir) == (17, 8) else None
        answers = session.run(None, {"X": X.astype(np.float32)}) if session and output != "maps" else []
        feeds = {"outputs": None, "feeds": {"X": X.astype(np.float32)}}
        calls = (Call(1, session, "run", feeds, feeds, answers, answers),) if session else ()
    else:
        calls = ()
    return Run((Binding("model", 1, model),), calls)


def scripted():
    target = io.BytesIO()
    torch.jit.save(torch.jit.script(Branching().eval()), target)
    target.seek(0)
    return asked(torch.jit.load(target), (ROWS[:50],), (-ROWS[:7],))


ASCII = r"[a-zA-Z0-9_]+"
EXAMPLES = {
    "linear": lambda: [
        *(fitted(m, X, Y3) for m in (LogisticRegression(max_iter=2000), SGDClassifier(random_state=0))),
        *(fitted(m, X, AMOUNT) for m in (LinearRegression(), Ridge(), Lasso())),
    ],
    "svm": lambda: [fitted(make_pipeline(StandardScaler(), m), X, Y) for m in (SVC(), LinearSVC())],
    "naive-bayes": lambda: [fitted(GaussianNB(), X, Y3)],
    "neighbours": lambda: [fitted(make_pipeline(StandardScaler(), KNeighborsClassifier()), X, Y)],
    "mlp": lambda: [fitted(make_pipeline(StandardScaler(), MLPClassifier((8,), max_iter=200, random_state=0)), X, Y)],
    "forest": lambda: [
        *(
            fitted(m, X, Y3)
            for m in (
                DecisionTreeClassifier(random_state=0),
                RandomForestClassifier(21, random_state=0),
                ExtraTreesClassifier(21, random_state=0),
            )
        ),
        fitted(RandomForestRegressor(21, random_state=0), X, AMOUNT),
    ],
    "boosting": lambda: [
        *(
            fitted(m, X, Y)
            for m in (GradientBoostingClassifier(n_estimators=20, random_state=0), AdaBoostClassifier(n_estimators=10))
        ),
        fitted(GradientBoostingRegressor(n_estimators=20), X, AMOUNT),
    ],
    "hist-boosting": lambda: [
        fitted(HistGradientBoostingClassifier(max_iter=20), X, Y),
        fitted(HistGradientBoostingClassifier(max_iter=20), GAPS, Y3),
        fitted(HistGradientBoostingRegressor(max_iter=20), X, AMOUNT),
    ],
    "forest-after-scaler": lambda: [
        *(
            fitted(make_pipeline(scaler, model), X, Y)
            for scaler in (StandardScaler(), MinMaxScaler(), RobustScaler())
            for model in (
                RandomForestClassifier(21, random_state=0),
                GradientBoostingClassifier(n_estimators=20, random_state=0),
            )
        ),
        fitted(make_pipeline(SimpleImputer(), StandardScaler(), RandomForestClassifier(21, random_state=0)), GAPS, Y),
    ],
    "steps-that-do-nothing": lambda: [
        fitted(Pipeline([("a", "passthrough"), ("b", StandardScaler()), ("c", model)]), X, Y)
        for model in (LogisticRegression(), RandomForestClassifier(21, random_state=0))
    ],
    "float32": lambda: [
        fitted(make_pipeline(StandardScaler(), model), rows, Y)
        for rows in (X.astype(np.float32), NAMED.astype(np.float32))
        for model in (
            LogisticRegression(),
            RandomForestClassifier(21, random_state=0),
            XGBClassifier(n_estimators=20),
            HistGradientBoostingClassifier(max_iter=20),
        )
    ],
    "stacking": lambda: [
        fitted(StackingClassifier([("a", LogisticRegression(max_iter=2000)), ("b", GaussianNB())]), X, Y)
    ],
    "search": lambda: [
        fitted(
            GridSearchCV(make_pipeline(StandardScaler(), LogisticRegression()), {"logisticregression__C": [1, 2]}), X, Y
        )
    ],
    "mixed-table": lambda: [
        fitted(make_pipeline(encoded(OneHotEncoder(handle_unknown="ignore")), model), TABLE, Y)
        for model in (LogisticRegression(), RandomForestClassifier(21, random_state=0), XGBClassifier(n_estimators=20))
    ],
    "unknown-ignored": lambda: [
        fitted(make_pipeline(encoded(OneHotEncoder(handle_unknown="ignore"), columns=["city"]), SVC()), TABLE, Y)
    ],
    "unknown-error": lambda: [
        fitted(make_pipeline(encoded(encoder), model), TABLE, Y)
        for encoder in (OneHotEncoder(), OrdinalEncoder())
        for model in (LogisticRegression(), RandomForestClassifier(21, random_state=0))
    ],
    "number-categories": lambda: [
        fitted(
            make_pipeline(encoded(OneHotEncoder(handle_unknown="ignore"), columns=["zip"]), LogisticRegression()),
            TABLE.assign(zip=TABLE.zip.astype(float)),
            Y,
        )
    ],
    "sigmoid": lambda: [
        fitted(CalibratedClassifierCV(LogisticRegression(max_iter=2000), method="sigmoid", cv=3), X, Y),
        fitted(make_pipeline(StandardScaler(), CalibratedClassifierCV(LinearSVC(), cv=3)), X, Y),
    ],
    "text-ascii": lambda: [
        fitted(make_pipeline(vectorizer(token_pattern=ASCII), LogisticRegression()), TEXTS, GOOD)
        for vectorizer in (TfidfVectorizer, CountVectorizer)
    ],
    "text-accents": lambda: [fitted(make_pipeline(TfidfVectorizer(), LogisticRegression()), TEXTS, GOOD)],
    "isotonic": lambda: [fitted(CalibratedClassifierCV(LogisticRegression(), method="isotonic", cv=3), X, Y)],
    "forest-nan": lambda: [
        fitted(m, GAPS, Y) for m in (DecisionTreeClassifier(random_state=0), RandomForestClassifier(21, random_state=0))
    ],
    "hist-categories": lambda: [
        fitted(HistGradientBoostingClassifier(categorical_features=[1], max_iter=5), np.round(X), Y)
    ],
    "function": lambda: [
        fitted(make_pipeline(step, LogisticRegression()), X, Y) for step in (FunctionTransformer(np.cbrt), Halves())
    ],
    "bins": lambda: [fitted(make_pipeline(KBinsDiscretizer(encode="onehot"), LogisticRegression()), X, Y)],
    "several-targets": lambda: [fitted(MultiOutputClassifier(GaussianNB()), X, np.column_stack([Y, Y3]))],
    "cluster": lambda: [fitted(KMeans(3, n_init=1), X, None)],
    "missing-text": lambda: [
        fitted(
            make_pipeline(encoded(OneHotEncoder(), columns=["city"]), LogisticRegression()),
            TABLE.assign(city=TABLE.city.where(X[:, 3] > -1, None)),
            Y,
        )
    ],
    "dates": lambda: [
        fitted(
            make_pipeline(encoded(OneHotEncoder(), columns=["day"]), LogisticRegression()),
            TABLE.assign(day=pd.Timestamp("2026-01-01")),
            Y,
        )
    ],
    "xgb-classifier": lambda: [
        fitted(XGBClassifier(n_estimators=20), rows, labels) for rows, labels in ((X, Y), (X, Y3), (GAPS, Y))
    ],
    "xgb-regressor": lambda: [
        fitted(XGBRegressor(n_estimators=20, objective=o), X, np.abs(AMOUNT) + 0.1)
        for o in ("reg:squarederror", "count:poisson", "reg:gamma")
    ],
    "xgb-forest": lambda: [fitted(XGBRFClassifier(n_estimators=20), X, Y)],
    "xgb-named": lambda: [fitted(XGBClassifier(n_estimators=20), NAMED, Y)],
    "xgb-after-scaler": lambda: [fitted(make_pipeline(StandardScaler(), XGBClassifier(n_estimators=20)), NAMED, Y)],
    "xgb-logistic": lambda: [fitted(XGBRegressor(n_estimators=5, objective="binary:logistic"), X, Y)],
    "xgb-linear": lambda: [fitted(XGBClassifier(n_estimators=5, booster="gblinear"), X, Y)],
    "xgb-dart": lambda: [fitted(XGBClassifier(n_estimators=5, booster="dart", rate_drop=0.3), X, Y)],
    "xgb-categories": lambda: [
        fitted(
            XGBClassifier(n_estimators=5, enable_categorical=True),
            NAMED.assign(kind=pd.Categorical.from_codes(Y3, [3, 5, 7])),
            Y,
        )
    ],
    "lgbm-classifier": lambda: [
        fitted(LGBMClassifier(n_estimators=20, verbose=-1), rows, labels)
        for rows, labels in ((X, Y), (X, Y3), (GAPS, Y))
    ],
    "lgbm-regressor": lambda: [
        fitted(LGBMRegressor(n_estimators=20, verbose=-1, objective=o), X, np.abs(AMOUNT))
        for o in ("regression", "poisson")
    ],
    "lgbm-named": lambda: [fitted(LGBMClassifier(n_estimators=20, verbose=-1), NAMED, Y)],
    "lgbm-forest": lambda: [
        fitted(
            LGBMClassifier(n_estimators=5, verbose=-1, boosting_type="rf", bagging_freq=1, bagging_fraction=0.7), X, Y
        )
    ],
    "lgbm-categories": lambda: [
        fitted(
            LGBMClassifier(n_estimators=5, verbose=-1), NAMED.assign(kind=pd.Categorical.from_codes(Y3, [3, 5, 7])), Y
        )
    ],
    "torch-module": lambda: [asked(Net().eval(), (ROWS[:50],), (ROWS[50:57],)), asked(Net(), (ROWS,))],
    "torch-lists": lambda: [
        asked(
            Ranker().eval(),
            (torch.arange(6), torch.arange(18).reshape(6, 3)),
            (torch.arange(2), torch.arange(10).reshape(2, 5)),
        )
    ],
    "torch-sequences": lambda: [
        asked(module.eval(), (torch.randn(6, 7, 4),), (torch.randn(3, 5, 4),)) for module in (Recurrent(), Attention())
    ],
    "torchscript": lambda: [scripted(), asked(torch.jit.trace(Net().eval(), ROWS[:2]), (ROWS[:9],))],
    "torch-branch": lambda: [asked(Branching().eval(), (ROWS[:9],))],
    "torch-loop": lambda: [asked(Looping().eval(), (ROWS[:9],))],
    "torch-random": lambda: [asked(Dice().eval(), (ROWS[:9],))],
    "torch-uncalled": lambda: [asked(Net().eval())],
    "onnx-ready": lambda: [ready_onnx()],
    "onnx-new": lambda: [ready_onnx(opset=22), ready_onnx(ir=11)],
    "onnx-batch": lambda: [ready_onnx(batch=5)],
    "onnx-maps": lambda: [ready_onnx(output="maps")],
}


def test_every_row_of_the_matrix_has_its_examples_and_the_reverse():
    keys = [row.key for row in MATRIX]
    assert len(keys) == len(set(keys))
    assert set(keys) == set(EXAMPLES)


def evidence(run):
    (candidate,) = candidates.candidates(run)
    return settled(candidate, run)[1]


@pytest.mark.parametrize("row", [r for r in MATRIX if r.verdict == "exact"], ids=lambda r: r.key)
def test_what_is_called_exact_is_proved_on_all_rows(row):
    for run in EXAMPLES[row.key]():
        parity = evidence(run)["parity"]
        assert parity["rows"] >= 4
        assert parity["label_flips"] == 0
        # Ties to the last bit of a float32 are counted, not refused; trees that compare in float32 have none either.
        made = {k: f["differing"] for k, f in parity["made"].items()}
        counted = {k: n for k, n in made.items() if k != "fine-tie"}
        assert counted == dict.fromkeys(counted, 0)
        assert made.get("fine-tie", 0) == 0 or row.key in ("neighbours", "float32", "hist-boosting", "lgbm-regressor")


@pytest.mark.processes
@pytest.mark.parametrize("row", [r for r in MATRIX if r.verdict == "step"], ids=lambda r: r.key)
def test_what_has_no_right_conversion_is_proved_behind_a_python_step(row):
    for run in EXAMPLES[row.key]():
        (candidate,) = candidates.candidates(run)
        subject, found = settled(candidate, run)
        parity = found["parity"]
        assert subject.step is not None
        assert parity["rows"] >= 4
        assert parity["label_flips"] == 0
        assert sum(f["differing"] for k, f in parity["made"].items() if k != "fine-tie") == 0
        assert "scikit-learn" in subject.step.requirements
        assert subject.remarks[0].kind == "python-step"
        with pytest.raises(Refused) as no:
            settled(candidate, run, Options(python_step=False))
        assert no.value.code == row.code


@pytest.mark.parametrize("row", [r for r in MATRIX if r.verdict == "refused"], ids=lambda r: r.key)
def test_what_is_called_refused_is_with_its_code_and_the_way_out(row):
    for run in EXAMPLES[row.key]():
        with pytest.raises(Refused) as no:
            evidence(run)
        assert no.value.code == row.code, no.value
        assert row.note
        assert len(str(no.value)) < 5000
