import pytest

from tests.notebook.conftest import DATA

TWO = "a = LogisticRegression().fit(X, y)\na.predict(X)"
TWO_B = "b = make_pipeline(StandardScaler(), LogisticRegression())\nb.fit(X, y)\nc = b\nprint(b.score(X, y))"


def test_two_models_are_listed_and_one_must_be_named(notebooks):
    code, said = notebooks.refused(DATA, TWO, TWO_B)
    assert code == "choose-model"
    assert "2 models could be shipped" in said
    assert said.index("--model a@2   LogisticRegression, 3 features") < said.index("--model b@3   Pipeline, 3 features")
    assert "score 0." in said


@pytest.mark.parametrize(("model", "label"), [("a", "a@2"), ("b", "b@3"), ("c", "b@3"), ("c@3", "b@3")])
def test_a_model_is_named_by_any_of_its_names(notebooks, model, label):
    assert notebooks.run(DATA, TWO, TWO_B, model=model)["chosen"] == label


@pytest.mark.parametrize("model", ["x", "a@3", "@2", "a@", ""])
def test_a_name_that_fits_nothing_lists_what_there_is(notebooks, model):
    code, said = notebooks.refused(DATA, TWO, TWO_B, model=model)
    assert code == "choose-model"
    assert "names no model" in said
    assert "--model a@2" in said


@pytest.mark.parametrize(
    "cell",
    [
        "x = 1",
        "m = LogisticRegression()",
        "s = StandardScaler().fit(X)",
        "kind = LogisticRegression",
        "_hidden = LogisticRegression().fit(X, y)",
        "from sklearn.model_selection import GridSearchCV\n"
        "g = GridSearchCV(LogisticRegression(), {'C': [1.0]}, refit=False, cv=2).fit(X, y)",
    ],
)
def test_what_is_no_fitted_model_is_none(notebooks, cell):
    code, said = notebooks.refused(DATA, cell)
    assert code == "no-model"
    assert "no fitted model was found" in said


def test_the_parts_of_a_model_are_not_models_of_their_own(notebooks):
    said = notebooks.run(
        DATA,
        "from sklearn.ensemble import VotingClassifier\nfrom sklearn.tree import DecisionTreeClassifier\n"
        "tree = DecisionTreeClassifier(max_depth=2)\nvote = VotingClassifier([('t', tree)], voting='soft')\n"
        "vote.fit(X, y)\ninner = vote.estimators_[0]\nvote.predict(X)",
    )
    assert [line.split()[1] for line in said["listed"]] == ["vote@2"]


def test_the_best_of_a_search_is_the_model(notebooks):
    said = notebooks.run(
        DATA,
        "from sklearn.model_selection import GridSearchCV\n"
        "search = GridSearchCV(LogisticRegression(), {'C': [0.1, 1.0]}, cv=2)\nsearch.fit(X, y)\n"
        "best = search.best_estimator_\nsearch.predict(X)",
    )
    assert said["chosen"] == "search@2"
    assert "LogisticRegression" in said["listed"][0]


def test_a_model_belongs_to_the_cell_that_fitted_it_last(notebooks):
    said = notebooks.run(DATA, "m = LogisticRegression()", "m.fit(X, y)", "m.fit(X[:40], y[:40])", "m.predict(X)")
    assert said["chosen"] == "m@4"
    assert len(said["train"]) == 40


def test_an_onnx_model_and_a_session_on_its_bytes_are_one(notebooks):
    said = notebooks.run(
        "import onnx, onnxruntime\nfrom onnx import TensorProto, helper",
        "value = lambda n: helper.make_tensor_value_info(n, TensorProto.FLOAT, ['N', 2])\n"
        "graph = helper.make_graph([helper.make_node('Neg', ['x'], ['y'])], 'g', [value('x')], [value('y')])\n"
        "model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8)",
        "session = onnxruntime.InferenceSession(model.SerializeToString())",
    )
    assert [line.split()[1] for line in said["listed"]] == ["model@2"]
