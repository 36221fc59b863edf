import hashlib
import os
import subprocess
import sys

import numpy as np
import onnx
import pandas
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import IsolationForest, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import FunctionTransformer, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from taxiway.core.errors import Refused
from taxiway.proof import export, ort, parity, tensors

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3)).astype(np.float32).astype(np.float64)
Y = np.digitize(X[:, 0] + X[:, 1], [-0.5, 0.5])  # 0, 1, 2
NAMES = np.array(["low", "méd", "high"])
TWO = np.stack([X[:, 0] - X[:, 1], 2 * X[:, 2]], axis=1)


class Halves(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return np.asarray(X) / 2

    def __sklearn_is_fitted__(self):
        return True


def exported(estimator, width=3):
    return export.export(estimator, (tensors.Input("X", "FP32", width),))[0]


def asked(estimator, rows):
    return export.case(estimator, {"X": rows.astype(np.float32)}, rows)


def proved(estimator):
    """The case of a fitted estimator and what its export answers, after both were found alike."""
    model = exported(estimator)
    case = asked(estimator, X)
    served = ort.Served(model)
    got = served.run(case.feeds)
    limits = parity.tolerance([case])
    found = parity.compare([case], [got], limits)
    assert found.offences == ()
    assert parity.same_in_batches(case, served.run, limits)
    assert [o.name for o in onnx.load_model_from_string(model).graph.output] == list(case.expected) == list(got)
    assert {n: v.dtype for n, v in got.items()} == {n: v.dtype for n, v in case.expected.items()}
    return case, got


@pytest.mark.parametrize(
    ("labels", "dtype", "classes"),
    [
        (Y == 2, "int64", ("False", "True")),
        (Y, "int64", ("0", "1", "2")),
        (Y * 10 - 7, "int64", ("-7", "3", "13")),
        (Y.astype(float), "int64", ("0.0", "1.0", "2.0")),
        (NAMES[Y], "object", ("high", "low", "méd")),
        (NAMES[Y].astype(object), "object", ("high", "low", "méd")),
    ],
    ids=["bool", "three", "other numbers", "float", "text", "text objects"],
)
@pytest.mark.parametrize("kind", [LogisticRegression, DecisionTreeClassifier, lambda: RandomForestClassifier(4)])
def test_a_classifier_answers_its_labels_and_a_probability_for_each_class(labels, dtype, classes, kind):
    model = kind().fit(X, labels)
    case, got = proved(model)
    assert case.expected["label"].dtype == got["label"].dtype == dtype
    assert set(got["label"].ravel()) == set(labels.tolist())
    assert got["label"].shape == (90, 1)
    assert got["probabilities"].shape == (90, len(classes))
    assert np.allclose(got["probabilities"], model.predict_proba(X), atol=1e-6)
    assert export.shape(model) == export.Shape(("label", "probabilities"), classes)


@pytest.mark.parametrize(
    "model",
    [
        LinearSVC(),
        make_pipeline(StandardScaler(), LinearSVC()),
        GridSearchCV(LinearSVC(), {"C": [0.1, 1]}),
        GridSearchCV(make_pipeline(StandardScaler(), LinearSVC()), {"linearsvc__C": [0.1, 1]}),
        make_pipeline(StandardScaler(), make_pipeline(MinMaxScaler(), LinearSVC())),
        SVC(),
        make_pipeline(StandardScaler(), SVC()),
    ],
    ids=["alone", "pipeline", "search", "search over pipeline", "pipeline in pipeline", "svc", "svc pipeline"],
)
@pytest.mark.parametrize("labels", [Y, Y % 2, NAMES[Y]], ids=["three", "two", "text"])
def test_a_classifier_without_probabilities_answers_labels_only(model, labels):
    model.fit(X, labels)
    _, got = proved(model)
    assert list(got) == ["label"]
    assert got["label"].ravel().tolist() == model.predict(X).tolist()
    assert export.shape(model).outputs == ("label",)


def test_a_regressor_answers_one_column_for_each_target():
    case, got = proved(LinearRegression().fit(X, TWO[:, 0]))
    assert list(got) == ["prediction"]
    assert got["prediction"].shape == (90, 1)
    for model in (Ridge(), RandomForestRegressor(4)):
        case, got = proved(model.fit(X, TWO))
        assert got["prediction"].shape == (90, 2)
        assert np.allclose(case.expected["prediction"], model.predict(X), atol=1e-6)


def test_a_pipeline_is_exported_with_its_scaler():
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X * 100 + 7, Y)
    answers = ort.Served(exported(model, 3)).run({"X": (X * 100 + 7).astype(np.float32)})
    assert np.allclose(answers["probabilities"], model.predict_proba(X * 100 + 7), atol=1e-5)
    assert not np.allclose(answers["probabilities"], model.predict_proba(X), atol=0.1)


