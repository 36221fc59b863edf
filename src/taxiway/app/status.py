"""What is running and who answers: the same facts for a person, a script and the status page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from taxiway.app.desired import Statuses, model_traffic
from taxiway.app.wire import Platform
from taxiway.catalog import store
from taxiway.core.errors import Refused
from taxiway.core.revision import Revision
from taxiway.release.state import ModelState
from taxiway.runtime import supervisord
from taxiway.runtime.program import ProcessInfo


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that is known at one moment."""

    platform: Platform
    running: bool
    processes: dict[str, ProcessInfo]
    statuses: Statuses
    models: list[ModelState]
    gateway_ready: bool
    gateway_current: bool


def collect(platform: Platform) -> Facts:
    """Look at everything; a part that does not answer is a fact, not an error."""
    state = platform.state()
    try:
        processes = supervisord.processes(platform.supervisor)
        running = True
    except Refused:
        processes, running = {}, False
    ready = running and platform.envoy.ready()
    return Facts(
        platform=platform,
        running=running,
        processes=processes,
        statuses=platform.statuses() if running else {},
        models=[state.models[name] for name in sorted(state.models)],
        gateway_ready=ready,
        gateway_current=ready and platform.in_force(state),
    )


def to_json(facts: Facts) -> dict[str, Any]:
    """The facts as `taxiway status --json` and `/api/status` give them."""
    platform = facts.platform
    return {
        "state_folder": str(platform.places.state),
        "running": facts.running,
        "healthy": healthy(facts),
        "gateway": {
            "url": platform.url,
            "grpc": platform.address,
            "ready": facts.gateway_ready,
            "in_force": facts.gateway_current,
        },
        "console": platform.console,
        "processes": [_process(p) for p in facts.processes.values()],
        "models": [_model(facts, m) for m in facts.models],
    }


def serves(facts: Facts) -> bool:
    """Whether the gateway carries exactly what was decided and every revision that answers is ready."""
    ready = {r: s for r, s in facts.statuses.items() if s.state == "ready"}
    return facts.gateway_current and all(model_traffic(m, ready).split == m.split for m in facts.models)


def healthy(facts: Facts) -> bool:
    """Whether it serves, and every process runs: those of revisions without traffic, too."""
    return serves(facts) and all(p.running for p in facts.processes.values())


def _process(process: ProcessInfo) -> dict[str, Any]:
    return {
        "name": process.name,
        "state": process.state,
        "pid": process.pid or None,
        "since": process.since or None,
        "detail": process.detail,
    }


def _model(facts: Facts, model: ModelState) -> dict[str, Any]:
    carried = model_traffic(model, facts.statuses).split if facts.gateway_ready else {}
    return {
        "model": model.model,
        "since": model.since or None,
        "rollback_to": model.back(),
        "revisions": [_revision(facts, model, n, carried.get(n, 0)) for n in sorted(model.revisions)],
    }


def _revision(facts: Facts, model: ModelState, number: int, carried: int) -> dict[str, Any]:
    revision = Revision(model.model, number)
    status = facts.statuses.get(revision) if number in model.live() else None
    return {
        "number": number,
        "digest": model.revisions[number],
        "traffic_percent": model.split.get(number, 0) / 100,
        "carried_percent": carried / 100,
        "state": status.state if status else ("starting" if facts.running and number in model.live() else "asleep"),
        "since": status.since if status else None,
        "restarts": status.restarts if status else 0,
        "reason": status.reason if status else None,
        "pid": status.pid if status else None,
        "stubs": list(status.stubs) if status else [],
    }


def lineage(platform: Platform, revision: Revision) -> dict[str, Any]:
    """Where a revision came from."""
    result: dict[str, Any] = store.load(platform.places.catalog, revision).evidence("lineage")
    return result
