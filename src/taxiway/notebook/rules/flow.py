"""Where rows come from, followed through the top level of a notebook: who split them, which transformer made them.

The walk takes statements in the order of a fresh run, the bodies of `for`, `if`, `with` and `try` included and those
of functions left out (nobody can tell what they are given). A name whose origin is lost is forgotten, so that the
rules built on this say too little rather than something wrong.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from taxiway.notebook.facts import Facts, dotted, text
from taxiway.notebook.rules.state import is_estimator

TRANSFORMERS: Final = (
    "Scaler",
    "Encoder",
    "Imputer",
    "Vectorizer",
    "Transformer",
    "Normalizer",
    "PCA",
    "SVD",
    "SelectKBest",
    "SelectPercentile",
    "VarianceThreshold",
    "PolynomialFeatures",
    "Discretizer",
)
# They are for the answers, not for the rows.
_FOR_ANSWERS: Final = frozenset({"LabelEncoder", "LabelBinarizer", "MultiLabelBinarizer"})
_PASSING: Final = frozenset(
    "copy to_numpy reshape astype drop fillna dropna head sample toarray todense reset_index values".split()  # noqa: SIM905
)
_TRANSFORMS: Final = frozenset({"transform", "fit_transform"})


@dataclass(frozen=True, slots=True)
class Rows:
    """What a call is given: the name it stands under ("" when it has none), the columns where they are written down,
    and the transformer that made it.
    """

    name: str
    columns: tuple[str, ...] | None = None
    maker: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """A method call: `owner` is a name ("" for an object without one), `kind` its class where that is known,
    `origin` the name of the rows that the given ones are part of.
    """

    cell: int
    call: ast.Call
    owner: str
    kind: str
    method: str
    rows: Rows
    origin: str

    @property
    def is_transformer(self) -> bool:
        return self.kind.endswith(TRANSFORMERS)

    @property
    def line(self) -> int:
        return self.call.lineno


@dataclass(slots=True)
class _Known:
    kinds: dict[str, str] = field(default_factory=dict)
    columns: dict[str, tuple[str, ...]] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    makers: dict[str, str] = field(default_factory=dict)
    aliases: dict[str, tuple[str, ...]] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)


def steps(facts: Facts) -> Iterator[Step]:
    """Every method call on rows, and every `train_test_split`, in the order of a fresh run."""
    known = _Known()
    for cell in facts.cells:
        for statement in cell.body:
            try:
                yield from _statement(cell.number, statement, known)
            except RecursionError:
                continue


def is_for_answers(kind: str) -> bool:
    """Whether a transformer is for labels."""
    return kind in _FOR_ANSWERS


def _statement(cell: int, node: ast.stmt, known: _Known) -> Iterator[Step]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return
    inner = [part for name in ("body", "orelse", "handlers", "finalbody") for part in getattr(node, name, ())]
    own = [child for child in ast.iter_child_nodes(node) if child not in inner]
    found = [_named(step, node) for child in own for step in _calls(cell, child, known)]
    yield from found
    if isinstance(node, ast.For):
        _loop(node, known)
    elif isinstance(node, ast.Assign):
        _assign(node, found, known)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name):
        # It was called for what it does to what it is given.
        _forget({n.id for a in node.value.args for n in ast.walk(a) if isinstance(n, ast.Name)}, known)
    for part in inner:
        for statement in part.body if isinstance(part, ast.ExceptHandler) else [part]:
            yield from _statement(cell, statement, known)


def _named(step: Step, node: ast.stmt) -> Step:
    """`model = Model().fit(X)` fits what is then called `model`."""
    target = node.targets[0] if isinstance(node, ast.Assign) and node.value is step.call else None
    if step.owner or step.method != "fit" or not isinstance(target, ast.Name):
        return step
    return replace(step, owner=target.id)


def _calls(cell: int, node: ast.AST, known: _Known) -> Iterator[Step]:
    """The calls in an expression, inner ones first."""
    if isinstance(node, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
        return
    for child in ast.iter_child_nodes(node):
        yield from _calls(cell, child, known)
    if isinstance(node, ast.Call):
        step = _step(cell, node, known)
        if step is not None:
            yield step


def _step(cell: int, call: ast.Call, known: _Known) -> Step | None:
    name = dotted(call.func).rpartition(".")[2]
    given = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "X"), None)
    if given is None:
        return None
    rows = _rows(given, known)
    origin = _origin(rows.name, known)
    if name == "train_test_split":
        return Step(cell, call, "", "", name, rows, origin)
    if not isinstance(call.func, ast.Attribute):
        return None
    owner, kind = _owner(call.func.value, known)
    return Step(cell, call, owner, kind, call.func.attr, rows, origin)


def _owner(node: ast.expr, known: _Known) -> tuple[str, str]:
    """(name, class) of what a method is called on, through `.fit(...)`."""
    while (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("fit", "set_params")
    ):
        node = node.func.value
    if isinstance(node, ast.Call):
        name = dotted(node.func).rpartition(".")[2]
        return "", name if is_estimator(name) else ""
    name = dotted(node)
    return name, known.kinds.get(name, "")


def _rows(node: ast.expr, known: _Known) -> Rows:
    if isinstance(node, ast.Name):
        return Rows(node.id, None, known.makers.get(node.id))
    if isinstance(node, ast.Attribute):
        return _rows(node.value, known) if node.attr in ("values", "T", "loc", "iloc") else Rows("")
    if isinstance(node, ast.Subscript):
        base = _rows(node.value, known)
        return Rows(base.name, _columns(node.slice, known), base.maker)
    if not isinstance(node, ast.Call):
        return Rows("", None, _maker_in(node, known))
    return _rows_of_call(node, known)


def _rows_of_call(node: ast.Call, known: _Known) -> Rows:
    if isinstance(node.func, ast.Attribute):
        method = node.func.attr
        if method in _TRANSFORMS:
            return Rows("", None, _maker(node.func.value, known))
        if method in _PASSING and isinstance(node.func.value, ast.Name) and node.func.value.id not in ("np", "pd"):
            base = _rows(node.func.value, known)
            return Rows(base.name, None, base.maker)
        if method in ("array", "asarray") and node.args:
            return _rows(node.args[0], known)
    return Rows("", None, _maker_in(node, known))


def _maker_in(node: ast.AST, known: _Known) -> str | None:
    """The transformer that made anything in an expression."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and part.id in known.makers:
            return known.makers[part.id]
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in _TRANSFORMS:
            return _maker(part.func.value, known)
    return None


