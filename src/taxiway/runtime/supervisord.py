"""Processes under supervisord: started, restarted when they die, stopped as one.

Each program has a file of its own in `conf.d`; adding or removing a program is writing or removing its file and
asking supervisord to look again. All of them carry the marker `TAXIWAY_PLATFORM=<state folder>` in their
environment, so that whatever survives a killed supervisor can be told from everything else on the machine.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import sys
import time
import xmlrpc.client
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psutil

from taxiway.core.errors import Refused
from taxiway.runtime.program import ProcessInfo, Program

MARKER: Final = "TAXIWAY_PLATFORM"
_LOG_BYTES: Final = "20MB"


@dataclass(frozen=True, slots=True)
class Supervisor:
    """One supervisord and its folder: `folder` holds configuration and pid file, `socket` its control socket."""

    state: Path
    folder: Path
    socket: Path
    log: Path

    @property
    def conf(self) -> Path:
        return self.folder / "supervisord.conf"

    @property
    def programs(self) -> Path:
        return self.folder / "conf.d"


def render(supervisor: Supervisor) -> str:
    """The main configuration file. The list of includes is split at spaces, so it is relative to this file."""
    return f"""[supervisord]
logfile={_value(supervisor.log)}
logfile_maxbytes={_LOG_BYTES}
logfile_backups=1
pidfile={_value(supervisor.folder / "supervisord.pid")}
identifier=taxiway
childlogdir={_value(supervisor.folder)}

[unix_http_server]
file={_value(supervisor.socket)}
chmod=0600

[rpcinterface:supervisor]
supervisor.rpcinterface_factory = supervisor.rpcinterface:make_main_rpcinterface

