"""Scores that promise too much: a model that has seen its test rows, or is asked about rows of another form.

All rules here follow rows by `flow.py` and are silent where it has lost them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final

from taxiway.notebook.facts import Facts, Hit, dotted
from taxiway.notebook.rules.flow import Step, is_for_answers, steps
from taxiway.notebook.rules.rule import Rule

# Rows that are for the last judgement. Validation rows are for choosing, and so are not meant.
_HELD: Final = re.compile(r"(x|y|df|data|features)?_?(test|holdout)(_\w+|\d*)?\Z|test_(x|y|data|df|set)\w*\Z", re.I)
_PART: Final = re.compile(
    r"(^|_)(train(ing)?|test|valid(ation)?|val|holdout|new|scaled|norm\w*|all|full|raw|tr|te)(?=_|$)"
)
_ASKING: Final = frozenset({"predict", "predict_proba", "score", "decision_function"})
_FITTING: Final = frozenset({"fit", "fit_transform", "partial_fit"})
_METRIC: Final = re.compile(r"(score|accuracy|_error|_loss|auc|evaluate)$")
_STOPS: Final = re.compile(r"early_?stopping|ModelCheckpoint", re.I)
# These look at rows to show them.
_VIEWS: Final = ("PCA", "TSNE", "UMAP", "SVD", "KMeans", "DBSCAN")


def _fit_before_split(facts: Facts) -> Iterator[Hit]:
    fitted: list[Step] = []
    for step in steps(facts):
        if step.method == "train_test_split":
            for before in fitted:
                if step.origin == before.origin or step.rows.maker == (before.owner or before.kind):
                    name = before.owner or before.kind
                    message = f"{name}.{before.method}() sees the test rows, which are split off only later"
                    yield Hit(before.cell, before.line, f"{message} (cell {step.cell})")
            fitted.clear()
        elif step.method in _FITTING and step.is_transformer and not is_for_answers(step.kind) and step.origin:
            fitted.append(step)


def _test_not_transformed(facts: Facts) -> Iterator[Hit]:
    """The model was fitted on what a transformer made, and is asked about rows that it did not make."""
    seen: dict[str, set[str]] = {}  # transformer -> origins of the rows that it was given
    fitted: dict[str, tuple[str, str]] = {}  # model -> the rows it was fitted on, and their maker
    for step in steps(facts):
        if step.is_transformer:
            seen.setdefault(step.owner or step.kind, set()).add(step.origin)
        elif step.method == "fit" and step.owner:
            fitted.pop(step.owner, None)
            if step.rows.maker:
                fitted[step.owner] = (step.rows.name or "rows", step.rows.maker)
        elif step.method in _ASKING and step.owner in fitted and step.rows.name and not step.rows.maker:
            given, maker = fitted[step.owner]
            if step.origin and step.origin in seen.get(maker, ()):
                message = (
                    f"{step.owner} was fitted on {given}, which {maker} made, but is asked about {step.rows.name}, "
                    "which it did not: the score is that of another model"
                )
                yield Hit(step.cell, step.line, message)


def _selection_on_test(facts: Facts) -> Iterator[Hit]:
    for step in steps(facts):
        if step.method in _FITTING and _HELD.match(step.rows.name) and _learns(step):
            owner = step.owner or step.kind or "a model"
            yield Hit(step.cell, step.line, f"{owner}.{step.method}({step.rows.name}) learns from the test rows")
    stoppers = _stoppers(facts)
    for cell in facts.cells:
        for node in cell.nodes:
            if isinstance(node, ast.For):
                yield from _loop(cell.number, node)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "fit":
                yield from _stopped(cell.number, node, stoppers)


def _learns(step: Step) -> bool:
    with_answers = len(step.call.args) > 1 or any(k.arg == "y" for k in step.call.keywords)
    return not step.kind.endswith(_VIEWS) and (with_answers or bool(step.kind))


def _stoppers(facts: Facts) -> frozenset[str]:
    """Names of what ends training early: callbacks, and models that were told to."""
    found = set()
    for cell in facts.cells:
        for statement in cell.body:
            if isinstance(statement, ast.Assign) and _mentions_stop(statement.value, frozenset()):
                found |= {t.id for t in statement.targets if isinstance(t, ast.Name)}
    return frozenset(found)


def _mentions_stop(node: ast.AST, stoppers: frozenset[str]) -> bool:
    for part in ast.walk(node):
        if isinstance(part, ast.Call):
            if _STOPS.search(dotted(part.func)) or any(_STOPS.search(k.arg or "") for k in part.keywords):
                return True
        elif isinstance(part, ast.Name) and part.id in stoppers:
            return True
    return False


def _stopped(cell: int, call: ast.Call, stoppers: frozenset[str]) -> Iterator[Hit]:
    """Training that ends when the test rows say so."""
    shown = [k.value for k in call.keywords if k.arg in ("eval_set", "validation_data")]
    held = sorted(n.id for v in shown for n in ast.walk(v) if isinstance(n, ast.Name) and _HELD.match(n.id))
    if held and _mentions_stop(call, stoppers):
        owner = dotted(call.func).rpartition(".")[0] or "a model"
        yield Hit(cell, call.lineno, f"{owner} stops learning when {held[0]} says so: that score is too good")


def _loop(cell: int, loop: ast.For) -> Iterator[Hit]:
    """A loop that fits with each value of something and keeps the scores on the test rows."""
    variables = {n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name)}
    calls = [n for n in ast.walk(loop) if isinstance(n, ast.Call)]
    tuned = any(_is_given(call, variables) for call in calls)
    chooses = any(isinstance(n, ast.If) and isinstance(n.test, ast.Compare) for n in ast.walk(loop)) or any(
        dotted(c.func).endswith(".append") for c in calls
    )
    scored = sorted(c.lineno for c in calls if _METRIC.search(dotted(c.func)) and _mentions_held(c))
    if tuned and chooses and scored:
        yield Hit(cell, scored[0], "a setting is chosen by its score on the test rows: that score is too good")


def _is_given(call: ast.Call, variables: set[str]) -> bool:
    """Whether a class is made with one of the loop's values as a setting."""
    given = [k.value for k in call.keywords]
    return dotted(call.func).rpartition(".")[2][:1].isupper() and any(
        isinstance(v, ast.Name) and v.id in variables for v in given
    )


