"""Start and stop a platform as a whole."""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from taxiway.app import issuers, programs, status
from taxiway.app import settings as configuration
from taxiway.app.places import Places
from taxiway.app.wire import Platform, supervisor
from taxiway.core.errors import Refused
from taxiway.core.revision import Revision
from taxiway.engine import keeper
from taxiway.engine import status as engine_status
from taxiway.engine.home import default_home, locate
from taxiway.engine.status import Status
from taxiway.gateway import tokens
from taxiway.gateway.publish import write_offline
from taxiway.gateway.render import bootstrap
from taxiway.release.state import replay
from taxiway.runtime import supervisord

Progress = Callable[[str], None]

_LOST_S: Final = 8.0
_CALM_S: Final = 4.0


def up(state: Path, flags: Mapping[str, Any], environment: Mapping[str, str], progress: Progress) -> Platform:
    """Start the platform in `state`, or find it running; returns when it serves. Raises `Refused`, `Usage`."""
    places = Places(state)
    places.make()
    with _starting(places, progress):
        settings = configuration.merge(configuration.read(places.settings), environment, flags)
        platform = Platform(places, settings)
        if supervisord.is_up(platform.supervisor):
            _require_same(platform)
            progress("already running")
        else:
            _start(platform, progress)
        platform = Platform.at(state)
    _wait(platform, progress)
    return platform


def down(places: Places, progress: Progress) -> bool:
    """Stop everything of the platform in `places`, whatever state its files are in; whether anything was running."""
    if not places.state.exists():
        return False
    engines = [engine_status.read(file) for file in places.engines.glob("*.json")]
    was = supervisord.is_up(supervisor(places)) or bool(supervisord.survivors(places.state))
    # An engine outlives the keeper that was killed.
    was = was or any(e is None or e.pid is not None for e in engines)
    if was:
        progress("stopping gateway, controller and engines")
        _end(places, progress)
    places.gateway_admin.unlink(missing_ok=True)
    if places.sockets != places.run:
        shutil.rmtree(places.sockets, ignore_errors=True)
    return was


def _end(places: Places, progress: Progress) -> None:
    supervisord.stop(supervisor(places), progress)
    for file in places.engines.glob("*.json"):
        keeper.sweep(file)  # shared memory of an engine whose keeper did not live to clear it


def _start(platform: Platform, progress: Progress) -> None:
    locate(default_home())
    left = supervisord.survivors(platform.places.state)
    if left:
        progress(f"ending {len(left)} processes that an earlier run left behind")
        _end(platform.places, progress)
    settings = configuration.with_free_ports(platform.settings)
    for name, asked, got in (
        ("gateway", platform.settings.port, settings.port),
        ("console", platform.settings.console_port, settings.console_port),
    ):
        if asked != got:
            progress(f"port {asked} is in use; the {name} takes {got}")
    platform.settings = settings
    tokens.make_keys(platform.places.keys)
    _make_api_token(platform.places.api_token)
    issuers.refresh(platform)
    state = replay(platform.journal.read())
    configuration.write(platform.places.settings, settings)
    _write_gateway(platform)
    progress("starting gateway, controller and engines")
    supervisord.start(platform.supervisor, [*programs.basic(platform), *programs.engines(platform, state)])


def _make_api_token(path: Path) -> None:
    if path.exists():
        return
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as f:
        f.write(secrets.token_urlsafe(32) + "\n")
    aside.replace(path)


def _write_gateway(platform: Platform) -> None:
    places = platform.places
    text = bootstrap(places.gateway, places.gateway_admin)
    aside = places.gateway / ".bootstrap.json"
    aside.write_text(text)
    aside.replace(places.gateway / "bootstrap.json")
    write_offline(platform.desired(platform.state()), places.gateway)


def _require_same(platform: Platform) -> None:
    if configuration.read(platform.places.settings) != platform.settings:
        raise Refused("the platform is running with other settings; stop it first: taxiway down")


def _wait(platform: Platform, progress: Progress, patience_s: float = 120.0) -> None:
    if not supervisord.until(platform.envoy.ready, patience_s):
        raise Refused("the gateway did not become ready", f"its log: {platform.places.log / 'gateway.log'}")
    answering = [Revision(m.model, n) for m in platform.state().models.values() for n in m.split]
    if answering:
        progress("waiting for the revisions that answer")
    end = time.monotonic() + patience_s
    while not status.serves(status.collect(platform)):
        found = platform.statuses()
        lagging = {r: found.get(r) for r in answering if r not in found or found[r].state != "ready"}
        if time.monotonic() > end or _lost(lagging.values(), now=time.time()):
            reasons = [f"{r}: {s.reason or s.state if s else 'not started'}" for r, s in lagging.items()]
            raise Refused("the platform runs, but not every revision is ready", *reasons, "see: taxiway status")
        time.sleep(0.1)
    if not supervisord.until(lambda: status.healthy(status.collect(platform)), _CALM_S, every_s=0.1):
        progress("it serves, but not all of it is well; see: taxiway status")


def _lost(lagging: Collection[Status | None], *, now: float) -> bool:
    """Whether waiting is of no use: each of them has failed and was not even started again for a while."""
    return bool(lagging) and all(s is not None and s.state == "failed" and now - s.since > _LOST_S for s in lagging)


@contextmanager
def _starting(places: Places, progress: Progress) -> Iterator[None]:
    with (places.run / "up.lock").open("a") as f:
        try:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress("waiting for another start that is going on")
            fcntl.flock(f, fcntl.LOCK_EX)
        yield
