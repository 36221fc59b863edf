import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lightgbm import LGBMClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from xgboost import XGBClassifier

from taxiway.proof import export, trees
from taxiway.proof.ort import Served
from taxiway.proof.tensors import Input

RNG = np.random.default_rng(1)
X = np.column_stack([RNG.integers(0, 40, 800), np.round(RNG.normal(50, 9, 800), 1), RNG.normal(size=800)])
X = X.astype(np.float32).astype(np.float64)
Y = (X[:, 0] * 1.3 + X[:, 1] + RNG.normal(0, 9, 800) > 75).astype(int)


def ties(rows):
    """Rows that lie exactly where trees have their thresholds."""
    found = []
    for j in range(rows.shape[1]):
        values = np.unique(rows[:, j])
        middle = ((values[1:] + values[:-1]) / 2).astype(np.float32)
        part = rows[RNG.integers(0, len(rows), len(middle))].copy()
        part[:, j] = middle
        found.append(part)
    return np.vstack(found)


def differing(model, served, rows):
    got = served.run({"X": rows.astype(np.float32)})["probabilities"]
    return int((np.abs(got - model.predict_proba(rows)).max(axis=1) > 1e-4).sum())


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e38, max_value=1e38), st.floats(width=32))
def test_a_rounded_threshold_divides_float32_numbers_as_it_did_before(threshold, value):
    rounded = trees.floor(np.array([threshold]))[0]
    assert rounded <= threshold
    assert (value <= rounded) == (value <= threshold)


@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler()], ids=["standard", "minmax"])
@pytest.mark.parametrize(
    "model", [RandomForestClassifier(21, random_state=0), XGBClassifier(n_estimators=20)], ids=["forest", "xgboost"]
)
def test_no_row_takes_another_branch_behind_a_scaler(scaler, model):
    pipeline = make_pipeline(scaler, model).fit(X, Y)
    inputs = (Input("X", "FP32", 3),)
    *_, plain = export.conversions(pipeline, inputs)
    first = Served(export.export(pipeline, inputs)[0])
    rows = np.vstack([X, ties(X)])
    assert differing(pipeline, first, rows) == 0
    # What the plain conversion does to the same rows is why all this is done.
    assert differing(pipeline, Served(plain[0]), rows) > 0


@pytest.mark.parametrize(
    "model",
    [HistGradientBoostingClassifier(max_iter=20), LGBMClassifier(n_estimators=20, verbose=-1)],
    ids=["histogram", "lightgbm"],
)
def test_trees_that_compare_in_float64_divide_every_float32_alike(model):
    model.fit(X, Y)
    served = Served(export.export(model, (Input("X", "FP32", 3),))[0])
    assert differing(model, served, np.vstack([X, ties(X)])) == 0


@pytest.mark.parametrize("model", [RandomForestClassifier(21, random_state=0), XGBClassifier(n_estimators=20)])
def test_data_that_is_float32_is_scaled_step_by_step(model):
    narrow = X.astype(np.float32)
    pipeline = make_pipeline(StandardScaler(), model).fit(narrow, Y)
    found = [differing(pipeline, Served(m), narrow) for m, _ in export.conversions(pipeline, (Input("X", "FP32", 3),))]
    assert min(found) == 0


def test_rounding_down_leaves_the_model_itself_alone():
    model = LGBMClassifier(n_estimators=5, verbose=-1).fit(X, Y)
    before = model.booster_.model_to_string()
    assert trees.floored(model) is not model
    assert model.booster_.model_to_string() == before