def _mentions_held(call: ast.Call) -> bool:
    return any(isinstance(n, ast.Name) and _HELD.match(n.id) for a in call.args for n in ast.walk(a))


def _transformer_mismatch(facts: Facts) -> Iterator[Hit]:
    """A transformer fitted on some columns and used on others, or fitted again in between for other rows."""
    fitted: dict[str, list[Step]] = {}
    for step in steps(facts):
        if not step.is_transformer or not step.owner:
            continue
        if step.method in ("fit", "fit_transform"):
            fitted.setdefault(step.owner, []).append(step)
        elif step.method in ("transform", "inverse_transform") and step.owner in fitted:
            message = _mismatch(step, fitted[step.owner])
            if message:
                yield Hit(step.cell, step.line, message)


def _mismatch(step: Step, fitted: list[Step]) -> str | None:
    *before, last = fitted
    there, here = last.rows.columns, step.rows.columns
    if there and here and there != here:
        return f"{step.owner} was fitted on {_listed(there)} (cell {last.cell}) and is used on {_listed(here)}"
    stem, now = _stem(step.rows.name), _stem(last.rows.name)
    first = next((f for f in before if stem and now and _stem(f.rows.name) == stem != now), None)
    if first is None:
        return None
    return (
        f"{step.owner} was fitted for {first.rows.name} (cell {first.cell}), then again for {last.rows.name} "
        f"(cell {last.cell}), and is now used on {step.rows.name}"
    )


def _listed(columns: tuple[str, ...]) -> str:
    return f"[{', '.join(columns[:4])}{', ...' if len(columns) > 4 else ''}]"


def _stem(name: str) -> str:
    """`x` of X_train, X_test and X_new."""
    return _PART.sub("", name.lower()).strip("_0123456789")


_HEAD: Final = (
    "from sklearn.linear_model import LogisticRegression\nfrom sklearn.model_selection import train_test_split\n"
    "from sklearn.preprocessing import StandardScaler\nscaler = StandardScaler()\nmodel = LogisticRegression()\n"
)

RULES: Final = (
    Rule(
        "fit-before-split",
        "Fitted before the split",
        "note",
        "The scaler has seen the test rows: the score is a little too good. With many rows it hardly matters.",
        "Split first, or put the scaler into the Pipeline that is fitted.",
        (_HEAD + "Z = scaler.fit_transform(X)\na, b, c, d = train_test_split(Z, y)",),
        (_HEAD + "a, b, c, d = train_test_split(X, y)\nZ = scaler.fit_transform(a)",),
        _fit_before_split,
    ),
    Rule(
        "test-not-transformed",
        "Test rows not transformed like training rows",
        "error",
        "The model is asked about rows of another scale than it has learned: its score says nothing.",
        "Call scaler.transform(X_test) first; better, put scaler and model into one Pipeline.",
        (
            _HEAD + "X_train, X_test, y_train, y_test = train_test_split(X, y)\n"
            "Z = scaler.fit_transform(X_train)\nmodel.fit(Z, y_train)\nmodel.score(X_test, y_test)",
        ),
        (
            _HEAD + "X_train, X_test, y_train, y_test = train_test_split(X, y)\nZ = scaler.fit_transform(X_train)\n"
            "model.fit(Z, y_train)\nX_test = scaler.transform(X_test)\nmodel.score(X_test, y_test)",
        ),
        _test_not_transformed,
    ),
    Rule(
        "selection-on-test",
        "Chosen on the test rows",
        "error",
        "What was chosen by the test rows has seen them: in production it is worse than its score.",
        "Choose by cross-validation on the training rows; use the test rows once.",
        (
            _HEAD + "model.fit(X_test, y_test)",
            _HEAD + "best = 0\nfor C in (0.1, 1):\n    m = LogisticRegression(C=C).fit(X_train, y_train)\n"
            "    if m.score(X_test, y_test) > best:\n        best = m.score(X_test, y_test)",
        ),
        (
            _HEAD + "model.fit(X_train, y_train)\nmodel.score(X_test, y_test)",
            _HEAD + "best = 0\nfor C in (0.1, 1):\n    m = LogisticRegression(C=C).fit(X_train, y_train)\n"
            "    if m.score(X_val, y_val) > best:\n        best = m.score(X_val, y_val)",
        ),
        _selection_on_test,
    ),
    Rule(
        "transformer-mismatch",
        "A transformer for other columns",
        "error",
        "The scaler's means belong to other columns than those that it is given.",
        "Use one list of columns for both, or a ColumnTransformer in a Pipeline.",
        (
            _HEAD + "scaler.fit(df[['a', 'b']])\nZ = scaler.transform(df[['a', 'c']])",
            _HEAD + "scaler.fit(X_train)\nscaler.fit(y_train)\nZ = scaler.transform(X_test)",
        ),
        (
            _HEAD + "scaler.fit(df[['a', 'b']])\nZ = scaler.transform(df[['a', 'b']])",
            _HEAD + "scaler.fit(X[:800])\nZ = scaler.transform(X[800:])",
        ),
        _transformer_mismatch,
    ),
)
