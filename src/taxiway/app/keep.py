"""Keep one revision's engine: prove its bytes, then run it for as long as the platform wants it."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from taxiway.app.wire import Platform
from taxiway.catalog import store
from taxiway.core.errors import Altered, Refused
from taxiway.core.revision import Revision
from taxiway.engine import status as engine_status
from taxiway.engine.home import default_home
from taxiway.engine.keeper import keep
from taxiway.engine.spec import EngineSpec
from taxiway.engine.status import Status

UNPROVED: Final = 1


def keep_revision(platform: Platform, revision: Revision, *, now: float, pid: int) -> int:
    """Run the engine of `revision` until told to stop; returns the exit code of the process.

    Bytes that differ from what was proved and admitted are reported as the engine's failure and never loaded.
    """
    status_file = platform.places.engine_status(revision)
    try:
        spec = _spec(platform, revision)
    except Refused as error:
        before = engine_status.read(status_file)
        fresh = before or Status(revision.model, revision.number, "failed", "", pid, now)
        reason = "; ".join(error.reasons)
        engine_status.write(status_file, replace(fresh, state="failed", since=now, reason=reason, keeper_pid=pid))
        print(reason, flush=True)
        return UNPROVED
    return keep(spec, before_start=lambda: _prove(platform, revision), log=lambda line: print(line, flush=True))


def _spec(platform: Platform, revision: Revision) -> EngineSpec:
    stored = store.load(platform.places.catalog, revision)
    _prove(platform, revision)
    return EngineSpec(
        model=revision.model,
        number=revision.number,
        repository=stored.repository,
        home=default_home(),
        status_file=platform.places.engine_status(revision),
        log_file=platform.places.log / f"triton-{revision}.log",
        canary=stored.golden_file,
    )


def _prove(platform: Platform, revision: Revision) -> None:
    stored = store.load(platform.places.catalog, revision)
    admitted = platform.state().model(revision.model).revisions.get(revision.number)
    if admitted != stored.digest:
        raise Altered(f"{revision} was admitted as {admitted}, but the catalog now holds {stored.digest}")
    store.verify(stored)
