"""All findings of a notebook: the rules' hits, less what the author has silenced with a reason.

`# taxiway: ignore[rule] reason` on a line silences that rule there; alone on a line, on the next one; as the first
line of a cell, in the whole cell. Several rules are separated by commas. Findings never block a build.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final

from taxiway.notebook.facts import Hit, facts
from taxiway.notebook.read import Notebook
from taxiway.notebook.rules import RULES, Severity

_IGNORE: Final = re.compile(r"#\s*taxiway:\s*ignore\[([^\]]*)\]\s*(.*)$")


@dataclass(frozen=True, slots=True)
class Finding:
    """`kind` is the rule's id; `line` counts from 1 within the cell, `column` too (0: the whole line)."""

    kind: str
    cell: int
    line: int
    message: str
    column: int = 0

    @property
    def severity(self) -> Severity:
        return RULES[self.kind].severity

    @property
    def fix(self) -> str:
        return RULES[self.kind].fix

    def to_json(self) -> dict[str, Any]:
        rule = RULES[self.kind]
        return asdict(self) | {"severity": rule.severity, "why": rule.why, "fix": rule.fix}


@dataclass(frozen=True, slots=True)
class _Remark:
    cell: int
    line: int
    rules: tuple[str, ...]
    reason: str
    lines: frozenset[int] | None  # None: the whole cell

    def silences(self, finding: Finding) -> bool:
        where = self.lines is None or finding.line in self.lines
        return finding.cell == self.cell and finding.kind in self.rules and where


def findings(notebook: Notebook) -> tuple[Finding, ...]:
    """All findings in the order of cells and lines."""
    return silenced(notebook, raw(notebook))


def raw(notebook: Notebook) -> frozenset[Finding]:
    """What the rules find, silenced or not."""
    seen = facts(notebook)
    return frozenset(_finding(r.id, hit) for r in RULES.values() if r.find is not None for hit in r.find(seen))


def silenced(notebook: Notebook, found: Iterable[Finding]) -> tuple[Finding, ...]:
    """`found` without what the notebook's remarks silence, and with what is wrong with the remarks themselves."""
    remarks = [r for cell in notebook.cells for r in _remarks(cell.number, cell.source)]
    found = list(found)
    kept = [f for f in found if not any(r.silences(f) for r in remarks)]
    kept += [f for r in remarks for f in _about(r, found)]
    return tuple(sorted(set(kept), key=lambda f: (f.cell, f.line, f.kind, f.message)))


def _finding(rule: str, hit: Hit) -> Finding:
    return Finding(rule, hit.cell, hit.line, hit.message, hit.column)


def _remarks(cell: int, source: str) -> Iterator[_Remark]:
    if "taxiway:" not in source:
        return
    for number, line in enumerate(source.splitlines(), 1):
        match = _IGNORE.search(line)
        if match is None:
            continue
        rules = tuple(name.strip() for name in match[1].split(",") if name.strip())
        alone = line.lstrip().startswith("#")
        lines = None if alone and number == 1 else frozenset({number, number + 1} if alone else {number})
        yield _Remark(cell, number, rules, match[2].strip(), lines)


def _about(remark: _Remark, found: list[Finding]) -> Iterator[Finding]:
    for name in remark.rules:
        if name not in RULES:
            near = difflib.get_close_matches(name, RULES, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            yield Finding("unknown-ignore", remark.cell, remark.line, f"there is no rule {name!r}{hint}")
        elif not any(remark.silences(f) and f.kind == name for f in found) and RULES[name].find is not None:
            yield Finding("unused-ignore", remark.cell, remark.line, f"{name!r} finds nothing here")
    if not remark.reason:
        message = f"ignore[{', '.join(remark.rules)}] gives no reason"
        yield Finding("ignore-without-reason", remark.cell, remark.line, message)