def _maker(node: ast.expr, known: _Known) -> str:
    owner, kind = _owner(node, known)
    return owner or kind or "a transformer"


def _columns(node: ast.expr, known: _Known) -> tuple[str, ...] | None:
    """The columns that an index names, where they are written down."""
    if isinstance(node, ast.Tuple) and len(node.elts) == 2:
        node = node.elts[1]  # .loc[:, columns]
    if isinstance(node, ast.Name):
        return known.columns.get(node.id)
    if (one := text(node)) is not None:
        return (one,)
    if isinstance(node, ast.List) and node.elts:
        names = [text(part) for part in node.elts]
        return tuple(n for n in names if n is not None) if None not in names else None
    return None


def _origin(name: str, known: _Known) -> str:
    return "" if name in known.lost else known.origins.get(name, name)


def _loop(node: ast.For, known: _Known) -> None:
    """`for d in (X_train, X_test)`: what is done to `d` is done to both."""
    targets = {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}
    _forget(targets, known)
    if isinstance(node.target, ast.Name) and isinstance(node.iter, ast.Tuple | ast.List):
        known.aliases[node.target.id] = tuple(n.id for n in node.iter.elts if isinstance(n, ast.Name))


def _assign(node: ast.Assign, found: list[Step], known: _Known) -> None:
    for target in node.targets:
        if isinstance(target, ast.Tuple | ast.List):
            _unpack(target, node.value, found, known)
        else:
            _bind(target, node.value, known)


def _unpack(target: ast.Tuple | ast.List, value: ast.expr, found: list[Step], known: _Known) -> None:
    names = [n.id if isinstance(n, ast.Name) else "" for n in target.elts]
    if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts):
        rows = [_rows(part, known) for part in value.elts]
        for name, part in zip(names, rows, strict=True):
            if name:
                _settle(name, part, known)
        return
    split = next((s for s in found if s.method == "train_test_split" and s.call is value), None)
    if split is None:
        _forget({n for n in names if n}, known)
        return
    parts = [_rows(a, known) for a in split.call.args]
    for place, name in enumerate(names):
        if name and place // 2 < len(parts):
            part = parts[place // 2]
            _settle(name, Rows(part.name or f"(split {place // 2} of line {split.line})", None, part.maker), known)


def _bind(target: ast.expr, value: ast.expr, known: _Known) -> None:
    if isinstance(target, ast.Name):
        columns = _columns(value, known) if isinstance(value, ast.List) else None
        _, kind = _owner(value, known) if isinstance(value, ast.Call) else ("", "")
        rows = _rows(value, known)
        _settle(target.id, rows, known)
        if columns:
            known.columns[target.id] = columns
        if kind:
            known.kinds[target.id] = kind
        return
    base = _rows(target, known).name
    maker = _rows(value, known).maker
    for name in (base, *known.aliases.get(base, ())):
        if name and maker:
            known.makers[name] = maker


def _settle(name: str, rows: Rows, known: _Known) -> None:
    """`name` now stands for `rows`."""
    origin = _origin(rows.name, known) if rows.name else ""
    _forget({name}, known)
    if origin:
        known.lost.discard(name)
        known.origins[name] = origin
    if rows.maker:
        known.makers[name] = rows.maker


def _forget(names: set[str], known: _Known) -> None:
    known.lost |= names
    for table in (known.kinds, known.columns, known.origins, known.makers, known.aliases):
        for name in names:
            table.pop(name, None)
