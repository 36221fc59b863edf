"""One tick of the controller: look at everything, do what is missing.

Level-triggered: a tick remembers nothing, so a crash anywhere is repaired by the next one. The order is that of
safety: engines that shall run are started, then the gateway is told, and an engine that shall not run any longer
is stopped only once the gateway has no cluster for it.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Final

from taxiway.app import programs
from taxiway.app.wire import Platform
from taxiway.core.errors import Refused, TaxiwayError
from taxiway.core.revision import Revision
from taxiway.engine import keeper
from taxiway.gateway.publish import published_revisions
from taxiway.release.state import State
from taxiway.runtime import supervisord
from taxiway.runtime.program import Program

_ACCESS_LOG_BYTES: Final = 64 * 1024 * 1024

Log = Callable[[str], None]


def tick(platform: Platform, log: Log) -> None:
    """Bring processes and gateway to what the journal says; what fails is logged and tried again next time."""
    state = platform.state()
    steps: tuple[Callable[[], None], ...] = (
        lambda: _engines(platform, state, log),
        lambda: _gateway(platform, log),
        lambda: _rotate(platform),
    )
    for step in steps:
        try:
            step()
        except (TaxiwayError, OSError) as error:
            log(str(error))


def _engines(platform: Platform, state: State, log: Log) -> None:
    wanted = programs.engines(platform, state)
    routed = _still_routed(platform, state, wanted)
    for line in supervisord.sync(platform.supervisor, [*wanted, *routed], programs.ENGINE):
        log(line)
    for name in supervisord.revive(platform.supervisor, now=time.time()):
        log(f"started {name} again")
    names = {p.name for p in wanted}
    for revision in platform.statuses():
        if programs.program_name(revision) not in names:
            _forget(platform, revision)


def _still_routed(platform: Platform, state: State, wanted: list[Program]) -> list[Program]:
    names = {p.name for p in wanted}
    routed = (Revision(model, number) for model, number in published_revisions(platform.places.gateway))
    return [
        programs.engine(platform, r, state.models[r.model].revisions[r.number])
        for r in routed
        if programs.program_name(r) not in names and r.number in state.models[r.model].revisions
    ]


def _forget(platform: Platform, revision: Revision) -> None:
    # A keeper that is still at work has the file locked: then the next tick tries again.
    with contextlib.suppress(Refused):
        file = platform.places.engine_status(revision)
        keeper.sweep(file)
        file.unlink(missing_ok=True)


def _gateway(platform: Platform, log: Log) -> None:
    with platform.changing(patience_s=1.0):
        done = platform.publish(platform.state(), shrink=True)
    if done.changed:
        log(f"gateway: {', '.join(done.changed)} in force after {done.seconds * 1000:.0f} ms")


def _rotate(platform: Platform) -> None:
    path = platform.places.access_log
    with contextlib.suppress(FileNotFoundError):
        if path.stat().st_size > _ACCESS_LOG_BYTES:
            path.replace(path.with_suffix(".log.1"))
            platform.envoy.reopen_logs()
