"""The state of all releases, folded from the journal.

`stable` is the trail of revisions that once answered alone: a rollback goes back along it. A revision that was
left by a rollback is cut off the trail, so that rolling back twice goes two steps back and never forth again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from taxiway.core import split as splits
from taxiway.core.errors import Refused
from taxiway.core.split import Split
from taxiway.release.entries import ADMIT, RETIRE, ROLLBACK, SPLIT, WAKE, Entry


@dataclass(frozen=True, slots=True)
class ModelState:
    """One model: its revisions (number -> digest), who answers, since when (seconds since 1970)."""

    model: str
    revisions: Mapping[int, str] = field(default_factory=dict)
    split: Split = field(default_factory=dict)
    since: float = 0.0
    stable: tuple[int, ...] = ()
    woken: int | None = None

    def live(self) -> frozenset[int]:
        """The revisions whose engines run: all that answer, the one to go back to, and the last one woken."""
        back = self.back()
        extra = {n for n in (back, self.woken) if n is not None}
        return frozenset(self.split) | extra

    def back(self) -> int | None:
        """Where a rollback leads, or None when no earlier revision ever answered alone."""
        if not self.stable:
            return None
        alone = self.split == splits.whole(self.stable[-1])
        if not alone:
            return self.stable[-1]
        return self.stable[-2] if len(self.stable) > 1 else None


@dataclass(frozen=True, slots=True)
class State:
    """All models, and the sequence number of the last entry that is folded in."""

    models: Mapping[str, ModelState]
    last: int

    def model(self, name: str) -> ModelState:
        """Raises `Refused` for a model that was never shipped."""
        try:
            return self.models[name]
        except KeyError:
            known = ", ".join(sorted(self.models)) or "none yet"
            raise Refused(f"there is no model {name!r}; models: {known}") from None


def replay(entries: Iterable[Entry]) -> State:
    """Fold the journal, oldest first. Entries of unknown actions change nothing (a newer version wrote them)."""
    models: dict[str, ModelState] = {}
    last = 0
    for entry in entries:
        models[entry.model] = _apply(models.get(entry.model, ModelState(entry.model)), entry)
        last = entry.seq
    return State(models, last)


def _apply(state: ModelState, entry: Entry) -> ModelState:
    detail = entry.detail
    if entry.action == ADMIT:
        revisions = {**state.revisions, detail["number"]: detail["digest"]}
        return replace(state, revisions=revisions, woken=detail["number"])
    if entry.action == WAKE:
        return replace(state, woken=detail["number"])
    if entry.action == RETIRE:
        return replace(state, woken=None) if state.woken == detail["number"] else state
    if entry.action in (SPLIT, ROLLBACK):
        split = {int(n): w for n, w in detail["split"].items()}
        return replace(state, split=split, since=entry.at, stable=_trail(state.stable, split))
    return state


def _trail(stable: tuple[int, ...], split: Split) -> tuple[int, ...]:
    if len(split) != 1:
        return stable
    (number,) = split
    return (*stable[: stable.index(number)], number) if number in stable else (*stable, number)
