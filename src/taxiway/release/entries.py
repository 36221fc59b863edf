"""The entries of the journal. Every change of who answers is one of these, and none is ever changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

ADMIT: Final = "admit"  # a proved revision joins its model: {number, digest}
WAKE: Final = "wake"  # a known revision shall run again: {number}
RETIRE: Final = "retire"  # a revision without traffic need not run any longer: {number}
SPLIT: Final = "split"  # traffic moved: {split: {number: weight}, before: {...}}
ROLLBACK: Final = "rollback"  # the same, backwards


@dataclass(frozen=True, slots=True)
class Entry:
    """One decision: `at` in seconds since 1970 (UTC), `seq` ascending without gaps from 1."""

    seq: int
    at: float
    actor: str
    action: str
    model: str
    detail: Mapping[str, Any]
    reason: str

    def to_json(self) -> dict[str, Any]:
        return {
            "seq": self.seq,
            "at": self.at,
            "actor": self.actor,
            "action": self.action,
            "model": self.model,
            "detail": dict(self.detail),
            "reason": self.reason,
        }
