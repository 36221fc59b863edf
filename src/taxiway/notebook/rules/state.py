"""What lives outside of the model: globals that inference needs, global seeds, rebound names, code of `__main__`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Final

from taxiway.notebook.facts import Facts, Hit, dotted, keyword
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
_ENDINGS: Final = tuple(
    "Classifier Regressor Regression Ranker Scaler Encoder Imputer Vectorizer Transformer Normalizer Pipeline SearchCV "  # noqa: SIM905
    "ClassifierCV RegressionCV SVC SVR SVM Ridge RidgeCV Lasso LassoCV ElasticNet PCA SVD KMeans DBSCAN NB Perceptron "
    "Binarizer Discretizer Forest Mixture SelectKBest SelectPercentile VarianceThreshold PolynomialFeatures Sequential "
    "Booster Features TSNE UMAP".split()
)
_MAKERS: Final = frozenset({"make_pipeline", "make_column_transformer", "make_union"})
# Arguments by which a model is given a function.
_FUNCTIONS: Final = frozenset({"tokenizer", "preprocessor", "analyzer", "metric", "kernel", "score_func"})
_JOINING: Final = frozenset(
    {"make_pipeline", "Pipeline", "make_column_transformer", "ColumnTransformer", "make_union", "FeatureUnion"}
)
_VOCABULARY: Final = re.compile(
    r"(vocab(ulary)?|(word|char|token|label|class|user|item)s?_?(to|2)_?(id|idx|index|int|num)x?|stoi|itos|"
    r"(label|class|category|target)_?(map|mapping|names)|id_?(to|2)_?(label|word|token))",
    re.I,
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
    return name if is_estimator(name) else None


def is_estimator(name: str) -> bool:
    """Whether a class or function of this name makes something that is fitted."""
    return name in _MAKERS or (name[:1].isupper() and name.endswith(_ENDINGS))


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
    objects = _objects(facts)
    for cell in facts.cells:
        for statement, effect in cell.effects:
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
                names = sorted(_asked(statement) & effect.uses & objects)
                if names:
                    message = f"{statement.name}() needs {', '.join(names)} from the notebook's globals to answer"
                    yield Hit(cell.number, statement.lineno, message)


def _objects(facts: Facts) -> frozenset[str]:
    """Names that stand for what the notebook made, not for modules, functions or classes."""
    others = set(facts.modules)
    for cell in facts.cells:
        others |= {s.name for s in cell.body if isinstance(s, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
    return frozenset(facts.defined.keys() - others)


def _asked(statement: ast.stmt) -> set[str]:
    """Names in a function that predict, transform, or give a word its number."""
    found = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner, does = node.func.value, node.func.attr
            if isinstance(owner, ast.Name) and (
                does in _APPLYING or (does == "get" and _VOCABULARY.fullmatch(owner.id))
            ):
                found.add(owner.id)
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and isinstance(node.value, ast.Name):
            found |= {node.value.id} if _VOCABULARY.fullmatch(node.value.id) else set()
    return found


def _main_class(facts: Facts) -> Iterator[Hit]:
    own = _own(facts)
    for cell, name, call in facts.calls():
        last = name.rpartition(".")[2]
        if last == "FunctionTransformer":
            for given in (*call.args[:1], keyword(call, "func"), keyword(call, "inverse_func")):
                yield from _held(cell.number, call, given, own)
        elif last in _JOINING:
            inner = {n.func.id for n in ast.walk(call) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
            inner |= {own[n.id] for n in ast.walk(call) if isinstance(n, ast.Name) and own.get(n.id, n.id) != n.id}
            for used in sorted(inner & own.keys()):
                yield Hit(cell.number, call.lineno, f"the model holds a {used}, which exists in this notebook only")
        elif is_estimator(last):
            for given in (k.value for k in call.keywords if k.arg in _FUNCTIONS):
                yield from _held(cell.number, call, given, own)


def _held(cell: int, call: ast.Call, given: ast.expr | None, own: Mapping[str, str]) -> Iterator[Hit]:
    """A function of the notebook that is made part of a model."""
    if isinstance(given, ast.Lambda):
        yield Hit(cell, call.lineno, "the model holds a lambda, which exists in this notebook only")
    elif isinstance(given, ast.Name) and given.id in own:
        yield Hit(cell, call.lineno, f"the model holds {given.id}, which exists in this notebook only")


def _own(facts: Facts) -> Mapping[str, str]:
    """Classes, functions and named lambdas of the notebook by name, and the objects of such classes by theirs."""
    statements = [s for c in facts.cells for s in c.body]
    found = {s.name: s.name for s in statements if isinstance(s, ast.ClassDef | ast.FunctionDef)}
    for s in statements:
        if isinstance(s, ast.Assign):
            kind = dotted(s.value.func) if isinstance(s.value, ast.Call) else None
            names = [t.id for t in s.targets if isinstance(t, ast.Name)]
            if isinstance(s.value, ast.Lambda):
                found |= {name: name for name in names}
            elif kind in found and kind[:1].isupper():
                found |= dict.fromkeys(names, kind)
    return found


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
            "word2idx = {'a': 1}\ndef encode(words):\n    return [word2idx[w] for w in words]",
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
        ("# In [1]:\nmodel = LogisticRegression()\n# In [2]:\nmodel = RandomForestClassifier()",),
        ("# In [1]:\nfirst = LogisticRegression()\n# In [2]:\nsecond = RandomForestClassifier()",),
        _rebound,
    ),
    Rule(
        "main-class",
        "Code of the notebook inside the model",
        "warning",
        "A class or function of `__main__` cannot be found by another process: loading the model fails there.",
        "Use a transformer of the library, or do that step before the pipeline; `taxiway purify` gives it a module.",
        (
            "from sklearn.preprocessing import FunctionTransformer\nt = FunctionTransformer(lambda x: x + 1)",
            "class Clean:\n    pass\nstep = Clean()\nmodel = make_pipeline(step, SVC())",
            "def cut(text):\n    return text.split()\nv = TfidfVectorizer(tokenizer=cut)",
        ),
        (
            "import numpy as np\nfrom sklearn.preprocessing import FunctionTransformer\n"
            "t = FunctionTransformer(np.log1p)",
        ),
        _main_class,
    ),
)
