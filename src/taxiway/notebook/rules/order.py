"""Whether a notebook can run top to bottom, and whether that gives what its author saw."""

from __future__ import annotations

import ast
import bisect
import builtins
import re
from collections.abc import Iterator
from typing import Final

from taxiway.notebook.effects import RANDOM
from taxiway.notebook.facts import CellFacts, Facts, Hit, dotted, text
from taxiway.notebook.names import Names, names
from taxiway.notebook.rules.rule import Rule

_KNOWN: Final = frozenset(dir(builtins)) | frozenset(
    "__builtins__ __annotations__ get_ipython display In Out exit quit _ __ ___ _i _ii _iii _ih _oh _dh _sh".split()  # noqa: SIM905
)
_HISTORY: Final = re.compile(r"_i?\d+")
_WORD: Final = re.compile(r"[^\W\d]\w*")
# Builtins of Python 2, and what they are now.
_OLD: Final = {
    "xrange": "range",
    "unicode": "str",
    "raw_input": "input",
    "basestring": "str",
    "long": "int",
    "unichr": "chr",
    "reduce": "functools.reduce",
    "execfile": "exec",
    "reload": "importlib.reload",
    "cmp": "a key function",
}
# What brings names in that nobody can read here.
_BRINGS: Final = frozenset({"run", "pylab", "load", "loadpy", "store", "load_ext", "reload_ext", "sql"})
_WRITES: Final = frozenset({"exec", "globals", "locals", "vars", "execfile"})


def _undefined(facts: Facts) -> Iterator[Hit]:
    """Walk the statements as a fresh run would, and stop being sure where names come from what cannot be read."""
    known = set(_KNOWN)
    # What functions say is global is made when they are called.
    known |= {name for c in facts.cells for n in c.nodes if isinstance(n, ast.Global) for name in n.names}
    later: dict[str, frozenset[str]] = {}
    walked: set[str] = set()
    for cell in facts.cells:
        known |= _unread(cell)
        for statement in cell.body:
            try:
                found = names(statement)
            except RecursionError:
                return
            needs = dict.fromkeys(_needed(found.called, later, walked), 0) | found.now
            for name in sorted(needs.keys() - known):
                if not _HISTORY.fullmatch(name):
                    known.add(name)
                    yield Hit(cell.number, needs[name] or statement.lineno, _where(facts, cell, name))
            _bind(found, known, later, walked)
            if _is_unknowable(statement):
                return


def _bind(found: Names, known: set[str], later: dict[str, frozenset[str]], walked: set[str]) -> None:
    """What a statement leaves behind."""
    known |= found.bound
    known -= found.unbound
    for name in found.bound:
        later.pop(name, None)
        if found.later:
            later[name] = frozenset(found.later)
    walked -= found.bound
    if found.unbound:
        walked.clear()


def _needed(called: set[str], later: dict[str, frozenset[str]], walked: set[str]) -> set[str]:
    """What the bodies of functions that are called read, and of those that these call; each function once."""
    needs: set[str] = set()
    todo = [name for name in called if name in later and name not in walked]
    while todo:
        name = todo.pop()
        if name not in walked:
            walked.add(name)
            needs |= later[name]
            todo += [other for other in later[name] if other in later]
    return needs


def _unread(cell: CellFacts) -> set[str]:
    """Words that may be names defined by what is no Python: a broken cell, a magic of another language."""
    words = set() if cell.error is None else set(_WORD.findall(cell.cell.source))
    for name, call in cell.calls:
        if name.startswith("(…).run_"):
            words |= {word for argument in call.args for word in _WORD.findall(text(argument) or "")}
    return words


def _is_unknowable(statement: ast.stmt) -> bool:
    """Whether a statement may define any name: a star, `%run`, `exec`, `globals()[...] = ...`."""
    if isinstance(statement, ast.ImportFrom):
        return any(alias.name == "*" for alias in statement.names)
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return False
    for node in ast.walk(statement):
        if isinstance(node, ast.Call):
            name = dotted(node.func)
            first = text(node.args[0]) if node.args else None
            if name in _WRITES or (name.startswith("(…).run_") and first in _BRINGS):
                return True
        elif isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
            return True
    return False


