import errno
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.app.test_build import write

from taxiway.app.build import interpreter
from taxiway.app.purify import purify as purify_module
from taxiway.app.purify.purify import purify
from taxiway.core.errors import Refused

pytestmark = pytest.mark.processes

EXAMPLES = Path(__file__).parents[2] / "examples"
DATA = """
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
"""


def purified(notebook, out, model=None, name="risk"):
    return purify(notebook, out, name=name, model=model, python=interpreter.own(), progress=lambda line: None)


def refused(notebook, out, **more):
    with pytest.raises(Refused) as no:
        purified(notebook, out, **more)
    assert not out.exists()
    assert [p.name for p in out.parent.iterdir() if p.name.startswith(".out")] == []
    return no.value


def text(done, path):
    assert (done.folder / path).read_text() == done.files[path]
    return done.files[path]


@pytest.mark.parametrize(
    ("example", "model", "statements"),
    [("risk", "model", 13), ("churn", None, 6), ("price", None, 1), ("digits", None, 2)],
)
def test_each_example_becomes_a_package_whose_own_tests_pass(tmp_path, example, model, statements):
    notebook = EXAMPLES / example / "notebook.ipynb"
    before = notebook.read_bytes()
    done = purified(notebook, tmp_path / "out", model=model, name=example)
    assert notebook.read_bytes() == before
    assert len(done.left) == statements
    train = text(done, f"{example}/train.py")
    assert not any(word in train for word in ("print(", "plt.", "get_ipython", "/home/"))
    for tool in (["ruff", "check", "--isolated", "--select", "E4,E7,E9,F,I"], ["mypy", "--ignore-missing-imports"]):
        checked = subprocess.run(
            [sys.executable, "-m", *tool, example], cwd=done.folder, capture_output=True, text=True
        )
        assert checked.returncode == 0, checked.stdout
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    ran = subprocess.run(command, cwd=done.folder, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stdout
    assert " passed" in ran.stdout
    if "score" in done.metrics:
        was, now = done.metrics["score"]
        assert was == pytest.approx(now)


def test_what_was_read_comes_from_settings_and_can_be_set(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data/flats.csv").write_text("a,b,y\n" + "".join(f"{i},{i % 7},{int(i % 3 > 0)}\n" for i in range(60)))
    cells = [DATA, 'flats = pd.read_csv("data/flats.csv")\nflats["c"] = flats.a * 2', "flats.describe()"]
    fit = """
scaler = StandardScaler()
m = LogisticRegression()
m.fit(scaler.fit_transform(flats[["a", "b", "c"]]), flats.y)
"""
    done = purified(write(tmp_path / "n.ipynb", *cells, fit), tmp_path / "out")
    assert dict(done.recipe.files) == {"data/flats.csv": "FLATS_CSV"}
    train = text(done, "risk/train.py")
    assert 'pd.read_csv(str(path("FLATS_CSV")))' in train
    assert 'flats["c"] = flats.a * 2' in train
    assert "describe" not in train
    assert "Pipeline([" in train
    shutil.move(tmp_path / "data/flats.csv", tmp_path / "moved.csv")
    command = [sys.executable, "-m", "risk.train"]
    environment = {"RISK_FLATS_CSV": str(tmp_path / "moved.csv"), "RISK_MODEL_FILE": str(tmp_path / "m.joblib")}
    ran = subprocess.run(command, cwd=done.folder, env=environment, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "m.joblib").exists()


def test_global_seeds_become_a_generator_that_draws_the_same_numbers(tmp_path):
    cell = """
np.random.seed(3)
X = np.random.normal(size=(80, 3))
y = (X[:, 0] + np.random.normal(size=80) > 0).astype(int)
X_train, X_test, y_train, y_test = train_test_split(X, y)
model = LogisticRegression().fit(X_train, y_train)
model.score(X_test, y_test)
"""
    done = purified(write(tmp_path / "n.ipynb", DATA, cell), tmp_path / "out")
    assert done.recipe.randomness == "local"
    train = text(done, "risk/train.py")
    assert "rng = np.random.RandomState(3)" in train
    assert "rng.normal(size=(80, 3))" in train
    assert "train_test_split(X, y, random_state=rng)" in train
    assert "np.random.seed" not in train
    assert done.metrics["score"][0] == pytest.approx(done.metrics["score"][1])


def test_seeds_that_a_library_needs_globally_are_put_back(tmp_path):
    cell = """
import random
random.seed(5)
X = np.array([[random.random() for _ in range(3)] for _ in range(50)])
model = LogisticRegression().fit(X, (X[:, 0] > 0.5) * 1)
"""
    done = purified(write(tmp_path / "n.ipynb", DATA, cell), tmp_path / "out")
    assert done.recipe.randomness == "confined"
    check = """
import random
from risk.train import train
random.seed(1); first = random.random()
random.seed(1)
train()
assert random.random() == first
"""
    subprocess.run([sys.executable, "-c", check], cwd=done.folder, check=True, timeout=60)


def test_functions_and_classes_move_to_a_module_of_their_own(tmp_path):
    cells = [
        DATA + "\nimport math\n",
        '''
# how far from the centre
def distance(table):
    """Text
    over lines."""
    print("measuring", len(table))
    return np.sqrt((table ** 2).sum(axis=1)) / math.pi


def unused():
    return 1
''',
        "X = np.arange(120.0).reshape(40, 3)\nX = np.column_stack([X, distance(X)])",
        "model = LogisticRegression(max_iter=500).fit(X, X[:, 0] > 60)",
    ]
    done = purified(write(tmp_path / "n.ipynb", *cells), tmp_path / "out")
    features = text(done, "risk/features.py")
    assert "def distance(table):" in features
    assert "import math" in features
    assert 'logger.info("%s %s", "measuring", len(table))' in features.replace("'", '"')
    assert "unused" not in features
    assert "from risk.features import distance" in text(done, "risk/train.py")


FIT = "m = LogisticRegression().fit(X, X[:, 0] > 0)"
UNSAFE = {
    "magic": (["names = !ls\nX = np.ones((20, 2)) * len(names)\nX[:9] = 0", FIT], "needs-magic", "cell 2, line 1"),
    "random": (["X = np.random.normal(size=(60, 2))", FIT], "differs", "random_state"),
    "nameless": (
        ["X = np.ones((20, 2))\nX[:9] = 0", FIT.replace("fit(X,", "fit(StandardScaler().fit_transform(X),")],
        "nameless",
        "no name of its own",
    ),
    "no model": (["x = 1"], "no-model", "no fitted model"),
    "fails": (["x = undefined_thing"], "cell-error", "NameError"),
}


@pytest.mark.parametrize(("cells", "code", "said"), UNSAFE.values(), ids=UNSAFE)
def test_what_cannot_be_done_safely_is_refused_with_what_to_do(tmp_path, cells, code, said):
    no = refused(write(tmp_path / "n.ipynb", DATA, *cells), tmp_path / "out")
    assert no.code == code
    assert said in str(no)


def test_a_scaler_whose_name_is_taken_before_the_model_is_fitted_is_refused(tmp_path):
    cells = [
        "X = np.arange(60.0).reshape(20, 3)\ns = StandardScaler()\nZ = s.fit_transform(X)",
        "s = StandardScaler().fit(X[:, :1])",
        "m = LogisticRegression().fit(Z, X[:, 0] > 30)",
    ]
    no = refused(write(tmp_path / "n.ipynb", DATA, *cells), tmp_path / "out")
    assert no.code == "rebound"
    assert "cell 3 gives the name 's'" in str(no)


def test_a_folder_with_something_in_it_is_left_alone(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/mine.txt").write_text("mine")
    with pytest.raises(Refused, match="not empty"):
        purified(EXAMPLES / "price/notebook.ipynb", tmp_path / "out")
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["mine.txt"]


def test_a_package_that_cannot_be_written_is_refused_before_and_after_the_run(tmp_path, monkeypatch):
    notebook = EXAMPLES / "price/notebook.ipynb"
    with pytest.raises(Refused, match="cannot be written to /proc/none"):
        purified(notebook, Path("/proc/none/out"))

    def full(folder, files):
        raise OSError(errno.ENOSPC, "No space left on device")

    study = purify_module._first_right

    def then_full(*args):
        done = study(*args)
        monkeypatch.setattr(purify_module, "_write", full)
        return done

    monkeypatch.setattr(purify_module, "_first_right", then_full)
    with pytest.raises(Refused, match="No space left on device"):
        purified(notebook, tmp_path / "out", name="price")
    assert list(tmp_path.iterdir()) == []


def test_the_command_reports_what_it_did(tmp_path):
    notebook = write(
        tmp_path / "n.ipynb",
        DATA,
        "X = np.eye(9)\nm = LogisticRegression().fit(X, X[:, 0])\nprint(m.score(X, X[:, 0]))",
    )
    command = [
        sys.executable,
        "-m",
        "taxiway.entry.cli",
        "purify",
        str(notebook),
        "-o",
        str(tmp_path / "out"),
        "--json",
        "--name",
        "m-1",
    ]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    said = json.loads(ran.stdout)
    assert said["metrics"]["score"]["before"] == said["metrics"]["score"]["after"] > 0.5
    assert "m_1/train.py" in said["files"]
    assert "-print(m.score(X, X[:, 0]))" in said["diff"]
    assert "# why" in said["diff"]


HEAD = (
    DATA
    + """
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
rng = np.random.default_rng(0)
X = rng.normal(size=(80, 3))
y = (X[:, 0] > 0).astype(int)
"""
)
ODD = {
    "a function that fits": [
        "def fit(X, y):\n    p = make_pipeline(StandardScaler(), LogisticRegression())\n    p.fit(X, y)\n    return p",
        "model = fit(X, y)\nmodel.score(X, y)",
    ],
    "names from a star": ["from math import *\nX = X * pi\nm = LogisticRegression().fit(X, y)"],
    "a table changed through another name": [
        "df = pd.DataFrame(X, columns=list('abc'))\ndf.drop(columns=['b'], inplace=True)\nview = df\n"
        "view.loc[0, 'a'] = 5.0",
        "m = LogisticRegression().fit(df, y)\nm.predict(df)",
    ],
    "magics around cells": ["%%capture out\nm = LogisticRegression()\nm.fit(X, y)", "%%time\nm.score(X, y)"],
    "a function that changes a global": [
        "mean = 0\ndef centred(v):\n    global mean\n    mean = v.mean()\n    return v - mean",
        "m = LogisticRegression().fit(centred(X), y)",
    ],
    "a search": [
        "g = GridSearchCV(make_pipeline(StandardScaler(), LogisticRegression()), {'logisticregression__C': [1, 2]})\n"
        "g.fit(X, y)\nprint(g.best_score_, g.score(X, y))"
    ],
    "fitted in a loop": ["for C in (0.1, 1):\n    m = LogisticRegression(C=C).fit(X, y)\n    print(C, m.score(X, y))"],
    "names beyond ASCII": [
        "größe = X * 2  # ä\nm = LogisticRegression().fit(größe, y)\nprint('Köln', m.score(größe, y))"
    ],
}


@pytest.mark.parametrize("cells", ODD.values(), ids=ODD)
def test_notebooks_as_people_write_them_become_packages_that_give_the_same(tmp_path, cells):
    done = purified(write(tmp_path / "n.ipynb", HEAD, *cells), tmp_path / "out")
    assert (done.folder / "risk/train.py").exists()
    for was, now in done.metrics.values():
        assert was == pytest.approx(now)
