"""One running server: start it, find it again, see whether it can serve, end it."""

from __future__ import annotations

import os
import re
import secrets
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from taxiway.core.errors import Refused
from taxiway.engine import client, proc
from taxiway.engine.cause import cause
from taxiway.engine.command import command, shared_memory_prefix
from taxiway.engine.home import EngineHome
from taxiway.engine.spec import EngineSpec
from taxiway.engine.status import Ports, Status

_LOG_LIMIT: Final = 20_000_000  # bytes
_TAIL: Final = 1_000_000  # bytes
_RUN: Final = re.compile(r"tw[0-9a-f]{12}\Z")


@dataclass(frozen=True, slots=True)
class Server:
    """`child` is None for a server that an earlier keeper started; `written` is its log's size at the start."""

    run: str
    pid: int
    ports: Ports
    child: subprocess.Popen[bytes] | None
    written: int

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.ports.http}"

    @property
    def prefix(self) -> str:
        return shared_memory_prefix(self.run)


def new_run() -> str:
    """A name for one start of a server that no other has."""
    return f"tw{secrets.token_hex(6)}"


def start(engine: EngineHome, spec: EngineSpec, ports: Ports, run: str) -> Server:
    """Start a server in a session of its own: what ends the keeper does not end it. Raises `Refused`."""
    what = command(engine, spec, ports, run)
    _bound(spec.log_file)
    with spec.log_file.open("ab") as log:
        written = log.tell()
        try:
            child = subprocess.Popen(
                what.argv,
                env=dict(what.env),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                cwd=spec.status_file.parent,
            )
        except OSError as error:
            raise Refused(f"{what.argv[0]} cannot be started: {error}. Run `taxiway engine install`.") from None
    return Server(run, child.pid, ports, child, written)


def _bound(log_file: Path) -> None:
    if log_file.exists() and log_file.stat().st_size > _LOG_LIMIT:
        log_file.replace(log_file.with_name(log_file.name + ".1"))


def find(status: Status, log_file: Path) -> Server | None:
    """The server that `status` speaks of, if it still runs with every stub it had."""
    if status.ports is None or not _RUN.match(status.run):
        return None
    prefix = shared_memory_prefix(status.run)
    # A keeper that ended while it was starting a server may not have noted the pid: it leads its session.
    candidates = [status.pid] if status.pid else [pid for pid in proc.members(prefix) if _leads(pid)]
    if len(candidates) != 1 or not all(proc.is_member(pid, prefix) for pid in (candidates[0], *status.stubs)):
        return None
    return Server(status.run, candidates[0], status.ports, None, log_file.stat().st_size if log_file.exists() else 0)


def lives(status: Status) -> bool:
    """Does the server that `status` speaks of still run? (A status outlives a keeper that was killed.)"""
    return status.pid is not None and proc.is_member(status.pid, shared_memory_prefix(status.run))


def _leads(pid: int) -> bool:
    try:
        return os.getsid(pid) == pid
    except ProcessLookupError:
        return False


def stubs(server: Server) -> tuple[int, ...]:
    """Pids of the processes that run the model."""
    return tuple(pid for pid in proc.members(server.prefix) if pid != server.pid)


def serves(server: Server, spec: EngineSpec) -> bool:
    """Does the server itself, not another one on its port, say that the model is ready?"""
    return client.model_ready(server.address, spec.model, version=spec.number) and proc.listens(
        server.pid, server.ports.each()
    )


def epitaph(server: Server, log_file: Path) -> str:
    """Why the server ended, in one sentence."""
    code = None if server.child is None else server.child.poll()
    if code is not None and code < 0:
        return f"tritonserver was ended by {signal.Signals(-code).name}"
    return last_words(server, log_file) or (
        "tritonserver ended" + (f" with code {code}" if code is not None else "") + f"; its log is {log_file}"
    )


def last_words(server: Server, log_file: Path) -> str | None:
    """What the server has written about a failure since it was started; None when nothing."""
    with log_file.open("rb") as log:
        log.seek(max(server.written, log.seek(0, os.SEEK_END) - _TAIL))
        return cause(log.read(_TAIL).decode("utf-8", "replace"))


def end(server: Server, grace_s: float) -> None:
    """End the server and all it started: politely for `grace_s`, then by force. Nothing is left behind."""
    if grace_s > 0 and proc.is_member(server.pid, server.prefix):
        os.kill(server.pid, signal.SIGTERM)
        proc.wait(server.pid, grace_s)
    clear(server.run, server.pid)
    if server.child is not None:
        server.child.wait()


def clear(run: str, pid: int | None) -> None:
    """Remove whatever a run has left: processes, then shared memory."""
    if not _RUN.match(run):  # a status file that somebody wrote by hand must not name other people's processes
        return
    prefix = shared_memory_prefix(run)
    proc.kill_all(prefix, pid)
    proc.remove_shared_memory(prefix)
