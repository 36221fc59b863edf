"""Every rule on its own examples, and on what people write that they did not think of."""

import importlib
import importlib.metadata
from pathlib import Path

import pytest

from taxiway.notebook import findings, read
from taxiway.notebook.read import Notebook
from taxiway.notebook.rules import RULES
from taxiway.notebook.rules.drift import GONE
from taxiway.notebook.rules.rule import cells
from tests.notebook.conftest import write

STATIC = [r for r in RULES.values() if r.find is not None]


def found(tmp_path, *cells, counts=None):
    notebook = read.read(write(tmp_path, *cells, counts=counts))
    return [(f.kind, f.cell, f.line) for f in findings.findings(notebook)]


def messages(tmp_path, rule, *cells, counts=None):
    notebook = read.read(write(tmp_path, *cells, counts=counts))
    return [f.message for f in findings.findings(notebook) if f.kind == rule]


def kinds(example):
    notebook = Notebook(Path("n.ipynb"), "sha256:0", cells(example))
    return {f.kind for f in findings.findings(notebook)}


@pytest.mark.parametrize(("rule", "example"), [(r.id, c) for r in STATIC for c in r.bad])
def test_a_rule_finds_its_bad_example(rule, example):
    assert rule in kinds(example)


@pytest.mark.parametrize(("rule", "example"), [(r.id, c) for r in STATIC for c in r.good])
def test_a_rule_does_not_find_its_good_example(rule, example):
    assert rule not in kinds(example)


def test_every_rule_tells_why_and_what_to_do_in_whole_sentences():
    for rule in RULES.values():
        assert rule.id == rule.id.lower().replace(" ", "-")
        for text in (rule.why, rule.fix):
            assert text[0].isupper() or text[0] == "`"
            assert len(text) > 15
        assert rule.find is None or (rule.good and rule.bad)
    assert len({r.title for r in RULES.values()}) == len(RULES)


# --- order -------------------------------------------------------------------------------------------------------


def test_a_name_that_a_later_cell_defines_is_told_with_that_cell(tmp_path):
    assert messages(tmp_path, "undefined-name", "y = x + 1", "x = 2") == [
        "'x' is used before it is defined (cell 2); top to bottom this fails"
    ]
    assert messages(tmp_path, "undefined-name", "y = x + 1") == [
        "'x' is never defined in this notebook; a fresh run fails"
    ]


@pytest.mark.parametrize(
    "cells",
    [
        ["def f():\n    return later\nlater = 1\nf()"],
        ["import numpy as np", "np.zeros(3)"],
        ["for i in range(3):\n    pass\nprint(i)"],
        ["with open('x') as f:\n    pass\nf.closed"],
        ["try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    print(e)"],
        ["[x for x in range(3) if x]", "{k: v for k, v in {}.items()}"],
        ["class A:\n    b = 1\n    def c(self):\n        return self.b\nA().c()"],
        ["f = lambda a, *b, c=1, **d: (a, b, c, d)\nf(1)"],
        ["(n := 3)\nn + 1"],
        ["from math import *\nsqrt(2)"],
        ["x = !ls\nx[0]"],
        ["_ + 1\nIn[0]\ndisplay(3)\nget_ipython()"],
        ["def g():\n    global made\n    made = 1\ng()\nmade"],
        ["a, (b, *c) = 1, (2, 3)\na + b\nc"],
        ["print(__name__)"],
    ],
)
def test_names_that_are_there_are_not_called_undefined(tmp_path, cells):
    assert messages(tmp_path, "undefined-name", *cells) == []


def test_a_function_called_before_what_it_needs_is_defined_is_found(tmp_path):
    cells = ["def f():\n    return later", "f()", "later = 1"]
    assert [m.split(" ")[0] for m in messages(tmp_path, "undefined-name", *cells)] == ["'later'"]


def test_a_name_that_was_deleted_is_undefined_afterwards(tmp_path):
    assert len(messages(tmp_path, "undefined-name", "x = 1\ndel x", "print(x)")) == 1


