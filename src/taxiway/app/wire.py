"""One platform, wired: its places, settings, supervisor, journal; and the words to change it one at a time."""

from __future__ import annotations

import contextlib
import fcntl
import getpass
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from taxiway.app import settings as configuration
from taxiway.app.desired import Statuses, traffic
from taxiway.app.places import Places
from taxiway.app.settings import Settings
from taxiway.catalog import store
from taxiway.core.errors import Refused
from taxiway.core.revision import Revision
from taxiway.core.split import Split
from taxiway.engine import status as engine_status
from taxiway.gateway import tokens
from taxiway.gateway.desired import Address, Desired, Issuer, ModelTraffic
from taxiway.gateway.envoy import Admin
from taxiway.gateway.publish import Published, in_force, publish
from taxiway.release.entries import Entry
from taxiway.release.ports import Journal, Overtaken
from taxiway.release.sql import SqlJournal
from taxiway.release.state import State, replay
from taxiway.runtime.supervisord import Supervisor

OPERATOR = "taxiway/operator"
_SMALLEST_DATABASE: Final = 512  # bytes; SQLite takes anything smaller for a new one


@dataclass(slots=True)
class Platform:
    """A platform on this machine. Cheap to make; the journal is opened when first needed."""

    places: Places
    settings: Settings
    _journal: Journal | None = field(default=None, repr=False)

    @staticmethod
    def at(state: Path) -> Platform:
        """The platform in the folder `state` with the settings it last ran with."""
        places = Places(state)
        return Platform(places, configuration.read(places.settings))

    @property
    def supervisor(self) -> Supervisor:
        return supervisor(self.places)

    @property
    def journal(self) -> Journal:
        if self._journal is None:
            if not self.settings.database:
                _require_journal(self.places)
            self._journal = SqlJournal(self.settings.database or f"sqlite:///{self.places.journal}")
        return self._journal

    @property
    def url(self) -> str:
        return f"http://{_reachable(self.settings.host)}:{self.settings.port}"

    @property
    def address(self) -> str:
        return f"{_reachable(self.settings.host)}:{self.settings.port}"

    @property
    def console(self) -> str:
        return f"http://127.0.0.1:{self.settings.console_port}/"

    def state(self) -> State:
        """Everything that was decided so far; raises `Refused` when there is no platform here."""
        if not self.places.settings.exists() and not self.places.journal.exists() and not self.settings.database:
            raise Refused(f"there is no platform in {self.places.state}; start one: taxiway up", code="not-running")
        return replay(self.journal.read())

    def record(self, action: str, model: str, detail: Mapping[str, Any], reason: str) -> Entry:
        """Append to the journal as this user.

        Traffic changes hold `changing()`, so whoever slips in between only ever wakes or admits a revision;
        the entry is then as true one number later.
        """
        for _ in range(20):
            with contextlib.suppress(Overtaken):
                last = self.state().last
                return self.journal.append(
                    last, at=time.time(), actor=actor(), action=action, model=model, detail=detail, reason=reason
                )
        raise Overtaken

    def statuses(self) -> Statuses:
        """What the engines' keepers last reported."""
        found = (engine_status.read(p) for p in self.places.engines.glob("*.json"))
        return {Revision(s.model, s.number): s for s in found if s is not None}

    def desired(self, state: State) -> Desired:
        """The traffic that the gateway shall carry now."""
        return Desired(
            listen=Address(self.settings.host, self.settings.port),
            callers=self._callers(),
            operators=Issuer("operators", OPERATOR, self.settings.audience, tokens.jwks(self.places.keys)),
            models=self._traffic(state),
            access_log=str(self.places.access_log),
        )

    def _traffic(self, state: State) -> tuple[ModelTraffic, ...]:
        statuses = self.statuses()
        said = {r: timeout for r in statuses if (timeout := store.timeout_ms(self.places.catalog, r)) is not None}
        return traffic(state, statuses, said)

    @property
    def envoy(self) -> Admin:
        """The gateway's admin socket."""
        return Admin(self.places.gateway_admin)

    def publish(self, state: State, *, shrink: bool) -> Published:
        """Have the gateway carry the traffic of `state`; raises `NotAccepted`.

        With `shrink`, clusters that no route needs any more and no request uses are removed as well.
        """
        places = self.places
        log = places.log / "gateway.log"
        return publish(self.desired(state), places.gateway, places.gateway_admin, log=log, shrink=shrink)

    def in_force(self, state: State) -> bool:
        """Whether the gateway has acknowledged the traffic of `state`."""
        return in_force(self.desired(state), self.places.gateway, self.envoy)

    def token(self, user: str, app: str, ttl_s: int, *, now: int) -> str:
        """A caller's token, signed by the platform's own key."""
        if self.settings.jwks:
            raise Refused(
                f"this platform accepts the tokens of {self.settings.issuer}, not its own; get one there",
                "or start it without --jwks",
            )
        return tokens.issue(
            self.places.keys,
            issuer=self.settings.issuer,
            audience=self.settings.audience,
            user=user,
            app=app,
            ttl_s=ttl_s,
            now=now,
        )

    def operator_token(self, *, now: int) -> str:
        """A short-lived token that may pin a revision; for the platform's own proofs."""
        return tokens.issue(
            self.places.keys,
            issuer=OPERATOR,
            audience=self.settings.audience,
            user="taxiway",
            app="taxiway",
            ttl_s=300,
            now=now,
            role="operator",
        )

    def api_token(self) -> str:
        """The secret that changes through the control API need."""
        return self.places.api_token.read_text().strip()

    @contextmanager
    def changing(self, *, patience_s: float = 10.0) -> Iterator[None]:
        """Only one process changes traffic at a time; raises `Refused` when another one does for too long."""
        end = time.monotonic() + patience_s
        with (self.places.run / "change.lock").open("a") as f:
            while True:
                try:
                    fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > end:
                        raise Refused("another change of traffic is still going on; try again", code="busy") from None
                    time.sleep(0.01)
            yield

    def _callers(self) -> Issuer:
        own = not self.settings.jwks
        keys = tokens.jwks(self.places.keys) if own else self.issuer_copy.read_text()
        return Issuer("callers", self.settings.issuer, self.settings.audience, keys)

    @property
    def issuer_copy(self) -> Path:
        """The last good copy of an external issuer's keys: the gateway never waits for the issuer."""
        return self.places.keys / "callers.jwks.json"


