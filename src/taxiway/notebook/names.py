"""Which names a top-level statement reads at once, which only when something of it is called, and which it binds.

`effects.py` asks what a statement depends on, and may take too much; here the question is whether a fresh run fails,
so what is not certain is left out. A function's body is read when it is called, a class's methods too, its bases,
decorators and defaults at once. A lambda or function handed to a call (`df.apply(lambda r: ...)`) counts as called
there. Inside a compound statement (`if`, `for`, `try`, ...) every name that it binds anywhere counts as bound.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_DEFINITIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_COMPREHENSIONS: Final = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_COMPOUND: Final = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.TryStar, ast.Match)


@dataclass(slots=True)
class Names:
    """`now` has the line of each first reading; `later` is what the bound names need when they are called;
    `called` are names that are called at once; `unbound` those that are gone afterwards.
    """

    now: dict[str, int] = field(default_factory=dict)
    later: set[str] = field(default_factory=set)
    called: set[str] = field(default_factory=set)
    bound: set[str] = field(default_factory=set)
    unbound: set[str] = field(default_factory=set)


def names(statement: ast.stmt) -> Names:
    """The names of one top-level statement. Raises RecursionError for very deep ones."""
    found = Names(bound=set(bindings([statement])))
    _read(statement, frozenset(), found, deferred=False)
    if isinstance(statement, _COMPOUND):
        found.now = {name: line for name, line in found.now.items() if name not in found.bound}
    if isinstance(statement, ast.Delete):
        found.unbound = {t.id for t in statement.targets if isinstance(t, ast.Name)}
        found.now |= {t.id: t.lineno for t in statement.targets if isinstance(t, ast.Name) if t.id not in found.now}
    return found


def bindings(body: Iterable[ast.AST]) -> Iterator[str]:
    """Every name bound in this scope by `body`, those of inner scopes left out."""
    todo = list(body)
    while todo:
        node = todo.pop()
        yield from _bound_by(node)
        if isinstance(node, _DEFINITIONS):
            todo += [*node.decorator_list, *getattr(node, "bases", ())]
        elif isinstance(node, _COMPREHENSIONS):
            # An assignment expression in it binds outside of it.
            yield from (n.target.id for n in ast.walk(node) if isinstance(n, ast.NamedExpr))
        elif not isinstance(node, ast.Lambda):
            todo += ast.iter_child_nodes(node)


def _bound_by(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(ctx=ast.Store()):
            yield node.id
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield node.name
        case ast.Import() | ast.ImportFrom():
            yield from (a.asname or a.name.partition(".")[0] for a in node.names)
        case ast.ExceptHandler() | ast.MatchAs() | ast.MatchStar() if node.name:
            yield node.name
        case ast.MatchMapping() if node.rest:
            yield node.rest


def _read(node: ast.AST, inner: frozenset[str], found: Names, *, deferred: bool) -> None:
    """Note what `node` reads of the module's names; `inner` are names of scopes between it and the module."""
    if isinstance(node, ast.Name):
        if isinstance(node.ctx, ast.Load) and node.id not in inner:
            _note(node, found, deferred=deferred)
    elif isinstance(node, _Function):
        _function(node, inner, found, deferred=deferred)
    elif isinstance(node, ast.ClassDef):
        _class(node, inner, found, deferred=deferred)
    elif isinstance(node, _COMPREHENSIONS):
        _comprehension(node, inner, found, deferred=deferred)
    else:
        if isinstance(node, ast.Call):
            _call(node, inner, found, deferred=deferred)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.target.id not in inner:
            _note(node.target, found, deferred=deferred)
        for child in ast.iter_child_nodes(node):
            _read(child, inner, found, deferred=deferred)


def _note(node: ast.Name, found: Names, *, deferred: bool) -> None:
    if deferred:
        found.later.add(node.id)
    else:
        found.now.setdefault(node.id, node.lineno)


def _function(node: _Function, inner: frozenset[str], found: Names, *, deferred: bool) -> None:
    _signature(node, inner, found, deferred=deferred)
    _body(node, inner, found)


def _body(node: _Function, inner: frozenset[str], found: Names) -> None:
    body = [node.body] if isinstance(node, ast.Lambda) else node.body
    own = {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)} | set(bindings(body)) | _parameters(node)
    inside = inner | (own - _globals(body))
    for statement in body:
        _read(statement, inside, found, deferred=True)


def _signature(node: _Function, inner: frozenset[str], found: Names, *, deferred: bool) -> None:
    """Defaults, decorators and annotations are read when the function is made."""
    inner |= _parameters(node)
    parts: list[ast.AST | None] = [*node.args.defaults, *node.args.kw_defaults, *getattr(node, "decorator_list", ())]
    parts += [a.annotation for a in ast.walk(node.args) if isinstance(a, ast.arg)]
    parts.append(getattr(node, "returns", None))
    for part in parts:
        if part is not None:
            _read(part, inner, found, deferred=deferred)


def _class(node: ast.ClassDef, inner: frozenset[str], found: Names, *, deferred: bool) -> None:
    outer = inner | _parameters(node)
    own = outer | set(bindings(node.body)) | {"__qualname__", "__module__"}
    for part in (*node.decorator_list, *node.bases, *node.keywords):
        _read(part, outer, found, deferred=deferred)
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            _signature(statement, own, found, deferred=deferred)
            # Methods do not see the names of the class.
            _body(statement, outer | {"__class__"}, found)
        else:
            _read(statement, own, found, deferred=deferred)


def _comprehension(node: ast.AST, inner: frozenset[str], found: Names, *, deferred: bool) -> None:
    generators: list[ast.comprehension] = node.generators  # type: ignore[attr-defined]
    _read(generators[0].iter, inner, found, deferred=deferred)
    own = inner | {name for g in generators for name in bindings([g.target])}
    own |= {n.target.id for n in ast.walk(node) if isinstance(n, ast.NamedExpr)}
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.comprehension):
            _read(child, own, found, deferred=deferred)
    for number, generator in enumerate(generators):
        for part in (*([generator.iter] if number else []), *generator.ifs):
            _read(part, own, found, deferred=deferred)


def _call(node: ast.Call, inner: frozenset[str], found: Names, *, deferred: bool) -> None:
    """What a call calls, itself or by handing it over."""
    if deferred:
        return
    given = [node.func, *node.args, *(k.value for k in node.keywords)]
    found.called |= {n.id for n in given if isinstance(n, ast.Name) and n.id not in inner}
    for argument in given:
        if isinstance(argument, ast.Lambda):
            inside = Names()
            _function(argument, inner, inside, deferred=False)
            for name in sorted(inside.later):
                found.now.setdefault(name, argument.lineno)
            found.called |= inside.later


def _parameters(node: ast.AST) -> frozenset[str]:
    """The type parameters of `def f[T]`."""
    return frozenset(p.name for p in getattr(node, "type_params", ()))


def _globals(body: Iterable[ast.AST]) -> set[str]:
    return {name for part in body for n in ast.walk(part) if isinstance(n, ast.Global) for name in n.names}
