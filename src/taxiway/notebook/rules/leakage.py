"""Scores that promise too much: a model that has seen its test rows, or is asked about rows of another form."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from taxiway.notebook.facts import Facts, Hit, dotted
from taxiway.notebook.rules.rule import Rule
from taxiway.notebook.rules.state import estimators

_TEST: Final = re.compile(
    r"(x|y|df|data)?_?(test|valid|validation|val|holdout)(_\w+)?\Z|test_(x|y|data|df|set)\w*\Z", re.I
)
_SCALERS: Final = (
    "Scaler",
    "Encoder",
    "Imputer",
    "Vectorizer",
    "Transformer",
    "PCA",
    "Selector",
    "SelectKBest",
    "Discretizer",
)
_ASKING: Final = frozenset({"predict", "predict_proba", "score", "decision_function"})


@dataclass(frozen=True, slots=True)
class _Use:
    """A method call on a named estimator with a named first argument."""

    cell: int
    line: int
    owner: str
    method: str
    given: str
    columns: str
    result: tuple[str, ...]


def _uses(facts: Facts) -> list[_Use]:
    found = []
    for cell in facts.cells:
        for statement in cell.body:
            targets = _targets(statement)
            for node in ast.walk(statement):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
                    owner = dotted(node.func.value)
                    given, columns = _given(node.args[0])
                    found.append(_Use(cell.number, node.lineno, owner, node.func.attr, given, columns, targets))
    return found


def _targets(statement: ast.stmt) -> tuple[str, ...]:
    if not isinstance(statement, ast.Assign):
        return ()
    return tuple(n.id for t in statement.targets for n in ast.walk(t) if isinstance(n, ast.Name))


def _given(node: ast.expr) -> tuple[str, str]:
    """(name of the rows, the columns taken of them) of an argument."""
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        return node.value.id, ast.unparse(node.slice)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr == "values":
        return node.value.id, ""
    return (node.id, "") if isinstance(node, ast.Name) else ("", "")


def _split_line(facts: Facts) -> tuple[int, int] | None:
    for cell, name, call in facts.calls():
        if name.rpartition(".")[2] == "train_test_split":
            return cell.number, call.lineno
    return None


def _fit_before_split(facts: Facts) -> Iterator[Hit]:
    split = _split_line(facts)
    if split is None:
        return
    kinds = {name: bound[-1][2] for name, bound in estimators(facts).items()}
    for use in _uses(facts):
        is_scaler = kinds.get(use.owner, "").endswith(_SCALERS) or use.owner.endswith(_SCALERS)
        if use.method in ("fit", "fit_transform") and is_scaler and (use.cell, use.line) < split:
            message = (
                f"{use.owner or 'a transformer'}.{use.method}() sees the test rows, which are split off only later"
            )
            yield Hit(use.cell, use.line, message)


def _test_not_transformed(facts: Facts) -> Iterator[Hit]:
    """The model was fitted on what a transformer made, and is asked about rows that it did not make."""
    kinds = {name: bound[-1][2] for name, bound in estimators(facts).items()}
    made: dict[str, str] = {}
    raw: set[str] = set()
    fitted_on: dict[str, tuple[str, str]] = {}
    for use in _uses(facts):
        if use.method in ("transform", "fit_transform") and kinds.get(use.owner, "").endswith(_SCALERS):
            made |= dict.fromkeys(use.result, use.owner)
            raw |= {use.given} - set(use.result)
        elif use.method == "fit":
            fitted_on.pop(use.owner, None)
            if use.given in made:
                fitted_on[use.owner] = (use.given, made[use.given])
        elif use.method in _ASKING and use.owner in fitted_on and _is_raw(use.given, made, raw):
            given, scaler = fitted_on[use.owner]
            message = (
                f"{use.owner} was fitted on {given}, which {scaler} made, but is asked about {use.given}, which it "
                "did not: the score is that of another model"
            )
            yield Hit(use.cell, use.line, message)


def _is_raw(given: str, made: Mapping[str, str], raw: set[str]) -> bool:
    return bool(given) and given not in made and (given in raw or _TEST.match(given) is not None)


def _selection_on_test(facts: Facts) -> Iterator[Hit]:
    for cell in facts.cells:
        for node in cell.nodes:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
                given, _ = _given(node.args[0])
                if node.func.attr in ("fit", "fit_transform", "partial_fit") and _TEST.match(given):
                    owner = dotted(node.func.value) or "a model"
                    yield Hit(cell.number, node.lineno, f"{owner}.{node.func.attr}({given}) learns from the test rows")
            elif isinstance(node, ast.For):
                yield from _loop(cell.number, node)


def _loop(cell: int, loop: ast.For) -> Iterator[Hit]:
    """A loop that fits with each value of something and keeps the best score on the test rows."""
    variables = {n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name)}
    calls = [n for n in ast.walk(loop) if isinstance(n, ast.Call)]
    tuned = any(
        k.value.id in variables
        for c in calls
        for k in c.keywords
        if isinstance(k.value, ast.Name) and dotted(c.func).rpartition(".")[2][:1].isupper()
    )
    chooses = any(isinstance(n, ast.If) and isinstance(n.test, ast.Compare) for n in ast.walk(loop)) or any(
        dotted(c.func).endswith(".append") for c in calls
    )
    scored = [
        c
        for c in calls
        if isinstance(c.func, ast.Attribute) and c.func.attr == "score" and c.args and _TEST.match(_given(c.args[0])[0])
    ]
    if tuned and chooses and scored:
        yield Hit(cell, scored[0].lineno, "a setting is chosen by its score on the test rows: that score is too good")


def _transformer_mismatch(facts: Facts) -> Iterator[Hit]:
    """A transformer fitted on some columns and used on others, or fitted again in between for other rows."""
    fitted: dict[str, _Use] = {}
    kinds = {name: bound[-1][2] for name, bound in estimators(facts).items()}
    for use in _uses(facts):
        if not kinds.get(use.owner, "").endswith(_SCALERS):
            continue
        if use.method in ("fit", "fit_transform"):
            fitted[use.owner] = use
        elif use.method == "transform" and use.owner in fitted:
            before = fitted[use.owner]
            if before.columns and use.columns and before.columns != use.columns:
                message = f"{use.owner} was fitted on [{before.columns}] and is used on [{use.columns}]"
                yield Hit(use.cell, use.line, message)


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
        (_HEAD + "model.fit(X_train, y_train)\nmodel.score(X_test, y_test)",),
        _selection_on_test,
    ),
    Rule(
        "transformer-mismatch",
        "A transformer for other columns",
        "error",
        "The scaler's means belong to other columns than those that it is given.",
        "Use one list of columns for both, or a ColumnTransformer in a Pipeline.",
        (_HEAD + "scaler.fit(df[['a', 'b']])\nZ = scaler.transform(df[['a', 'c']])",),
        (_HEAD + "scaler.fit(df[['a', 'b']])\nZ = scaler.transform(df[['a', 'b']])",),
        _transformer_mismatch,
    ),
)
