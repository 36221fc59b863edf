"""`taxiway check`: findings in notebooks that are read and never run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from taxiway.core.errors import Refused
from taxiway.notebook import findings, read, sarif
from taxiway.notebook.findings import Finding
from taxiway.notebook.rules import RULES, SEVERITIES, Rule


@dataclass(frozen=True, slots=True)
class Checked:
    """Findings by notebook, and why a notebook could not be read."""

    found: Mapping[str, Sequence[Finding]]
    unreadable: Mapping[str, Sequence[str]]

    def worst(self) -> int:
        """0 for errors, 1 for warnings, 2 for notes; 3 when there is nothing. What cannot be read is an error."""
        if self.unreadable:
            return 0
        return min((SEVERITIES.index(f.severity) for found in self.found.values() for f in found), default=3)


def check(paths: Sequence[Path]) -> Checked:
    """Read and check every notebook; one that cannot be read does not keep the others from being checked."""
    found: dict[str, Sequence[Finding]] = {}
    unreadable: dict[str, Sequence[str]] = {}
    for path in paths:
        try:
            found[str(path)] = findings.findings(read.read(path))
        except Refused as error:
            unreadable[str(path)] = list(error.reasons)
    return Checked(found, unreadable)


def as_sarif(checked: Checked) -> dict[str, Any]:
    """SARIF 2.1.0."""
    texts = {path: Path(path).read_text(encoding="utf-8-sig", errors="replace") for path in checked.found}
    return sarif.sarif(checked.found, {path: sarif.file_lines(text) for path, text in texts.items()})


def rules() -> list[Rule]:
    """All rules, in the order in which they are listed."""
    return list(RULES.values())
