"""What a fresh run printed against what the notebook has stored (pure).

Numbers are compared as numbers; what differs between any two runs (times, dates, addresses, progress bars, warnings)
is left out. Lines are put side by side by their words, so that one line more or less does not make all lines below it
differ. A cell without stored output says nothing, and a line that only the fresh run prints is no change.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from taxiway.notebook.read import Cell
from taxiway.notebook.rules.secrets import quoted

RELATIVE: Final = 1e-6
_NUMBER: Final = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
# No text holds this character, so that a number's place cannot be mistaken for a word.
_PLACE: Final = "\0"
_VOLATILE: Final = (
    re.compile(r"0x[0-9a-fA-F]+"),
    re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?)?"),
    re.compile(r"\b\d\d:\d\d(:\d\d)?\b"),
    re.compile(r"\b\d+(\.\d+)?\s*(ns|µs|us|ms|s|sec|secs|seconds|min|minutes|it/s|s/it)\b"),
)
_SKIPPED: Final = re.compile(r"(warning|wall time|cpu times|(?<!\d)\d{1,4}%\|| it/s|^<.* at 0x|object at 0x)", re.I)
_SCORE: Final = re.compile(
    r"\b(acc(uracy)?|score|auc|roc|f1|precision|recall|r2|r²|mse|rmse|mae|mape|loss|error|logloss|kappa|mcc)\b", re.I
)
# Longer outputs are compared line by line: putting them side by side takes time in proportion to the square.
_ALIGNED: Final = 400


@dataclass(frozen=True, slots=True)
class Change:
    """The first line of a cell's output that differs; `stored` and `got` are that line."""

    cell: int
    stored: str
    got: str

    @property
    def message(self) -> str:
        return f"the notebook shows {quoted(self.stored, 80)!r}, a fresh run gives {quoted(self.got, 80)!r}"

    @property
    def severity(self) -> Literal["error", "warning"]:
        """An error when the line tells a score: people have decided by it."""
        return "error" if _NUMBER.search(self.stored) and _SCORE.search(self.stored.replace("_", " ")) else "warning"


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
    for line, other in _beside(_lines(stored), _lines(got)):
        if not same(line, other):
            return Change(cell, line, other)
    return None


def _beside(before: list[str], after: list[str]) -> Iterable[tuple[str, str]]:
    """Every stored line with the line that stands for it in the fresh run, "" when there is none."""
    if len(before) > _ALIGNED or len(after) > _ALIGNED:
        return zip(before, after + [""] * len(before), strict=False)
    pairs: list[tuple[str, str]] = []
    matcher = difflib.SequenceMatcher(None, [_words(x) for x in before], [_words(x) for x in after], autojunk=False)
    for kind, a, a_end, b, b_end in matcher.get_opcodes():
        if kind != "insert":
            others = after[b:b_end] + [""] * (a_end - a)
            pairs += zip(before[a:a_end], others, strict=False)
    return pairs


def _lines(text: str) -> list[str]:
    lines = [" ".join(line.split()) for line in text.replace("\0", "").replace("\r", "\n").splitlines()]
    return [line for line in lines if line and not _SKIPPED.search(line)]


def same(stored: str, got: str) -> bool:
    """Whether two lines say the same: equal words, and numbers within RELATIVE or the digits that were written."""
    stored, got = _steady(stored), _steady(got)
    if _NUMBER.sub(_PLACE, stored) != _NUMBER.sub(_PLACE, got):
        return False
    pairs = zip(_NUMBER.findall(stored), _NUMBER.findall(got), strict=True)
    return all(_near(a, b) for a, b in pairs)


def _words(line: str) -> str:
    return _NUMBER.sub(_PLACE, _steady(line))


def _steady(line: str) -> str:
    """A line without what differs between any two runs."""
    line = line.replace(_PLACE, "")
    for pattern in _VOLATILE:
        line = pattern.sub("~", line)
    return line


def _near(stored: str, got: str) -> bool:
    a, b = float(stored), float(got)
    if math.isinf(a) or math.isinf(b):
        return stored == got  # more digits than a float can hold
    digits = min(len(w.lower().partition("e")[0].partition(".")[2]) for w in (stored, got))
    written = 0.5 * 10.0**-digits * 1.001 if "." in stored and "e" not in (stored + got).lower() else 0.0
    # A rounded number stands for all that round to it.
    return math.isclose(a, b, rel_tol=RELATIVE, abs_tol=written if len(stored) != len(got) else 0.0)
