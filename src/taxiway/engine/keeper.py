"""Keeps one server for one revision, as a process of its own under a supervisor.

    start     a server on free loopback ports, in its own session
    bring up  until the model answers (and the golden sample is right), or the deadline, or its end
    watch     the server, its stubs and the golden sample; whatever is wrong, the whole server is replaced
    stop      on SIGTERM: the server is asked, then made, to end

A keeper that is killed leaves its server running; the next one takes it over from the status file without
touching it. What a keeper may not do: decide whether the revision should be served at all.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from taxiway.core.errors import Refused
from taxiway.core.sample import Golden
from taxiway.engine import backoff, canary, home, ports, proc, server, status, steps
from taxiway.engine.canary import Canary
from taxiway.engine.home import EngineHome
from taxiway.engine.server import Server
from taxiway.engine.signals import Stop, stop_signals
from taxiway.engine.spec import EngineSpec
from taxiway.engine.status import State, Status

_STARTING_S: Final = 0.05  # between two looks at a server that is coming up
_REPEAT_S: Final = 2.0  # between two looks at the status file
_PATIENCE: Final = 2  # wrong golden answers in a row while coming up
_GRACE_S: Final = 2.0  # beyond the server's own exit timeout


def keep(spec: EngineSpec, *, log: Callable[[str], None], before_start: Callable[[], None] | None = None) -> int:
    """Serve `spec` until SIGTERM or SIGINT; 0 then. For the main thread of a process.

    `before_start` is called before every start of the server; what it raises keeps the server from starting.

    Raises `Refused` (also in the status file) when nothing can be started: no engine, no repository, a golden
    sample that cannot be read, another keeper at work.
    """
    spec.status_file.parent.mkdir(parents=True, exist_ok=True)
    with _only_keeper(spec.status_file), stop_signals() as stop:
        before = status.read(spec.status_file)
        if before and (before.model, before.number) != (spec.model, spec.number):
            raise Refused(f"{spec.status_file} belongs to {before.model}@{before.number}, not to this revision")
        keeper = _Keeper(spec, stop, log, before, before_start)
        try:
            return keeper.run(before)
        except Refused as error:
            keeper.note("failed", reason=str(error))
            raise


def sweep(status_file: Path) -> None:
    """End whatever a keeper that is gone has left running; for the last step of taking a revision down.

    Raises `Refused` while a keeper is at work: stop that one.
    """
    with _only_keeper(status_file):
        left = status.read(status_file)
        if left:
            server.clear(left.run, left.pid)
            status.write(status_file, replace(left, state="stopped", since=time.time(), pid=None, stubs=()))


@contextmanager
def _only_keeper(status_file: Path) -> Iterator[None]:
    with status_file.with_name(status_file.name + ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refused(f"Another keeper is at work on {status_file}.") from None
        yield


class _Keeper:
    def __init__(
        self,
        spec: EngineSpec,
        stop: Stop,
        log: Callable[[str], None],
        before: Status | None,
        before_start: Callable[[], None] | None,
    ) -> None:
        self.spec = spec
        self.stop = stop
        self.log = log
        self.before_start = before_start
        self.engine: EngineHome | None = None
        self.failures = 0
        blank = Status(spec.model, spec.number, "starting", "", os.getpid(), time.time())
        self.status = replace(before or blank, keeper_pid=os.getpid())

    def note(self, state: State, **changes: object) -> None:
        """Report; `since` moves only when the state does."""
        since = self.status.since if state == self.status.state else time.time()
        self.status = replace(self.status, state=state, since=since, **changes)  # type: ignore[arg-type]
        status.write(self.spec.status_file, self.status)

    def _repeat(self) -> None:
        """Report again when the report was lost: without it no traffic comes."""
        if status.read(self.spec.status_file) != self.status:
            status.write(self.spec.status_file, self.status)

    def run(self, before: Status | None) -> int:
        golden = canary.load(self.spec.canary) if self.spec.canary else None
        current = self._adopted(before)
        while not self.stop.asked:
            if current is None:
                current = self._started()
            reason = self._bring_up(current, golden)
            was_ready = reason is None
            if was_ready:
                since = time.monotonic()
                reason = self._watch(current, golden)
                if time.monotonic() - since > backoff.STABLE_S:
                    self.failures = 0
            if reason is None:
                break
            self._replace(current, reason, was_ready)
            current = None
        self._end(current)
        return 0

    def _adopted(self, before: Status | None) -> Server | None:
        """The server that an earlier keeper left running; what is left of one that cannot go on is removed."""
        if before is None:
            return None
        found = server.find(before, self.spec.log_file) if before.state in ("starting", "ready") else None
        if found is None:
            server.clear(before.run, before.pid)
        else:
            self.log(f"took over tritonserver (pid {found.pid}), which was running")
            self.note(before.state, pid=found.pid)
        return found

    def _started(self) -> Server:
        if not self.spec.version.is_dir():
            raise Refused(
                f"There is no {self.spec.version}: the revision's files must be in place before its engine starts."
            )
        if self.before_start:
            self.before_start()
        wanted = steps.need(self.spec.version)
        if wanted is not None:
            steps.install(self.spec.home, wanted, progress=self.log)
        # Located once, and only when needed: an upgrade of the engine is no reason to stop what runs.
        self.engine = self.engine or home.locate(self.spec.home)
        run = server.new_run()
        free = ports.free(self.status.ports)
        # Noted first: whatever happens from here on, the next keeper can find what this one has started.
        self.note("starting", run=run, ports=free, pid=None, stubs=())
        started = server.start(self.engine, self.spec, free, run)
        self.note("starting", pid=started.pid)
        return started

    def _bring_up(self, current: Server, golden: Golden | None) -> str | None:
        """None when the server serves (or a stop was asked for); else why it does not."""
        deadline = time.monotonic() + self.spec.start_deadline_s
        wrong: list[str] = []
        with proc.Watched([current.pid], self.stop.fd) as watched:
            while not self.stop.asked and len(wrong) < _PATIENCE:
                if watched.ended(_STARTING_S):
                    return server.epitaph(current, self.spec.log_file)
                self.stop.calm()
                if server.serves(current, self.spec) and (stubs := server.stubs(current)):
                    # One taken over was asked when it came up; it serves, so it is only watched from here on.
                    reason = canary.ask(self.spec, golden, current.address) if golden and current.child else None
                    if reason is None:
                        self._ready(current, stubs)
                        return None
                    wrong.append(reason)
                if time.monotonic() > deadline:
                    return self._overdue(current)
        return wrong[-1] if wrong else None

    def _ready(self, current: Server, stubs: tuple[int, ...]) -> None:
        if self.status.state != "ready":
            self.log(f"ready on {current.address} (pid {current.pid})")
        self.note("ready", pid=current.pid, stubs=stubs)

    def _overdue(self, current: Server) -> str:
        words = server.last_words(current, self.spec.log_file) or f"its log, {self.spec.log_file}, does not say why"
        return f"not ready within {self.spec.start_deadline_s:g} s: {words}"

    def _watch(self, current: Server, golden: Golden | None) -> str | None:
        """Why the server must be replaced; None when a stop was asked for."""
        with ExitStack() as stack:
            watched = stack.enter_context(proc.Watched([current.pid, *self.status.stubs], self.stop.fd))
            asking = Canary(self.spec, golden, current.address, self.stop.wake) if golden else None
            if asking:
                stack.callback(asking.close)
            while not self.stop.asked:
                if ended := watched.ended(timeout_s=_REPEAT_S):
                    return self._ending(current, ended)
                self._repeat()
                if asking and asking.verdict:
                    return asking.verdict
                self.stop.calm()
        return None

    def _ending(self, current: Server, ended: list[int]) -> str:
        if current.pid in ended:
            return server.epitaph(current, self.spec.log_file)
        return f"a process that runs the model (pid {ended[0]}) ended"

    def _replace(self, current: Server, reason: str, was_ready: bool) -> None:
        server.end(current, grace_s=0)
        self.failures += 1
        delay = backoff.delay(self.failures, was_ready=was_ready)
        self.log(f"{reason}; starting again in {delay:g} s")
        self.note("failed", reason=reason, pid=None, stubs=(), restarts=self.status.restarts + 1)
        until = time.monotonic() + delay
        while not self.stop.asked and time.monotonic() < until:
            self.stop.wait(until - time.monotonic())

    def _end(self, current: Server | None) -> None:
        if current is not None:
            polite = self.status.state == "ready"
            server.end(current, self.spec.exit_timeout_s + _GRACE_S if polite else 0)
        self.note("stopped", pid=None, stubs=())
        self.log("stopped")
