"""What a rule is, and how its examples are written: as one cell, or as several with the numbers that Jupyter shows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Literal

from taxiway.notebook.facts import Facts, Hit
from taxiway.notebook.read import Cell, Output

Severity = Literal["error", "warning", "note"]
SEVERITIES: Final[tuple[Severity, ...]] = ("error", "warning", "note")
_BEGIN: Final = re.compile(r"^# In \[(\d+)\]:\n", re.MULTILINE)
_ERROR: Final = re.compile(r"^# Error: (\w+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Rule:
    """`why` it matters in production and what to do (`fix`), for a person; `bad` and `good` are examples (`cells`).

    `find` is None for what only a run can tell.
    """

    id: str
    title: str
    severity: Severity
    why: str
    fix: str
    bad: tuple[str, ...]
    good: tuple[str, ...]
    find: Callable[[Facts], Iterable[Hit]] | None


def cells(example: str) -> tuple[Cell, ...]:
    """The cells of an example: `# In [3]:` begins one with that execution count, `# Error: NAME` is what it stored."""
    parts = _BEGIN.split(example)
    if len(parts) == 1:
        return (_cell(1, example, None),)
    return tuple(_cell(n, parts[2 * n], int(parts[2 * n - 1])) for n in range(1, len(parts) // 2 + 1))


def _cell(number: int, source: str, count: int | None) -> Cell:
    error = _ERROR.search(source)
    outputs = (Output("error", error[1]),) if error else ()
    return Cell(number, _ERROR.sub("", source).strip("\n"), count, outputs)