def _where(facts: Facts, cell: CellFacts, name: str) -> str:
    later = [number for number in facts.defined.get(name, ()) if number > cell.number]
    if later:
        return f"{name!r} is used before it is defined (cell {later[0]}); top to bottom this fails"
    if cell.number in facts.defined.get(name, ()):
        return f"{name!r} is used before it is defined, further down in this cell; top to bottom this fails"
    if name in _OLD:
        return f"{name!r} is Python 2's; now it is {_OLD[name]}"
    return f"{name!r} is never defined in this notebook; a fresh run fails"


def _execution_order(facts: Facts) -> Iterator[Hit]:
    """The fewest cells that have to be thought away for the others to have been executed in file order."""
    counted = [(c, c.cell.count) for c in facts.cells if c.cell.count is not None]
    kept = _increasing([count for _, count in counted])
    for place, (cell, count) in enumerate(counted):
        if place not in kept:
            yield Hit(cell.number, 1, f"was last executed as [{count}], out of the order of the cells around it")


def _increasing(counts: list[int]) -> frozenset[int]:
    """The places of a longest increasing run through `counts`; of several the one with the higher numbers."""
    # Seen from the end, with `tops[n]` the highest number that a run of n + 1 more can begin with, negated.
    tops: list[int] = []
    begins: list[int] = []
    after: list[int | None] = [None] * len(counts)
    for place in range(len(counts) - 1, -1, -1):
        length = bisect.bisect_left(tops, -counts[place])
        after[place] = begins[length - 1] if length else None
        begins[length : length + 1] = [place]
        tops[length : length + 1] = [-counts[place]]
    found: list[int] = []
    at = begins[-1] if begins else None
    while at is not None:
        found.append(at)
        at = after[at]
    return frozenset(found)


def _order_changes_result(facts: Facts) -> Iterator[Hit]:
    """A cell that was run before one above it, and changes or replaces what that one uses (or the reverse)."""
    used: dict[str, CellFacts] = {}  # by name, the cell above that was executed last and uses it
    changed: dict[str, CellFacts] = {}
    for cell in (c for c in facts.cells if c.cell.count is not None):
        changes, uses = _touched(cell)
        above = [(used[n], n) for n in changes & used.keys()] + [(changed[n], n) for n in uses & changed.keys()]
        later = [(other, name) for other, name in above if _count(other) > _count(cell)]
        if later:
            first = min((other for other, _ in later), key=lambda other: other.number)
            shared = ", ".join(sorted({name for other, name in later if other is first})[:4])
            message = (
                f"was executed before cell {first.number} above it, and they share {shared}, which one of them "
                "changes: top to bottom the result can differ from what is stored"
            )
            yield Hit(cell.number, 1, message)
        for table, touched in ((used, uses), (changed, changes)):
            table |= {n: cell for n in touched if n not in table or _count(table[n]) < _count(cell)}


def _count(cell: CellFacts) -> int:
    return cell.cell.count or 0


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
            said = "it is nested too deeply to be read" if "recursion" in said or "nested" in said else said
            said = "a print statement of Python 2" if said.startswith("Missing parentheses") else said
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
        ("# In [1]:\nx = 1\n# In [5]:\ny = 2\n# In [3]:\nz = 3",),
        ("# In [1]:\nx = 1\n# In [3]:\ny = 2\n# In [9]:\nz = 3",),
        _execution_order,
    ),
    Rule(
        "order-changes-result",
        "An order that can change the result",
        "warning",
        "Two cells share an object that one of them changes, and they were last executed in the other order.",
        "Give the changed object a name of its own, restart, run all, and compare the numbers.",
        ("# In [1]:\nrows = []\n# In [5]:\ntotal = len(rows)\n# In [3]:\nrows.append(1)",),
        (
            "# In [1]:\nrows = []\n# In [2]:\ntotal = len(rows)\n# In [3]:\nrows.append(1)",
            "# In [1]:\na = 1\n# In [5]:\nb = 2\n# In [3]:\nc = 3",
        ),
        _order_changes_result,
    ),
    Rule(
        "stored-error",
        "A stored output that is an error",
        "note",
        "The last run of this cell failed; what comes below was not seen with it.",
        "Restart, run all, and save; remove cells that are meant to fail.",
        ("# In [1]:\n1 / 0\n# Error: ZeroDivisionError",),
        ("# In [1]:\nx = 1",),
        _stored_error,
    ),
)