[include]
files = {supervisor.programs.name}/*.conf
"""


def render_program(program: Program) -> str:
    """The file of one program. A program that ends by itself is started again, whatever its exit code."""
    return f"""[program:{program.name}]
command={_value(shlex.join(program.command))}
autorestart=true
startsecs=1
startretries=3
stopwaitsecs={program.stop_s}
killasgroup=true
redirect_stderr=true
stdout_logfile={_value(program.log)}
stdout_logfile_maxbytes={_LOG_BYTES}
stdout_logfile_backups=1
"""


def _value(text: str | Path) -> str:
    """`text` for supervisord's file format; refuses what the format cannot hold.

    A % starts an expansion, and in some values supervisord expands twice, so none can be escaped everywhere.
    """
    plain = str(text)
    if any(c in plain for c in "\n\r%") or " ;" in plain:
        raise Refused(f"supervisord cannot use {plain!r} (it holds '%', ' ;' or a line break); choose another --state")
    return plain


def start(supervisor: Supervisor, programs: Iterable[Program], *, deadline_s: float = 15.0) -> None:
    """Start supervisord with exactly these programs and return when it answers."""
    supervisor.programs.mkdir(parents=True, exist_ok=True)
    wanted = {p.name: render_program(p) for p in programs}
    for file in supervisor.programs.glob("*.conf"):
        if file.stem not in wanted:
            file.unlink()
    for name, text in wanted.items():
        _replace(supervisor.programs / f"{name}.conf", text)
    _replace(supervisor.conf, render(supervisor))
    supervisor.socket.unlink(missing_ok=True)
    done = subprocess.run(
        [sys.executable, "-m", "supervisor.supervisord", "-c", str(supervisor.conf)],
        env={**os.environ, MARKER: str(supervisor.state)},
        cwd=supervisor.state,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0 or not until(lambda: is_up(supervisor), deadline_s):
        said = (done.stderr or done.stdout).strip().splitlines()[-3:]
        raise Refused(f"supervisord did not start: {' '.join(said) or 'no answer'}", f"its log: {supervisor.log}")


def is_up(supervisor: Supervisor) -> bool:
    """Whether supervisord answers."""
    try:
        with _calls(supervisor) as calls:
            return bool(calls.getState()["statecode"] == 1)
    except Refused:
        return False


def processes(supervisor: Supervisor) -> dict[str, ProcessInfo]:
    """All programs by name; raises `Refused` when supervisord does not answer."""
    with _calls(supervisor) as calls:
        return {
            p["name"]: ProcessInfo(p["name"], p["statename"], p["pid"], float(p["start"]), p["spawnerr"])
            for p in calls.getAllProcessInfo()
        }


def sync(supervisor: Supervisor, programs: Iterable[Program], prefix: str) -> list[str]:
    """Make the programs whose names begin with `prefix` exactly these; returns what was done, one line each.

    A changed command restarts its program. Removing waits until the process has ended.
    """
    wanted = {p.name: render_program(p) for p in programs}
    present = {f.stem: f.read_text() for f in supervisor.programs.glob(f"{prefix}*.conf")}
    for name, text in wanted.items():
        if present.get(name) != text:
            _replace(supervisor.programs / f"{name}.conf", text)
    for name in present.keys() - wanted.keys():
        (supervisor.programs / f"{name}.conf").unlink()
    done = []
    with _calls(supervisor) as calls:
        added, changed, removed = calls.reloadConfig()[0]
        for name in [*removed, *changed]:
            with contextlib.suppress(xmlrpc.client.Fault):
                calls.stopProcessGroup(name)
            calls.removeProcessGroup(name)
            done.append(f"stopped {name}")
        for name in [*added, *changed]:
            calls.addProcessGroup(name)
            done.append(f"started {name}")
    return done


def revive(supervisor: Supervisor, *, now: float, after_s: float = 10.0) -> list[str]:
    """Start programs again that supervisord has given up on, `after_s` seconds after they ended."""
    revived = []
    with _calls(supervisor) as calls:
        for p in calls.getAllProcessInfo():
            if p["statename"] in ("FATAL", "EXITED") and now - p["stop"] >= after_s:
                with contextlib.suppress(xmlrpc.client.Fault):
                    calls.startProcess(p["name"], False)
                    revived.append(p["name"])
    return revived


def stop(supervisor: Supervisor, progress: Callable[[str], None], *, deadline_s: float = 40.0) -> None:
    """Stop everything: through supervisord if it answers, then whatever still carries the marker."""
    if is_up(supervisor):
        with _calls(supervisor) as calls:
            # All at once: shutdown() alone would stop one after the other, and an engine waits for its callers.
            calls.stopAllProcesses(False)
            calls.shutdown()
        until(lambda: not survivors(supervisor.state), deadline_s)
    left = survivors(supervisor.state)
    for signal in ("terminate", "kill"):
        for process in left:
            progress(f"{signal} {process.pid}")
            with contextlib.suppress(psutil.Error):
                getattr(process, signal)()
        psutil.wait_procs(left, timeout=10)
        left = survivors(supervisor.state)
    supervisor.socket.unlink(missing_ok=True)
    (supervisor.folder / "supervisord.pid").unlink(missing_ok=True)


def survivors(state: Path) -> list[psutil.Process]:
    """The living processes that carry the marker of this platform, the calling one and its parents excepted."""
    mine = {os.getpid(), *(p.pid for p in psutil.Process().parents())}
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            marked = process.environ().get(MARKER) == str(state)
            if marked and process.pid not in mine and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def until(condition: Callable[[], bool], deadline_s: float, *, every_s: float = 0.05) -> bool:
    """Poll `condition` until it holds or `deadline_s` is over; returns whether it held."""
    end = time.monotonic() + deadline_s
    while not condition():
        if time.monotonic() >= end:
            return False
        time.sleep(every_s)
    return True


def _replace(path: Path, text: str) -> None:
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    aside.write_text(text)
    aside.replace(path)


@contextlib.contextmanager
def _calls(supervisor: Supervisor) -> Iterator[Any]:
    from supervisor.xmlrpc import SupervisorTransport  # slow to import; needed only to talk

    transport = SupervisorTransport(None, None, serverurl=f"unix://{supervisor.socket}")
    try:
        with xmlrpc.client.ServerProxy("http://127.0.0.1", transport=transport, allow_none=True) as server:
            yield server.supervisor
    except (OSError, xmlrpc.client.ProtocolError, xmlrpc.client.ResponseError) as error:
        raise Refused(
            f"the platform in {supervisor.state} is not running ({error}); start it: taxiway up", code="not-running"
        ) from error
    except xmlrpc.client.Fault as fault:
        raise Refused(f"supervisord: {fault.faultString}") from fault
    finally:
        transport.close()
