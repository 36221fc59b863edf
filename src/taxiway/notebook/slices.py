"""The statements of a notebook that some of its values depend on, and no others.

A slice is taken backwards from the names that are wanted: a statement belongs to it when it defines or changes a name
that is still needed, and then all that it uses is needed as well. It errs towards taking too much.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from taxiway.core.errors import Refused
from taxiway.notebook.effects import RANDOM, Effects, effects, kills
from taxiway.notebook.read import Cell, Notebook
from taxiway.notebook.source import plain

# Cell magics whose body is an ordinary cell.
_TRANSPARENT: Final = re.compile(r"\s*%%(time|capture|timeit)\b[^\n]*\n")


@dataclass(frozen=True, slots=True)
class Statement:
    """One top-level statement: its cell, its line in it, its text with the comments right above it."""

    cell: int
    line: int
    node: ast.stmt
    text: str
    effects: Effects

    @property
    def is_magic(self) -> bool:
        return any(isinstance(n, ast.Name) and n.id == "get_ipython" for n in ast.walk(self.node))

    @property
    def is_star(self) -> bool:
        """`from math import *`: nobody can tell which names come from it."""
        return isinstance(self.node, ast.ImportFrom) and any(a.name == "*" for a in self.node.names)


def statements(notebook: Notebook) -> list[Statement]:
    """All statements in the order of a run; raises `Refused` for a cell that is no Python."""
    return [s for cell in notebook.cells for s in _of_cell(notebook, cell)]


def _of_cell(notebook: Notebook, cell: Cell) -> list[Statement]:
    source = _TRANSPARENT.sub("", cell.source, count=1)
    try:
        text = plain(source)
        body = ast.parse(text).body
    except (SyntaxError, ValueError) as error:
        raise Refused(
            f"{notebook.path.name}: cell {cell.number} is no Python that can be read: {error}", code="syntax-error"
        ) from error
    lines = text.splitlines()
    return [Statement(cell.number, node.lineno, node, _text(lines, node), effects(node)) for node in body]


def _text(lines: list[str], node: ast.stmt) -> str:
    """The source of a statement; two on one line are written out by the parser."""
    decorators = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(d.lineno for d in decorators)])
    last = node.end_lineno or node.lineno
    whole = "\n".join(lines[first - 1 : last])
    try:
        if len(ast.parse(whole).body) != 1:
            return ast.unparse(node)
    except SyntaxError:
        return ast.unparse(node)
    begin = first
    while begin > 1 and lines[begin - 2].lstrip().startswith("#"):
        begin -= 1
    return "\n".join(lines[begin - 1 : last])


def sliced(all_of_them: list[Statement], wanted: Iterable[str]) -> list[Statement]:
    """The statements that the final values of `wanted` depend on, in order.

    Raises `Refused` when one of them works in a notebook only, or a name is never defined.
    """
    groups, functions = _links(all_of_them), _functions(all_of_them)
    needed, taken = set(wanted), []
    for statement in reversed(all_of_them):
        effect = statement.effects
        changed = {other for name in effect.changes for other in (name, *groups.get(name, ()))}
        if not needed & (effect.defines | changed) and not statement.is_star:
            continue
        taken.append(statement)
        needed -= kills(statement.node) - effect.uses
        needed |= effect.uses | {n for name in effect.uses for n in functions.get(name, ())}
    magic = next((s for s in reversed(taken) if s.is_magic), None)
    if magic is not None:
        raise Refused(
            f"cell {magic.cell}, line {magic.line}: the model depends on a magic or shell command, which works in a "
            "notebook only",
            "What to do: write it in Python (for instance pathlib instead of !ls).",
            code="needs-magic",
        )
    return taken[::-1]


def undefined(taken: list[Statement]) -> list[tuple[str, Statement]]:
    """Names that a slice uses and never defines, with the statement that does; none when stars may define them."""
    if any(s.is_star for s in taken):
        return []
    known = {n for s in taken for n in s.effects.defines} | {RANDOM}
    found: dict[str, Statement] = {}
    for statement in taken:
        for name in sorted(statement.effects.uses - known):
            found.setdefault(name, statement)
    return list(found.items())


def _links(all_of_them: list[Statement]) -> Mapping[str, frozenset[str]]:
    """Name -> the names that its object may share data with."""
    groups: dict[str, set[str]] = {}
    modules = {n for s in all_of_them if isinstance(s.node, ast.Import | ast.ImportFrom) for n in s.effects.defines}
    callables = {
        n for s in all_of_them if isinstance(s.node, ast.FunctionDef | ast.ClassDef) for n in s.effects.defines
    }
    for statement in all_of_them:
        for name in statement.effects.defines:
            others = statement.effects.links - modules - callables - {name}
            group = groups.setdefault(name, set())
            group |= others
            for other in others:
                group |= groups.get(other, set())
    return {name: frozenset(group) for name, group in groups.items()}


def _functions(all_of_them: list[Statement]) -> Mapping[str, frozenset[str]]:
    """Function or class -> all that it needs when it is called, what it calls included."""
    direct = {
        name: set(s.effects.uses)
        for s in all_of_them
        if isinstance(s.node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef)
        for name in s.effects.defines
    }
    for _ in direct:
        for needs in direct.values():
            needs |= {n for name in list(needs) for n in direct.get(name, ())}
    return {name: frozenset(needs) for name, needs in direct.items()}
