"""Findings as SARIF 2.1.0, the form that code hosts and editors show (pure but for the file's own text)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

from taxiway import __version__
from taxiway.notebook.findings import Finding
from taxiway.notebook.rules import RULES

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_TOKEN: Final = re.compile(r'[{}\[\],:]|"[^"\\]*(?:\\.[^"\\]*)*"')


def sarif(found: Mapping[str, Sequence[Finding]], lines: Mapping[str, Mapping[tuple[int, int], int]]) -> dict[str, Any]:
    """One run over all files; `lines` gives, by file, (cell, line) -> the line of the file that holds it."""
    rules = list(RULES.values())
    places = {rule.id: i for i, rule in enumerate(rules)}
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "taxiway check",
                        "version": __version__,
                        "rules": [
                            {
                                "id": rule.id,
                                "shortDescription": {"text": rule.title},
                                "fullDescription": {"text": rule.why},
                                "help": {"text": rule.fix},
                                "helpUri": f"docs/rules/{rule.id}.md",
                                "defaultConfiguration": {"level": rule.severity},
                            }
                            for rule in rules
                        ],
                    }
                },
                "results": [
                    _result(path, finding, places[finding.kind], lines.get(path, {}))
                    for path, findings in found.items()
                    for finding in findings
                ],
            }
        ],
    }


def _result(path: str, finding: Finding, place: int, lines: Mapping[tuple[int, int], int]) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": {"uri": quote(path)}}
    if (at := lines.get((finding.cell, finding.line))) is not None:
        physical["region"] = {"startLine": at}
    return {
        "ruleId": finding.kind,
        "ruleIndex": place,
        "level": finding.severity,
        "message": {"text": f"{finding.message}. {finding.fix}"},
        "locations": [
            {
                "physicalLocation": physical,
                "logicalLocations": [{"name": f"cell {finding.cell}, line {finding.line}", "kind": "function"}],
            }
        ],
    }


def file_lines(text: str) -> dict[tuple[int, int], int]:
    """(code cell, line in it) -> the line of an .ipynb file's own text where that line of source stands.

    Found by where the JSON strings are, so that it holds for any layout; nothing for what is no notebook.
    """
    cells: dict[tuple[Any, ...], _Written] = {}
    try:
        for path, value, line in _strings(text):
            key, part = _cell_part(path)
            if part == "cell_type":
                cells.setdefault(key, _Written()).kind = value
            elif part in ("source", "input"):
                cells.setdefault(key, _Written()).pieces.append((value, line))
    except (ValueError, IndexError):
        return {}
    code = [c for c in cells.values() if c.kind == "code" and "".join(piece for piece, _ in c.pieces).strip()]
    return {(n, at): line for n, cell in enumerate(code, 1) for at, line in cell.lines().items()}


@dataclass(slots=True)
class _Written:
    """A cell as the file has it: each piece of its source with the file's line."""

    kind: str = ""
    pieces: list[tuple[str, int]] = field(default_factory=list)

    def lines(self) -> dict[int, int]:
        found: dict[int, int] = {}
        at = 1
        for piece, line in self.pieces:
            for n in range(piece.count("\n") + 1):
                found.setdefault(at + n, line)
            # What follows a line's end begins with the next piece.
            at += piece.count("\n")
            if piece.endswith("\n"):
                found.pop(at, None)
        return found


def _cell_part(path: list[Any]) -> tuple[tuple[Any, ...], str]:
    """(the cell, the part of it) that a path into the notebook leads to."""
    depth = 2 if path[:1] == ["cells"] else 4 if path[:1] == ["worksheets"] and path[2:3] == ["cells"] else len(path)
    return tuple(path[:depth]), str(path[depth]) if depth < len(path) <= depth + 2 else ""


def _strings(text: str) -> Iterator[tuple[list[Any], str, int]]:
    """(path, value, line) of every string of a JSON text but its keys. Raises ValueError or IndexError."""
    path: list[Any] = []
    objects: list[bool] = []
    is_key = False
    line, done = 1, 0
    for match in _TOKEN.finditer(text):
        mark = match[0]
        line, done = line + text.count("\n", done, match.start()), match.start()
        if mark in "{[":
            objects.append(mark == "{")
            path.append(None if mark == "{" else 0)
            is_key = mark == "{"
        elif mark in "}]":
            objects.pop()
            path.pop()
        elif mark == ",":
            is_key = objects[-1]
            path[-1] = None if is_key else path[-1] + 1
        elif mark == ":":
            is_key = False
        elif is_key:
            path[-1] = json.loads(mark)
        elif mark[0] == '"':
            yield path, json.loads(mark), line
