"""What this room needs from outside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from taxiway.core.errors import Refused
from taxiway.release.entries import Entry


class Overtaken(Refused):
    """Somebody else wrote to the journal since it was read; read again and decide again."""

    def __init__(self) -> None:
        super().__init__(
            "another change was made at the same moment; look at `taxiway status` and try again", code="overtaken"
        )


class Journal(Protocol):
    """An append-only list of decisions."""

    def read(self, after: int = 0) -> list[Entry]:
        """All entries with seq > `after`, oldest first."""

    def append(
        self, last: int, *, at: float, actor: str, action: str, model: str, detail: Mapping[str, Any], reason: str
    ) -> Entry:
        """Append as number `last` + 1; raises `Overtaken` when that number is taken."""
