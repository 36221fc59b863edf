"""Everything the rules look at, read from a notebook once: trees, effects of statements, magics, stored outputs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from taxiway.notebook.effects import Effects, effects
from taxiway.notebook.read import Cell, Notebook
from taxiway.notebook.source import plain

_SPECIAL: Final = re.compile(r"^\s*[%!?]|\?\s*$|^\s*[\w.,\s]+=\s*[%!]", re.M)
_NO_EFFECTS: Final = Effects(frozenset(), frozenset(), frozenset(), frozenset())


@dataclass(frozen=True, slots=True)
class Hit:
    """Where a rule found something, and what; lines count from 1 within the cell, columns from 1 (0: whole line)."""

    cell: int
    line: int
    message: str
    column: int = 0


@dataclass(frozen=True)
class CellFacts:
    """One code cell. `body` is empty when it does not parse, and `error` says why."""

    cell: Cell
    body: tuple[ast.stmt, ...]
    error: SyntaxError | None

    @property
    def number(self) -> int:
        return self.cell.number

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        return tuple(n for statement in self.body for n in ast.walk(statement))

    @cached_property
    def calls(self) -> tuple[tuple[str, ast.Call], ...]:
        """(dotted name, call) of every call in the cell."""
        return tuple((dotted(n.func), n) for n in self.nodes if isinstance(n, ast.Call))

    @cached_property
    def effects(self) -> tuple[tuple[ast.stmt, Effects], ...]:
        """The effects of each top-level statement."""
        return tuple((statement, _effects(statement)) for statement in self.body)


@dataclass(frozen=True)
class Facts:
    """A notebook as the rules see it."""

    notebook: Notebook
    cells: tuple[CellFacts, ...]

    def calls(self) -> Iterator[tuple[CellFacts, str, ast.Call]]:
        """Every call with its dotted name, in order."""
        for cell in self.cells:
            for name, call in cell.calls:
                yield cell, name, call

    @cached_property
    def defined(self) -> Mapping[str, list[int]]:
        """Name -> the cells that define it at the top level."""
        found: dict[str, list[int]] = {}
        for cell in self.cells:
            for name in {n for _, e in cell.effects for n in e.defines}:
                found.setdefault(name, []).append(cell.number)
        return found

    @cached_property
    def modules(self) -> Mapping[str, str]:
        """Name in the notebook -> the module or `module.attribute` that it was imported as."""
        found: dict[str, str] = {}
        for cell in self.cells:
            for node in cell.nodes:
                if isinstance(node, ast.Import):
                    found |= {
                        a.asname or a.name.partition(".")[0]: a.name if a.asname else a.name.partition(".")[0]
                        for a in node.names
                    }
                elif isinstance(node, ast.ImportFrom) and node.module:
                    found |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
        return found

    def full(self, name: str) -> str:
        """A dotted name with the module that its first part was imported as: `np.int` is `numpy.int`."""
        first, dot, rest = name.partition(".")
        return f"{self.modules.get(first, first)}{dot}{rest}"


def facts(notebook: Notebook) -> Facts:
    """Parse every cell once. A cell that is no Python is kept with its error."""
    return Facts(notebook, tuple(_cell(cell) for cell in notebook.cells))


def dotted(node: ast.expr) -> str:
    """`a.b.c` for names and attributes, `(…).c` for attributes of anything else, else nothing."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        parts.append(node.id)
    elif parts:
        parts.append("(…)")
    return ".".join(reversed(parts))


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    """The value of a keyword argument."""
    return next((k.value for k in call.keywords if k.arg == name), None)


def text(node: ast.expr | None) -> str | None:
    """The value of a constant text."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _cell(cell: Cell) -> CellFacts:
    source = cell.source.replace("\0", "")
    try:
        # Rewriting magics is slow, and few cells have any.
        tree = ast.parse(plain(source) if _SPECIAL.search(source) else source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        try:
            tree = ast.parse(plain(source))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            bad = error if isinstance(error, SyntaxError) else SyntaxError(str(error)[:200] or "too deeply nested")
            return CellFacts(cell, (), bad)
    return CellFacts(cell, tuple(tree.body), None)


def _effects(statement: ast.stmt) -> Effects:
    try:
        return effects(statement)
    except (SyntaxError, ValueError, RecursionError):
        return _NO_EFFECTS
