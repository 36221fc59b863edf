"""Whether a notebook can run top to bottom, and whether that gives what its author saw."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from typing import Final

from taxiway.notebook.effects import RANDOM, kills
from taxiway.notebook.facts import CellFacts, Facts, Hit
from taxiway.notebook.rules.rule import Rule

_KNOWN: Final = frozenset(dir(builtins)) | {
    "get_ipython",
    "display",
    "In",
    "Out",
    "exit",
    "quit",
    "_",
    "__",
    "___",
    RANDOM,
}


def _undefined(facts: Facts) -> Iterator[Hit]:
    if any(isinstance(n, ast.ImportFrom) and any(a.name == "*" for a in n.names) for c in facts.cells for n in c.nodes):
        return  # nobody can tell what a star brings
    known, called = set(_KNOWN), _called_needs(facts)
    # What functions say is global is made when they are called.
    known |= {name for c in facts.cells for n in c.nodes if isinstance(n, ast.Global) for name in n.names}
    told: set[str] = set()
    for cell in facts.cells:
        for statement, effect in cell.effects:
            later = isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef)
            uses = set() if later else set(effect.uses)
            uses |= {n for name in uses & called.keys() for n in called[name]}
            missing = sorted(uses - known - (effect.defines - kills(statement)) - told)
            for name in missing:
                if name.startswith("_") and name.lstrip("_").isdigit():
                    continue
                told.add(name)
                yield Hit(cell.number, _line_of(statement, name), _where(facts, cell, name))
            known |= effect.defines
            if isinstance(statement, ast.Delete):
                known -= {t.id for t in statement.targets if isinstance(t, ast.Name)}


def _called_needs(facts: Facts) -> dict[str, frozenset[str]]:
    """Function -> the globals that it needs by the time it is called."""
    return {
        name: effect.uses
        for cell in facts.cells
        for statement, effect in cell.effects
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef)
        for name in effect.defines
    }


def _line_of(statement: ast.stmt, name: str) -> int:
    lines = [n.lineno for n in ast.walk(statement) if isinstance(n, ast.Name) and n.id == name]
    return min(lines, default=statement.lineno)


def _where(facts: Facts, cell: CellFacts, name: str) -> str:
    later = [number for number in facts.defined.get(name, ()) if number > cell.number]
    if later:
        return f"{name!r} is used before it is defined (cell {later[0]}); top to bottom this fails"
    return f"{name!r} is never defined in this notebook; a fresh run fails"


def _execution_order(facts: Facts) -> Iterator[Hit]:
    highest = 0
    for cell in facts.cells:
        count = cell.cell.count
        if count is None:
            continue
        if count < highest:
            message = f"was last executed as [{count}], before a cell above it ([{highest}]); built top to bottom"
            yield Hit(cell.number, 1, message)
        highest = max(highest, count)


def _order_changes_result(facts: Facts) -> Iterator[Hit]:
    """A cell that was run before one above it, and changes or replaces what that one uses (or the reverse)."""
    counted = [c for c in facts.cells if c.cell.count is not None]
    touched = {c.number: _touched(c) for c in counted}
    highest: CellFacts | None = None
    for cell in counted:
        above = highest
        if above is not None and (cell.cell.count or 0) < (above.cell.count or 0):
            (changed, used), (changed_above, used_above) = touched[cell.number], touched[above.number]
            names = sorted((changed & used_above) | (changed_above & used))
            if names:
                message = (
                    f"was executed before cell {above.number} above it, and they share {', '.join(names[:4])}, which "
                    "one of them changes: top to bottom the result can differ from what is stored"
                )
                yield Hit(cell.number, 1, message)
        if highest is None or (cell.cell.count or 0) > (highest.cell.count or 0):
            highest = cell


def _touched(cell: CellFacts) -> tuple[set[str], set[str]]:
    """(names that the cell changes or defines anew, names that it uses without defining them)."""
    changed: set[str] = set()
    used: set[str] = set()
    for statement, effect in cell.effects:
        if isinstance(statement, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef):
            continue
        used |= effect.uses - changed
        changed |= effect.defines | effect.changes
    return changed - {RANDOM}, used - {RANDOM}


def _syntax(facts: Facts) -> Iterator[Hit]:
    for cell in facts.cells:
        if cell.error is not None:
            said = (cell.error.msg or "it cannot be read").split("\n")[0][:200]
            yield Hit(cell.number, max(1, cell.error.lineno or 1), f"this is no Python: {said}", cell.error.offset or 0)


def _stored_error(facts: Facts) -> Iterator[Hit]:
    for cell in facts.cells:
        for output in cell.cell.outputs:
            if output.kind == "error":
                yield Hit(cell.number, 1, f"its stored output is an error ({output.text[:100]})")


RULES: Final = (
    Rule(
        "syntax-error",
        "Cells that are no Python",
        "error",
        "The cell cannot run, and all that depends on it cannot either.",
        "Put it right, or make it a text cell.",
        ("def broken(:\n    pass",),
        ("def whole():\n    pass",),
        _syntax,
    ),
    Rule(
        "undefined-name",
        "Names that are not there top to bottom",
        "error",
        "The notebook worked because of cells that were run in another order, or are gone; a fresh run stops here.",
        "Move the cell that defines the name above, or put the missing cell back.",
        ("print(missing)", "x = later + 1\nlater = 2"),
        ("x = 1\nprint(x)", "def f():\n    return y\ny = 1\nf()", "[i for i in range(3)]"),
        _undefined,
    ),
    Rule(
        "execution-order",
        "Cells executed in another order",
        "note",
        "The stored outputs come from another order than the one that a build runs in. Most such notebooks run clean.",
        "Restart and run all, and save.",
        (),
        ("x = 1",),
        _execution_order,
    ),
    Rule(
        "order-changes-result",
        "An order that can change the result",
        "warning",
        "Two cells share an object that one of them changes, and they were last executed in the other order.",
        "Give the changed object a name of its own, restart, run all, and compare the numbers.",
        (),
        ("x = 1",),
        _order_changes_result,
    ),
    Rule(
        "stored-error",
        "A stored output that is an error",
        "note",
        "The last run of this cell failed; what comes below was not seen with it.",
        "Restart, run all, and save; remove cells that are meant to fail.",
        (),
        ("x = 1",),
        _stored_error,
    ),
)
