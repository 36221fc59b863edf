"""Cutting a fitted pipeline in two never changes its answers."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from taxiway.proof.split import splits

X = np.random.default_rng(0).normal(size=(60, 3))
Y = (X[:, 0] > 0).astype(int)


@pytest.mark.parametrize(
    ("estimator", "fronts"),
    [
        (LogisticRegression(), []),
        (make_pipeline(LogisticRegression()), []),
        (make_pipeline(StandardScaler(), LogisticRegression()), [("StandardScaler",)]),
        (
            Pipeline(
                [
                    ("nothing", "passthrough"),
                    ("both", make_pipeline(StandardScaler(), MinMaxScaler())),
                    ("last", make_pipeline(None, LogisticRegression())),
                ]
            ),
            [("StandardScaler",), ("StandardScaler", "MinMaxScaler")],
        ),
        (
            GridSearchCV(make_pipeline(StandardScaler(), LogisticRegression()), {"logisticregression__C": [1, 2]}),
            [("StandardScaler",)],
        ),
    ],
    ids=["alone", "one step", "two steps", "nested", "search"],
)
def test_every_cut_answers_as_the_whole(estimator, fronts):
    estimator.fit(X, Y)
    found = list(splits(estimator))
    assert [s.names for s in found] == fronts
    for split in found:
        assert np.array_equal(split.rest.predict_proba(split.front.transform(X)), estimator.predict_proba(X))
