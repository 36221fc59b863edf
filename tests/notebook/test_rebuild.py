import json

import numpy as np
import pytest

from tests.notebook.conftest import DATA

FIT = "m = LogisticRegression().fit(Z, y)\nm.predict(Z)"


def original():
    rng = np.random.default_rng(0)
    return rng.normal(3.0, 2.0, size=(60, 3))


def same_rows(rows, expected):
    return sorted(map(tuple, rows)) == sorted(map(tuple, expected.tolist()))


@pytest.mark.parametrize(
    ("cells", "steps"),
    [
        (["Z = X", FIT], []),
        (["Z = StandardScaler().fit_transform(X)", FIT], ["StandardScaler"]),
        (["s = StandardScaler().fit(X)\nZ = s.transform(X)", FIT], ["StandardScaler"]),
        (["m = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)\nm.predict(X)"], []),
        (
            [
                "from sklearn.impute import SimpleImputer\nA = SimpleImputer().fit_transform(X + 1.0)\n"
                "s = StandardScaler()\nZ = s.fit_transform(A)",
                FIT,
            ],
            ["StandardScaler"],
        ),
        (
            [
                "from sklearn.decomposition import PCA\np = PCA(2)\ns = StandardScaler()\n"
                "Z = p.fit_transform(s.fit_transform(X))",
                FIT,
            ],
            ["StandardScaler", "PCA"],
        ),
        (
            [
                "s = StandardScaler()\nZ = s.fit_transform(X)\norder = rng.permutation(60)\nZ, y = Z[order], y[order]",
                FIT,
            ],
            ["StandardScaler"],
        ),
        (
            ["import pandas as pd\nZ = pd.DataFrame(StandardScaler().fit_transform(X), columns=list('abc'))", FIT],
            ["StandardScaler"],
        ),
        (["s = StandardScaler()\nZ = s.fit_transform(X)", FIT, "Z *= 0.0\nX2 = X"], ["StandardScaler"]),
        (["s = StandardScaler()\ns.fit_transform(X * 2)\nZ = s.fit_transform(X)", FIT], ["StandardScaler"]),
        (["from scipy.sparse import csr_matrix\nZ = csr_matrix(X)", FIT], []),
    ],
)
def test_the_way_from_raw_rows_is_found(notebooks, cells, steps):
    said = notebooks.run(DATA, *cells)
    assert said["steps"][:-1] == steps
    expected = original() + (1.0 if "SimpleImputer" in cells[0] else 0.0)
    assert same_rows(said["rows"], expected)
    assert len(said["answers"]) == 60


def test_rows_of_a_split_scaled_apart_are_all_traced_and_answered_alike(notebooks):
    said = notebooks.run(
        DATA,
        "from sklearn.model_selection import train_test_split\n"
        "A, B, ya, yb = train_test_split(X, y, random_state=0)\ns = StandardScaler()\nSA = s.fit_transform(A)\n"
        "SB = s.transform(B)\nm = LogisticRegression().fit(SA, ya)\nkept = m.predict(SB).tolist()",
        "import json\njson.dump(kept, open('kept.json', 'w'))",
    )
    assert (len(said["train"]), len(said["rows"])) == (45, 60)
    assert said["answers"][45:] == json.loads((notebooks.folder / "kept.json").read_text())


def test_names_of_a_data_frame_are_kept_and_text_labels_too(notebooks):
    said = notebooks.run(
        DATA,
        "import pandas as pd\nframe = pd.DataFrame(X, columns=['a', 'b b', 'ü'])\n"
        "m = LogisticRegression().fit(frame, np.where(y, 'yes', 'no'))\nm.predict(frame)",
    )
    assert said["names"] == ["a", "b b", "ü"]
    assert set(said["answers"]) == {"yes", "no"}


def test_a_regressor_is_rebuilt_as_well(notebooks):
    said = notebooks.run(DATA, "s = StandardScaler()\nm = LinearRegression().fit(s.fit_transform(X), X[:, 0] * 2)")
    assert np.allclose(said["answers"], original()[:, 0] * 2)


@pytest.mark.parametrize(
    ("cell", "code", "said"),
    [
        (
            "Z = X.copy()\nZ[:, :2] = StandardScaler().fit_transform(X[:, :2])\nm = LogisticRegression().fit(Z, y)",
            "untraceable",
            "some columns, but not all, from StandardScaler",
        ),
        (
            "s = StandardScaler()\nm = LogisticRegression().fit(s.fit_transform(X), y)\nm.predict(X)",
            "untraceable",
            "calls .predict() on rows that did not come out of StandardScaler",
        ),
        (
            "import pandas as pd\nf = pd.DataFrame({'a': X[:, 0], 'city': ['x', None] * 30})\n"
            "from sklearn.compose import make_column_transformer\nfrom sklearn.preprocessing import OneHotEncoder\n"
            "m = make_pipeline(make_column_transformer((OneHotEncoder(), ['city'])), LogisticRegression()).fit(f, y)",
            "not-servable",
            "the columns city have missing values or something else among their texts",
        ),
        (
            "import pickle\nm = pickle.loads(pickle.dumps(LogisticRegression().fit(X, y)))",
            "untraceable",
            "never calls m.fit(...)",
        ),
        ("m = LogisticRegression()\nfor _ in [0]: getattr(m, 'fit')(X, y)", "untraceable", "never calls m.fit(...)"),
    ],
)
def test_what_cannot_be_traced_is_refused_with_a_way_out(notebooks, cell, code, said):
    refused = notebooks.refused(DATA, cell)
    assert refused[0] == code
    assert said in refused[1]
