"""From decisions and the state of the engines to the traffic that the gateway shall carry (pure).

A request has as long as the most patient of the model's routed revisions says, so that none is cut short.

A revision becomes reachable when its engine is ready. While a revision that should answer is down and another
one of the split is ready, the ready ones take its share; the decision itself stays what it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from taxiway.core.revision import Revision
from taxiway.core.split import Split
from taxiway.engine.status import Status
from taxiway.gateway.desired import Address, Backend, ModelTraffic
from taxiway.release.state import ModelState, State

Statuses = Mapping[Revision, Status]
Timeouts = Mapping[Revision, int]  # milliseconds; where a revision is missing, what the gateway takes by itself counts

_NONE: Final[Timeouts] = {}


def traffic(state: State, statuses: Statuses, timeouts: Timeouts = _NONE) -> tuple[ModelTraffic, ...]:
    """The traffic of all models, by name."""
    return tuple(model_traffic(state.models[name], statuses, timeouts) for name in sorted(state.models))


def model_traffic(model: ModelState, statuses: Statuses, timeouts: Timeouts = _NONE) -> ModelTraffic:
    """The ready revisions of one model and the split that can be carried now."""
    known = {n: statuses.get(Revision(model.model, n)) for n in sorted(model.live() | set(model.split))}
    usable = {n: s for n, s in known.items() if s is not None and s.ports is not None}
    ready = {n for n, s in usable.items() if s.state == "ready"}
    answering = (ready & set(model.split)) or (set(usable) & set(model.split))
    backends = tuple(_backend(n, s) for n, s in usable.items() if n in ready | answering)
    found = ModelTraffic(model.model, backends, carried(model.split, answering))
    routed = (Revision(model.model, b.number) for b in backends)
    said = [timeouts.get(revision, found.timeout_ms) for revision in routed]
    return replace(found, timeout_ms=max(said, default=found.timeout_ms))


def carried(split: Split, answering: set[int]) -> Split:
    """`split` with the shares of those who cannot answer given to the largest of those who can."""
    kept = {n: w for n, w in split.items() if n in answering}
    if not kept:
        return {}
    largest = max(kept, key=lambda n: (kept[n], -n))
    kept[largest] += sum(split.values()) - sum(kept.values())
    return kept


def _backend(number: int, status: Status) -> Backend:
    assert status.ports is not None
    return Backend(number, Address("127.0.0.1", status.ports.http), Address("127.0.0.1", status.ports.grpc))