def test_an_order_that_changes_a_shared_object_is_more_than_an_order(tmp_path):
    shared = ["df = 1", "df2 = df", "df['a'] = 2"]
    assert messages(tmp_path, "order-changes-result", *shared, counts=[1, 5, 3])
    assert not messages(tmp_path, "order-changes-result", *shared, counts=[1, 2, 3])
    apart = ["a = 1", "b = a", "c = 3"]
    assert not messages(tmp_path, "order-changes-result", *apart, counts=[1, 5, 3])


# --- leakage -----------------------------------------------------------------------------------------------------

HEAD = """
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split, GridSearchCV
from sklearn.preprocessing import StandardScaler
X_train, X_test, y_train, y_test = train_test_split(X, y)
scaler = StandardScaler()
model = LogisticRegression()
"""


@pytest.mark.parametrize(
    "cells",
    [
        ["Z = scaler.fit_transform(X_train)\nmodel.fit(Z, y_train)\nmodel.predict(X_test)"],
        ["scaler.fit(X_train)\nZ = scaler.transform(X_train)", "model.fit(Z, y_train)", "model.score(X_test, y_test)"],
        ["X_train = scaler.fit_transform(X_train)\nmodel.fit(X_train, y_train)\nmodel.score(X_test, y_test)"],
    ],
)
def test_test_rows_that_were_not_scaled_are_found(tmp_path, cells):
    assert len(messages(tmp_path, "test-not-transformed", HEAD, *cells)) == 1


@pytest.mark.parametrize(
    "cells",
    [
        [
            "Z = scaler.fit_transform(X_train)\nT = scaler.transform(X_test)",
            "model.fit(Z, y_train)\nmodel.score(T, y_test)",
        ],
        ["model.fit(X_train, y_train)\nmodel.score(X_test, y_test)"],
        [
            "Z = scaler.fit_transform(X_train)\nmodel.fit(Z, y_train)",
            "model.fit(X_train, y_train)\nmodel.predict(X_test)",
        ],
    ],
)
def test_rows_that_were_scaled_alike_are_not_found(tmp_path, cells):
    assert messages(tmp_path, "test-not-transformed", HEAD, *cells) == []


def test_a_search_on_training_rows_is_no_selection_on_the_test(tmp_path):
    cell = "g = GridSearchCV(model, {}).fit(X_train, y_train)\ng.score(X_test, y_test)"
    assert messages(tmp_path, "selection-on-test", HEAD, cell) == []
    loop = "for name in ['a', 'b']:\n    print(name, model.score(X_test, y_test))"
    assert messages(tmp_path, "selection-on-test", HEAD, loop) == []


def test_one_name_for_several_models_is_told_with_all_its_cells(tmp_path):
    cells = ["from sklearn.svm import SVC\nmodel = SVC()", "x = 1", "model = SVC(C=3).fit(X, y)"]
    (said,) = messages(tmp_path, "rebound", *cells)
    assert "SVC (cell 1), SVC (cell 3)" in said


# --- secrets -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cell",
    [
        "api_key = 'f3a9c1e07b2d4586'",
        "db = dict(password='Tr0ub4dor&3')",
        "headers = {'auth_token': 'q8Zk2LmN0pXv'}",
        "os.environ['API_KEY'] = 'f3a9c1e07b2d4586'",
        "t = 'ghp_abcdefghijklmnopqrstuvwxyzABCDEFGHIJ'",
        "k = '''-----BEGIN RSA PRIVATE KEY-----\\nMIIE'''",
    ],
)
def test_a_secret_is_found_and_never_repeated(tmp_path, cell):
    said = messages(tmp_path, "secret", cell)
    assert len(said) >= 1
    for secret in ("f3a9c1e07b2d4586", "Tr0ub4dor", "q8Zk2LmN0pXv", "abcdefghijklmnop", "MIIE"):
        assert secret not in "".join(said)


