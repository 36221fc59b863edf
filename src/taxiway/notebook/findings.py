"""All findings of a notebook: the rules' hits, less what the author has silenced with a reason (`suppress.py`).

Findings never block a build. A message repeats words of the notebook, so two things are seen to here for all rules
alike: no message holds a secret, and none holds characters that would act on a terminal.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from taxiway.notebook.facts import Hit, facts
from taxiway.notebook.read import Notebook
from taxiway.notebook.rules import RULES, Severity
from taxiway.notebook.rules.secrets import redacted, values
from taxiway.notebook.suppress import Remark, remarks

_LONGEST: Final = 400


@dataclass(frozen=True, slots=True)
class Finding:
    """`kind` is the rule's id; `line` counts from 1 within the cell, `column` too (0: the whole line).

    `level` is the severity where this one differs from its rule's.
    """

    kind: str
    cell: int
    line: int
    message: str
    column: int = 0
    level: Severity | None = None

    @property
    def severity(self) -> Severity:
        return self.level or RULES[self.kind].severity

    @property
    def fix(self) -> str:
        return RULES[self.kind].fix

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "cell": self.cell,
            "line": self.line,
            "column": self.column,
            "message": self.message,
            "severity": self.severity,
            "why": RULES[self.kind].why,
            "fix": self.fix,
        }


def findings(notebook: Notebook) -> tuple[Finding, ...]:
    """All findings in the order of cells and lines."""
    return silenced(notebook, raw(notebook))


def raw(notebook: Notebook) -> frozenset[Finding]:
    """What the rules find, silenced or not."""
    seen = facts(notebook)
    hidden = sorted(values(seen), key=len, reverse=True)
    hits = ((rule.id, hit) for rule in RULES.values() if rule.find is not None for hit in rule.find(seen))
    return frozenset(_finding(rule, hit, hidden) for rule, hit in hits)


def silenced(notebook: Notebook, found: Iterable[Finding]) -> tuple[Finding, ...]:
    """`found` without what the notebook's remarks silence, and with what is wrong with the remarks themselves."""
    said = {cell.number: remarks(cell.number, cell.source) for cell in notebook.cells}
    by_cell: dict[int, list[Finding]] = {}
    for finding in found:
        by_cell.setdefault(finding.cell, []).append(finding)
    kept = {f for cell, there in by_cell.items() for f in there if not _is_silenced(f, said.get(cell, ()))}
    kept |= {f for cell, them in said.items() for r in them for f in _about(r, by_cell.get(cell, []))}
    return tuple(sorted(kept, key=lambda f: (f.cell, f.line, f.kind, f.message, f.column)))


def _finding(rule: str, hit: Hit, hidden: Iterable[str]) -> Finding:
    message = redacted(hit.message)
    for value in hidden:
        message = message.replace(value, f"{value[:3]}...")
    shown = "".join(c if c.isprintable() else " " for c in message)
    return Finding(rule, hit.cell, hit.line, shown[:_LONGEST], hit.column)


def _is_silenced(finding: Finding, said: Iterable[Remark]) -> bool:
    return any(r.silences(finding.kind, finding.cell, finding.line) for r in said)


def _about(remark: Remark, found: list[Finding]) -> Iterator[Finding]:
    for name in remark.rules:
        if name not in RULES:
            near = difflib.get_close_matches(name, RULES, 1)
            hint = f"; did you mean {near[0]!r}?" if near else "; `taxiway check --rules` lists them"
            yield Finding("unknown-ignore", remark.cell, remark.line, f"there is no rule {name[:60]!r}{hint}")
        elif not _hits(remark, name, found) and RULES[name].find is not None:
            yield Finding("unused-ignore", remark.cell, remark.line, f"{name!r} finds nothing here")
    if not remark.rules:
        yield Finding("unknown-ignore", remark.cell, remark.line, "ignore[] names no rule")
    if not remark.reason:
        message = f"ignore[{', '.join(remark.rules)}] gives no reason"
        yield Finding("ignore-without-reason", remark.cell, remark.line, message)


def _hits(remark: Remark, rule: str, found: list[Finding]) -> bool:
    return any(f.kind == rule and remark.silences(rule, f.cell, f.line) for f in found)
