"""What lives outside of the model: globals that inference needs, global seeds, rebound names, code of `__main__`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Final

from taxiway.notebook.facts import Facts, Hit, dotted
from taxiway.notebook.rules.rule import Rule

_SEEDS: Final = frozenset(
    {
        "numpy.random.seed",
        "random.seed",
        "torch.manual_seed",
        "tensorflow.random.set_seed",
        "tensorflow.set_random_seed",
    }
)
_ESTIMATOR_ENDINGS: Final = (
    "Classifier",
    "Regressor",
    "Regression",
    "Scaler",
    "Encoder",
    "Imputer",
    "Vectorizer",
    "Transformer",
    "Pipeline",
    "SearchCV",
    "SVC",
    "SVR",
    "Ridge",
    "Lasso",
    "PCA",
    "KMeans",
    "NB",
    "Perceptron",
    "Binarizer",
    "Discretizer",
)
_APPLYING: Final = frozenset({"predict", "predict_proba", "transform", "decision_function", "inverse_transform"})


def _global_seed(facts: Facts) -> Iterator[Hit]:
    for cell, name, call in facts.calls():
        if facts.full(name) in _SEEDS:
            message = f"{name}() changes the random state of the whole process; use a local generator"
            yield Hit(cell.number, call.lineno, message)


def estimators(facts: Facts) -> Mapping[str, list[tuple[int, int, str]]]:
    """Name -> (cell, line, class) of every estimator that is bound to it at the top level."""
    found: dict[str, list[tuple[int, int, str]]] = {}
    for cell in facts.cells:
        for statement in cell.body:
            if isinstance(statement, ast.Assign) and (kind := _class_of(statement.value)):
                for target in statement.targets:
                    if isinstance(target, ast.Name):
                        found.setdefault(target.id, []).append((cell.number, statement.lineno, kind))
    return found


def _class_of(value: ast.expr) -> str | None:
    """The class of `StandardScaler()`, `LogisticRegression().fit(X, y)` or `make_pipeline(...)`."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "fit":
        value = value.func.value
    if not isinstance(value, ast.Call):
        return None
    name = dotted(value.func).rpartition(".")[2]
    if name in ("make_pipeline", "make_column_transformer") or name.endswith(_ESTIMATOR_ENDINGS):
        return name
    return None


def _rebound(facts: Facts) -> Iterator[Hit]:
    for name, bindings in estimators(facts).items():
        cells = [cell for cell, _, _ in bindings]
        if len(set(cells)) < 2:
            continue
        cell, line, _ = bindings[-1]
        kinds = ", ".join(f"{kind} (cell {number})" for number, _, kind in bindings)
        message = f"{name!r} names several fitted objects: {kinds}; the last one is not always the one to ship"
        yield Hit(cell, line, message)


def _global_state(facts: Facts) -> Iterator[Hit]:
    fitted = estimators(facts)
    for cell in facts.cells:
        for statement, effect in cell.effects:
            if not isinstance(statement, ast.FunctionDef):
                continue
            used = {
                node.func.value.id
                for node in ast.walk(statement)
                if isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in _APPLYING
                and isinstance(node.func.value, ast.Name)
            }
            names = sorted(used & effect.uses & fitted.keys())
            if names:
                message = f"{statement.name}() needs {', '.join(names)} from the notebook's globals to answer"
                yield Hit(cell.number, statement.lineno, message)


def _main_class(facts: Facts) -> Iterator[Hit]:
    own = _own(facts)
    for cell, name, call in facts.calls():
        last = name.rpartition(".")[2]
        if last == "FunctionTransformer" and call.args:
            first = call.args[0]
            if isinstance(first, ast.Lambda) or (isinstance(first, ast.Name) and first.id in own):
                what = "a lambda" if isinstance(first, ast.Lambda) else first.id
                yield Hit(cell.number, call.lineno, f"the model holds {what}, which exists in this notebook only")
        elif last in ("make_pipeline", "Pipeline", "make_column_transformer", "ColumnTransformer", "make_union"):
            inner = {dotted(n.func) for a in call.args for n in ast.walk(a) if isinstance(n, ast.Call)}
            for used in sorted(inner & own):
                yield Hit(cell.number, call.lineno, f"the model holds a {used}, which exists in this notebook only")


def _own(facts: Facts) -> frozenset[str]:
    """The classes, functions and named lambdas of the notebook."""
    statements = [s for c in facts.cells for s in c.body]
    named = {s.name for s in statements if isinstance(s, ast.ClassDef | ast.FunctionDef)}
    lambdas = [s for s in statements if isinstance(s, ast.Assign) and isinstance(s.value, ast.Lambda)]
    return frozenset(named | {t.id for s in lambdas for t in s.targets if isinstance(t, ast.Name)})


RULES: Final = (
    Rule(
        "global-seed",
        "Global random seeds",
        "note",
        "A global seed couples every step that draws numbers: one more plot and all later numbers are others.",
        "Use rng = np.random.default_rng(0), and pass random_state=... where it is taken.",
        ("import numpy as np\nnp.random.seed(1)", "import torch\ntorch.manual_seed(0)"),
        ("import numpy as np\nrng = np.random.default_rng(1)",),
        _global_seed,
    ),
    Rule(
        "global-state",
        "Inference that needs globals",
        "warning",
        "A service has no notebook behind it: what a function takes from there is missing, or another version.",
        "Put scaler, encoder and model into one Pipeline, and call that.",
        (
            "from sklearn.preprocessing import StandardScaler\nscaler = StandardScaler()\n"
            "def answer(row):\n    return scaler.transform(row)",
        ),
        ("def answer(model, row):\n    return model.predict(row)",),
        _global_state,
    ),
    Rule(
        "rebound",
        "One name for several models",
        "warning",
        "The last object under a name is often an experiment, not the one whose score is in the text.",
        "Give each its own name; else say which: taxiway ship --model NAME@CELL.",
        (),
        ("from sklearn.svm import SVC\nmodel = SVC()\nother = SVC(C=2)",),
        _rebound,
    ),
    Rule(
        "main-class",
        "Code of the notebook inside the model",
        "warning",
        "A class or function of `__main__` cannot be found by another process: loading the model fails there.",
        "Use a transformer of the library, or do that step before the pipeline; `taxiway purify` gives it a module.",
        ("from sklearn.preprocessing import FunctionTransformer\nt = FunctionTransformer(lambda x: x + 1)",),
        (
            "import numpy as np\nfrom sklearn.preprocessing import FunctionTransformer\n"
            "t = FunctionTransformer(np.log1p)",
        ),
        _main_class,
    ),
)
