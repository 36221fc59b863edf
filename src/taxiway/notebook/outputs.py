"""What a fresh run printed against what the notebook has stored (pure).

Numbers are compared as numbers; what differs between any two runs (times, dates, addresses, progress bars, warnings)
is left out. A cell without stored output says nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from taxiway.notebook.read import Cell

RELATIVE: Final = 1e-6
_NUMBER: Final = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_VOLATILE: Final = (
    re.compile(r"0x[0-9a-fA-F]+"),
    re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?)?"),
    re.compile(r"\b\d\d:\d\d(:\d\d)?\b"),
    re.compile(r"\b\d+(\.\d+)?\s*(ns|µs|us|ms|s|sec|secs|seconds|min|minutes|it/s|s/it)\b"),
)
_SKIPPED: Final = re.compile(r"(warning|wall time|cpu times|\d+%\|| it/s|^<.* at 0x|object at 0x)", re.I)


@dataclass(frozen=True, slots=True)
class Change:
    """The first line of a cell's output that differs; `stored` and `got` are that line."""

    cell: int
    stored: str
    got: str

    @property
    def message(self) -> str:
        return f"the notebook shows {_short(self.stored)!r}, a fresh run gives {_short(self.got)!r}"


def compare(cells: Iterable[Cell], got: Mapping[int, str]) -> tuple[Change, ...]:
    """The cells whose stored text differs from `got` (cell -> what it printed and showed), first difference each."""
    found = []
    for cell in cells:
        stored = "\n".join(o.text for o in cell.outputs if o.kind in ("stream", "result"))
        if stored.strip() and cell.number in got:
            change = _first(cell.number, stored, got[cell.number])
            if change is not None:
                found.append(change)
    return tuple(found)


def _first(cell: int, stored: str, got: str) -> Change | None:
    before, after = _lines(stored), _lines(got)
    for i, line in enumerate(before):
        other = after[i] if i < len(after) else ""
        if not same(line, other):
            return Change(cell, line, other)
    return None


def _lines(text: str) -> list[str]:
    lines = [" ".join(line.split()) for line in text.replace("\r", "\n").splitlines()]
    return [line for line in lines if line and not _SKIPPED.search(line)]


def same(stored: str, got: str) -> bool:
    """Whether two lines say the same: equal words, and numbers within RELATIVE or the digits that were written."""
    for pattern in _VOLATILE:
        stored, got = pattern.sub("~", stored), pattern.sub("~", got)
    if _NUMBER.sub("#", stored) != _NUMBER.sub("#", got):
        return False
    pairs = zip(_NUMBER.findall(stored), _NUMBER.findall(got), strict=True)
    return all(_near(a, b) for a, b in pairs)


def _near(stored: str, got: str) -> bool:
    a, b = float(stored), float(got)
    digits = min(len(w.lower().partition("e")[0].partition(".")[2]) for w in (stored, got))
    written = 0.5 * 10.0**-digits * 1.001 if "." in stored and "e" not in (stored + got).lower() else 0.0
    # A rounded number stands for all that round to it.
    return math.isclose(a, b, rel_tol=RELATIVE, abs_tol=written if len(stored) != len(got) else 0.0)


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."
