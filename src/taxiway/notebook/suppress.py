"""Remarks that silence rules: `# taxiway: ignore[rule] reason`.

On a line of code a remark silences there; alone on a line, on the next one; above all code of a cell, in the whole
cell. Several rules are separated by commas. Only comments count: a text that happens to hold these words silences
nothing. What is wrong with remarks (no reason, no such rule, nothing there to silence) is told by `findings.py`.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

_IGNORE: Final = re.compile(r"#\s*taxiway:\s*ignore\[([^\]]*)\]\s*(.*)$")
_MAGIC: Final = re.compile(r"\s*[%!]")


@dataclass(frozen=True, slots=True)
class Remark:
    """`lines` are those that it silences, counted from 1 within the cell; None is the whole cell."""

    cell: int
    line: int
    rules: tuple[str, ...]
    reason: str
    lines: frozenset[int] | None

    def silences(self, kind: str, cell: int, line: int) -> bool:
        """Whether it speaks of rule `kind` at that place."""
        return cell == self.cell and kind in self.rules and (self.lines is None or line in self.lines)


def remarks(cell: int, source: str) -> tuple[Remark, ...]:
    """All remarks of a cell, top to bottom."""
    if "taxiway:" not in source:
        return ()
    lines = source.split("\n")
    begin = _begin(lines)
    found = []
    for number, text in _comments(source, lines):
        match = _IGNORE.search(text)
        if match is not None:
            rules = tuple(dict.fromkeys(name.strip() for name in match[1].split(",") if name.strip()))
            place = _silenced(number, lines[number - 1], begin)
            found.append(Remark(cell, number, rules, match[2].strip(), place))
    return tuple(found)


def _silenced(number: int, line: str, begin: int) -> frozenset[int] | None:
    if not line.lstrip().startswith("#"):
        return frozenset({number})
    return None if number < begin else frozenset({number, number + 1})


def _begin(lines: list[str]) -> int:
    """The line of the first code; empty lines, comments and a magic for the whole cell are none."""
    for number, line in enumerate(lines, 1):
        if line.strip() and not line.lstrip().startswith(("#", "%%")):
            return number
    return len(lines) + 1


def _comments(source: str, lines: list[str]) -> Iterable[tuple[int, str]]:
    """(line, text) of the comments; of all lines from where the cell cannot be taken apart."""
    # A magic is no Python, and its quotes need not match; as an empty line it stands in nobody's way.
    readable = "\n".join("" if _MAGIC.match(line) else line for line in lines)
    found: list[tuple[int, str]] = []
    done = 0
    try:
        for token in _tokens(readable):
            done = token.end[0]
            if token.type == tokenize.COMMENT:
                found.append((token.start[0], token.string))
    except (tokenize.TokenError, SyntaxError, ValueError):
        found += [(number, line) for number, line in enumerate(lines, 1) if number > done]
    magics = [(number, line) for number, line in enumerate(lines, 1) if _MAGIC.match(line)]
    return sorted(set(found + magics)) if "\n" in source or magics else found


def _tokens(text: str) -> Iterator[tokenize.TokenInfo]:
    return tokenize.generate_tokens(io.StringIO(text).readline)
