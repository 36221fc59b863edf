"""Python steps of builds: what goes along, what cannot, and when one is tried."""

import sys
import threading
import warnings
from importlib import metadata

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

from taxiway.app.build import step
from taxiway.app.build.ways import settled
from taxiway.core.errors import Refused
from taxiway.notebook import candidates
from taxiway.notebook.record import Call
from taxiway.notebook.session import Binding, Run
from taxiway.proof.tensors import Input

pytestmark = pytest.mark.processes

RNG = np.random.default_rng(3)
X = np.round(RNG.normal(50, 9, (120, 3)), 1)
Y = (X[:, 0] > 50).astype(int)
WHOLE = (Input("X", "FP32", 3),)


class Own(TransformerMixin, BaseEstimator):
    """Calls `does`, whatever that is."""

    def __init__(self, does=None):
        self.does = does

    def fit(self, X, y=None):
        self.fitted_ = True
        return self

    def transform(self, X):
        return self.does(X)


def settle(estimator, rows=X, target=Y, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.fit(rows, target)
    call = Call(1, estimator, "fit", rows, rows.copy(), estimator, None)
    (candidate,) = candidates.candidates(Run((Binding("model", 1, estimator),), (call,)))
    return settled(candidate, Run((), (call,)), **more)


def test_code_next_to_the_notebook_goes_along(tmp_path, monkeypatch):
    (tmp_path / "own_helpers_here.py").write_text("def third(rows):\n    return rows / 3\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    import own_helpers_here

    subject, found = settle(make_pipeline(FunctionTransformer(own_helpers_here.third), LogisticRegression()))
    assert subject.step is not None
    assert found["parity"]["label_flips"] == 0
    assert found["build"]["step"] is True
    assert "cloudpickle" in subject.step.requirements


def test_a_named_table_reaches_the_step_as_the_notebook_had_it():
    table = pd.DataFrame({"age": X[:, 0], "city": RNG.choice(["Köln", "Ulm"], 120), "fee": X[:, 1].astype(np.float32)})

    def prepared(rows):
        assert list(rows.columns) == ["age", "city", "fee"]
        return rows.assign(age=np.cbrt(rows["age"]), fee=np.log1p(rows["fee"].abs()))

    encoded = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["city"]), remainder="passthrough")
    subject, found = settle(make_pipeline(Own(prepared), encoded, LogisticRegression()), table)
    assert subject.step is not None
    assert {g["name"] for g in subject.step.spec["gives"]} == {"age", "city", "fee"}
    assert {f["name"] for f in found["contract"]["inputs"]} == {"age", "city", "fee"}
    assert sum(kind["differing"] for kind in found["parity"]["made"].values()) == 0


@pytest.mark.parametrize(
    ("does", "said"),
    [
        (lambda lock: lambda rows: [rows, lock][0], "cannot be packed"),
        (lambda _: lambda rows: np.zeros((len(rows), step.WIDEST + 1)), "at most 100000 can be served"),
        (lambda _: lambda rows: np.zeros((len(rows), 3, 2)), "gives no table"),
        (lambda _: lambda rows: rows + len(rows), "answer"),
    ],
    ids=["a lock", "too wide", "no table", "rows that depend on each other"],
)
def test_a_step_that_cannot_serve_leaves_the_first_refusal_standing(does, said):
    def fitting(rows):
        # Pipelines transform while they are fitted, which must not fail.
        return inner(rows)

    lock = threading.Lock()
    inner = does(lock)
    flat = LogisticRegression()

    class Flat(LogisticRegression):
        def fit(self, rows, target):
            flat.fit(np.asarray(rows).reshape(len(rows), -1), target)
            return super().fit(np.asarray(rows).reshape(len(rows), -1), target)

        def predict(self, rows):
            return super().predict(np.asarray(rows).reshape(len(rows), -1))

        def predict_proba(self, rows):
            return super().predict_proba(np.asarray(rows).reshape(len(rows), -1))

    with pytest.raises(Refused) as no:
        settle(make_pipeline(Own(fitting), Flat() if "table" in said else LogisticRegression()))
    assert no.value.code == "no-conversion"
    assert "As a Python step in front:" in str(no.value)
    assert said in str(no.value)


def test_the_requirements_are_the_modules_owners_and_what_they_need_with_exact_versions():
    found = step.requirements(["sklearn", "own_helpers_here", "taxiway", "pip"])
    assert found["scikit-learn"] == metadata.version("scikit-learn")
    assert {"numpy", "scipy", "joblib", "threadpoolctl"} <= set(found)
    assert not {"pip", "taxiway", "pytest"} & set(found)


def test_a_package_that_no_index_has_is_refused(monkeypatch):
    real = metadata.PathDistribution.read_text

    def read_text(self, name):
        if name == "direct_url.json" and self.metadata["Name"] == "joblib":
            return '{"url": "file:///home/me/joblib", "dir_info": {}}'
        return real(self, name)

    monkeypatch.setattr(metadata.PathDistribution, "read_text", read_text)
    with pytest.raises(Refused, match=r"joblib .* not from a package index"):
        step.requirements(["sklearn"])


def test_a_step_whose_code_is_nowhere_is_refused(tmp_path, monkeypatch):
    elsewhere, here = tmp_path / "elsewhere", tmp_path / "here"
    elsewhere.mkdir()
    here.mkdir()
    (elsewhere / "lost_module_here.py").write_text("def same(rows):\n    return rows\n")
    monkeypatch.syspath_prepend(elsewhere)
    monkeypatch.chdir(here)
    import lost_module_here

    packed = step.pack(FunctionTransformer(lost_module_here.same), X, WHOLE, WHOLE, here)
    with pytest.raises(Refused, match="ModuleNotFoundError") as no, step.running(packed):
        pass
    assert "next to it" in str(no.value)
    sys.modules.pop("lost_module_here")
