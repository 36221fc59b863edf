"""What a rule is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Literal

from taxiway.notebook.facts import Facts, Hit

Severity = Literal["error", "warning", "note"]
SEVERITIES: Final[tuple[Severity, ...]] = ("error", "warning", "note")


@dataclass(frozen=True, slots=True)
class Rule:
    """`why` it matters in production and what to do (`fix`), for a person; `bad` and `good` are example cells.

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