def _require_journal(places: Places) -> None:
    """A journal that was lost must not be begun anew in silence; the settings are written after the first one."""
    lost = not places.journal.exists() or places.journal.stat().st_size < _SMALLEST_DATABASE
    if places.settings.exists() and lost:
        raise Refused(
            f"the journal {places.journal} is gone or cut short; restore it (with its -wal file, if there is one), "
            f"or move {places.state} away to begin anew",
            code="journal-lost",
        )


def supervisor(places: Places) -> Supervisor:
    """The supervisor of the platform in `places`."""
    return Supervisor(places.state, places.run, places.supervisor_socket, places.log / "supervisord.log")


def actor() -> str:
    """Who acts, for the journal: the user of this process."""
    try:
        return os.environ.get("SUDO_USER") or getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


def split_detail(split: Split, before: Split) -> dict[str, dict[str, int]]:
    """A split and the one it replaces, as the journal keeps them."""
    return {"split": {str(n): w for n, w in split.items()}, "before": {str(n): w for n, w in before.items()}}


def _reachable(host: str) -> str:
    return "127.0.0.1" if host in ("0.0.0.0", "::") else host  # noqa: S104 - compared, not bound


def to_json(value: object) -> str:
    """The one JSON form of every `--json` answer."""
    return json.dumps(value, indent=2, sort_keys=True)
