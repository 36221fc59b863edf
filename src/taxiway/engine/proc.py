"""Processes by what the kernel says of them: who they are, what they listen on, when they end.

A process belongs to a run when an argument of its command line is, or ends with, a name that begins with
the run's unique prefix; so a recycled pid is never taken for one of ours.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  the kernel's own place for it
_LISTEN = "0A"


def members(prefix: str) -> list[int]:
    """Pids of all live processes of the run. Reads all of /proc: not for every tick."""
    return [pid for pid in _pids() if is_member(pid, prefix)]


def is_member(pid: int, prefix: str) -> bool:
    """Is `pid` alive and of the run? (A zombie has no command line.)"""
    try:
        arguments = (_PROC / str(pid) / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    name = prefix.encode()
    return any(argument.rpartition(b"=")[2].startswith(name) for argument in arguments)


def _pids() -> list[int]:
    return [int(entry) for entry in os.listdir(_PROC) if entry.isdigit()]  # noqa: PTH208  names only, cheaply


def listens(pid: int, ports: Iterable[int]) -> bool:
    """Does `pid` itself listen on all of `ports`? Somebody else's server may answer there."""
    wanted = {f"{port:04X}" for port in ports}
    listeners: dict[str, str] = {}  # socket inode -> port
    for table in ("tcp", "tcp6"):  # the gRPC listener is an IPv6 socket bound to an IPv4 address
        with suppress(OSError):
            listeners |= _listeners(_PROC / "net" / table, wanted)
    return {listeners[inode] for inode in _sockets(pid) if inode in listeners} == wanted


def _listeners(table: Path, wanted: set[str]) -> dict[str, str]:
    rows = (line.split() for line in table.read_text().splitlines()[1:])
    found = {row[9]: row[1].rpartition(":")[2] for row in rows if row[3] == _LISTEN}
    return {inode: port for inode, port in found.items() if port in wanted}


def _sockets(pid: int) -> list[str]:
    found = []
    folder = _PROC / str(pid) / "fd"
    with suppress(OSError):
        for entry in os.listdir(folder):  # noqa: PTH208
            with suppress(OSError):
                target = os.readlink(folder / entry)  # noqa: PTH115  not a path: socket:[123]
                if target.startswith("socket:["):
                    found.append(target[8:-1])
    return found


class Watched:
    """Waits for the first of some processes to end, or for a byte in `wake`, without asking again and again.

    The processes need not be children. Use as a context.
    """

    def __init__(self, pids: Sequence[int], wake: int | None) -> None:
        self._poll = select.poll()
        if wake is not None:
            self._poll.register(wake, select.POLLIN)
        self._pids: dict[int, int] = {}
        self._gone: list[int] = []
        for pid in pids:
            try:
                descriptor = os.pidfd_open(pid)
            except ProcessLookupError:
                self._gone.append(pid)
            else:
                self._pids[descriptor] = pid
                self._poll.register(descriptor, select.POLLIN)

    def ended(self, timeout_s: float) -> list[int]:
        """Pids that have ended, after at most `timeout_s`; empty when woken or when the time is over."""
        if self._gone:
            return self._gone
        return [self._pids[fd] for fd, _ in self._poll.poll(timeout_s * 1000) if fd in self._pids]

    def all_ended(self, timeout_s: float) -> None:
        """Return when every one of them has ended, or after `timeout_s`."""
        deadline = time.monotonic() + timeout_s
        for descriptor in self._pids:
            select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))

    def __enter__(self) -> Watched:
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in self._pids:
            os.close(descriptor)


def wait(pid: int, timeout_s: float) -> None:
    """Return when `pid` has ended, or after `timeout_s`."""
    with suppress(ProcessLookupError):
        descriptor = os.pidfd_open(pid)
        try:
            select.select([descriptor], [], [], timeout_s)
        finally:
            os.close(descriptor)


def kill_all(prefix: str, leader: int | None) -> None:
    """Kill the group that `leader` began and every process of the run; return when nothing is left.

    Stubs ignore SIGTERM and can outlive their server, and a server may be starting a stub right now: hence
    kill, wait, look again, until there is nothing to see (or five seconds have passed: the kernel may hold a
    process that waits for a disk). A process that ends loses its command line first and its ports last, so its
    end is waited for by descriptor.
    """
    deadline = time.monotonic() + 5
    while (left := members(prefix)) and time.monotonic() < deadline:
        with Watched(left, None) as dying:
            if leader in left:
                with suppress(OSError):
                    os.killpg(leader, signal.SIGKILL)
            for pid in left:
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            dying.all_ended(deadline - time.monotonic())


def remove_shared_memory(prefix: str) -> None:
    """Remove the segments whose names begin with `prefix`."""
    for segment in _SHARED_MEMORY.glob(f"{prefix}*"):
        segment.unlink(missing_ok=True)
