"""Findings as SARIF 2.1.0, the form that code hosts and editors show (pure but for the file's own text)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from taxiway import __version__
from taxiway.notebook.findings import Finding
from taxiway.notebook.rules import RULES

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"


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
    region: dict[str, Any] = {"startLine": lines.get((finding.cell, finding.line), 1)}
    return {
        "ruleId": finding.kind,
        "ruleIndex": place,
        "level": finding.severity,
        "message": {"text": f"{finding.message}. {finding.fix}"},
        "locations": [
            {
                "physicalLocation": {"artifactLocation": {"uri": path}, "region": region},
                "logicalLocations": [{"name": f"cell {finding.cell}, line {finding.line}", "kind": "function"}],
            }
        ],
    }


def file_lines(text: str) -> dict[tuple[int, int], int]:
    """(code cell, line in it) -> the line of an .ipynb file's own text where that line of source stands.

    Only for files with one line of source per line of the file, as every notebook program writes them.
    """
    try:
        notebook: Any = json.loads(text)
        cells = notebook.get("cells") or notebook["worksheets"][0]["cells"]
        sources = [c.get("source", c.get("input")) for c in cells if c["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        return {}
    sources = [s for s in sources if (s if isinstance(s, str) else "".join(s or ())).strip()]
    rows = text.splitlines()
    found: dict[tuple[int, int], int] = {}
    at = 0
    for number, source in enumerate(sources, 1):
        if isinstance(source, str):
            continue
        for line, piece in enumerate(source, 1):
            wanted = json.dumps(piece, ensure_ascii=False), json.dumps(piece)
            for i in range(at, len(rows)):
                if rows[i].strip().rstrip(",") in wanted:
                    found[number, line] = i + 1
                    at = i + 1
                    break
    return found