def test_a_search_is_exported_as_its_best_estimator():
    search = GridSearchCV(make_pipeline(StandardScaler(), LogisticRegression()), {"logisticregression__C": [1e-4, 10]})
    search.fit(X, Y)
    _, of_search = proved(search)
    _, of_best = proved(search.best_estimator_)
    assert np.array_equal(of_search["probabilities"], of_best["probabilities"])


@pytest.mark.parametrize("model", [KMeans(2, n_init=1), IsolationForest(n_estimators=3)])
def test_what_is_neither_classifier_nor_regressor_is_refused(model):
    with pytest.raises(
        Refused, match=rf"{type(model).__name__} is neither a classifier nor a regressor.*--model"
    ) as no:
        exported(model.fit(X), 3)
    assert no.value.code == "not-exportable"


def test_a_classifier_of_several_targets_is_refused_however_it_looks():
    targets = np.stack([Y > 0, Y > 1], axis=1).astype(int)
    with pytest.raises(Refused, match="MultiOutputClassifier predicts several targets at once") as no:
        exported(MultiOutputClassifier(LogisticRegression()).fit(X, targets), 3)
    assert no.value.code == "not-exportable"
    looks_like_one = OneVsRestClassifier(LogisticRegression()).fit(X, targets)
    with pytest.raises(Refused, match="OneVsRestClassifier predicts several targets at once"):
        asked(looks_like_one, X)


@pytest.mark.parametrize(
    ("step", "named"),
    [
        (FunctionTransformer(np.exp), "FunctionTransformer"),
        (Halves(), "Halves"),
        (ColumnTransformer([("a", Halves(), [0, 1, 2])]), "Halves"),
    ],
    ids=["function", "own class", "own class in columns"],
)
def test_a_step_without_a_conversion_is_refused_by_name_with_what_to_do(step, named):
    with pytest.raises(Refused) as no:
        exported(make_pipeline(step, LogisticRegression()).fit(X, Y), 3)
    assert no.value.code == "no-conversion"
    what, way_out = no.value.reasons
    assert type(step).__name__ + " + LogisticRegression cannot be converted to ONNX" in what
    assert named in what.partition(": ")[2]
    assert way_out.startswith("What to do: ")
    assert len(what) < 700


def test_a_converter_that_talks_for_pages_is_cut_short(monkeypatch):
    def convert(*_, **__):
        print("noise")
        raise KeyError("word " * 100_000)

    monkeypatch.setattr(export, "convert_sklearn", convert)
    with pytest.raises(Refused) as no:
        exported(LogisticRegression().fit(X, Y), 3)
    assert len(str(no.value)) < 1000


def test_converting_prints_nothing(capfd):
    exported(RandomForestClassifier(3).fit(X, Y), 3)
    assert capfd.readouterr() == ("", "")


def test_the_input_takes_float32_rows_of_the_features_and_any_number_of_them():
    model = onnx.load_model_from_string(exported(LogisticRegression().fit(X, Y), 3))
    (given,) = model.graph.input
    assert given.name == "X"
    assert given.type.tensor_type.elem_type == onnx.TensorProto.FLOAT
    rows, features = given.type.tensor_type.shape.dim
    assert not rows.HasField("dim_value")
    assert features.dim_value == 3
    assert {o.domain: o.version for o in model.opset_import}[""] <= 17


def test_the_same_estimator_gives_the_same_bytes():
    model = make_pipeline(StandardScaler(), RandomForestClassifier(5, random_state=0)).fit(X, Y)
    assert exported(model, 3) == exported(model, 3)


def test_the_same_estimator_gives_the_same_bytes_in_every_process():
    program = """
import hashlib, numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from taxiway.proof import export, tensors
X = np.random.default_rng(0).normal(size=(60, 3))
model = make_pipeline(StandardScaler(), RandomForestClassifier(5, random_state=0)).fit(X, (X[:, 0] > 0) * 1)
print(hashlib.sha256(export.export(model, (tensors.Input("X", "FP32", 3),))[0]).hexdigest())
"""
    running = [
        subprocess.Popen(
            [sys.executable, "-c", program], env=os.environ | {"PYTHONHASHSEED": seed}, stdout=subprocess.PIPE
        )
        for seed in ("1", "2")
    ]
    first, second = (p.communicate()[0].decode().strip() for p in running)
    assert first == second
    assert len(first) == len(hashlib.sha256().hexdigest())


def test_a_case_asks_the_estimator_in_the_form_it_was_fitted_on():
    table = pandas.DataFrame(X, columns=["a", "b", "c"])
    model = LogisticRegression().fit(table, Y)
    case = export.case(model, {"X": X.astype(np.float32)}, table)
    assert case.feeds["X"].dtype == np.float32
    assert case.expected["label"].ravel().tolist() == model.predict(table).tolist()