@pytest.mark.parametrize(
    "cell",
    [
        "password = os.environ['PASSWORD']",
        "token = 'token'",
        "api_key = '<your key>'",
        "password = getpass()",
        "tokenizer = 'bert-base-uncased'",
        "key = 'a'",
        "secret = 'changeme'",
    ],
)
def test_what_only_looks_like_a_secret_is_not_found(tmp_path, cell):
    assert messages(tmp_path, "secret", cell) == []


# --- libraries ---------------------------------------------------------------------------------------------------


def test_a_removed_name_is_told_with_version_and_successor_and_what_it_was_written_for(tmp_path):
    (said,) = messages(tmp_path, "api-drift", "# scikit-learn==0.22.1\nfrom sklearn.datasets import load_boston")
    assert said.startswith("sklearn.datasets.load_boston went with scikit-learn 1.2; written for scikit-learn 0.22.1")
    assert "fetch_california_housing" in said


def test_methods_of_a_library_that_is_not_imported_are_not_found(tmp_path):
    assert messages(tmp_path, "api-drift", "d = {}\nd.iteritems()") == []
    assert len(messages(tmp_path, "api-drift", "import pandas\nd.iteritems()")) == 1


def test_there_is_much_to_know_and_each_entry_once():
    assert len(GONE) >= 90
    assert len({g.name for g in GONE}) == len(GONE)
    assert {g.library for g in GONE} >= {"scikit-learn", "pandas", "numpy", "xgboost", "lightgbm", "torch", "keras"}


def _is_gone(name):
    """Whether `name` cannot be had from the installed library."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:length]))
        except ImportError:
            continue
        try:
            for part in parts[length:]:
                thing = getattr(thing, part)
        except (AttributeError, ImportError):
            return True
        return False
    return True


# numpy 2 brought two names back with another meaning; scipy keeps one that can only raise.
BACK = {"numpy.bool", "numpy.long", "scipy.interpolate.interp2d"}


@pytest.mark.parametrize("library", ["scikit-learn", "pandas", "numpy", "scipy", "matplotlib"])
@pytest.mark.filterwarnings("ignore")
def test_what_is_said_to_be_gone_is_gone_from_the_installed_version(library):
    installed = tuple(int(p) for p in importlib.metadata.version(library).split(".")[:2])
    for gone in GONE:
        if gone.library != library or "(" in gone.name or gone.name.startswith(".") or gone.name in BACK:
            continue
        if tuple(int(p) for p in gone.version.split(".")) <= installed:
            assert _is_gone(gone.name), f"{gone.name} is still in {library} {installed}"


# --- what an audit found -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "secret"),
    [
        ("!curl -H 'Authorization: Bearer ghp_abcdefghijklmnopqrstuvwxyzABCDEFGHIJ' https://x.y", "ghp_abcdefgh"),
        ("%env API_KEY=f3a9c1e07b2d4586", "f3a9c1e07b"),
        ("import requests\nr = requests.get('https://anna:s3cr3tpw@x.y/z')", "s3cr3tpw"),
    ],
    ids=["shell", "magic", "network"],
)
def test_no_rule_repeats_a_secret_in_its_message(tmp_path, cell, secret):
    notebook = read.read(write(tmp_path, cell))
    every = findings.findings(notebook)
    assert "secret" in {f.kind for f in every}
    assert len(every) >= 2
    assert not [f.message for f in every if secret in f.message]


def test_what_a_timed_cell_defines_is_defined(tmp_path):
    assert messages(tmp_path, "undefined-name", "%%time\nx = 1", "print(x)") == []


def test_rows_are_not_taken_for_columns(tmp_path):
    cell = HEAD + "scaler.fit(X[:800])\nZ = scaler.transform(X[800:])"
    assert messages(tmp_path, "transformer-mismatch", cell) == []


def test_a_token_pattern_is_no_secret(tmp_path):
    assert messages(tmp_path, "secret", "v = Vectorizer(token_pattern=r'[a-zA-Z0-9_]+')") == []
