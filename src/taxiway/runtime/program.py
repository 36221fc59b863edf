"""A process that shall always run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Program:
    """A command kept alive under `name`; it gets `stop_s` seconds between SIGTERM and SIGKILL."""

    name: str
    command: tuple[str, ...]
    log: Path
    stop_s: int = 10


@dataclass(frozen=True, slots=True)
class ProcessInfo:
    """How a program is: supervisord's state name (RUNNING, STARTING, BACKOFF, FATAL, EXITED, STOPPED …).

    `since` is in seconds since 1970 (0 when it never started); `detail` is the supervisor's own remark.
    """

    name: str
    state: str
    pid: int
    since: float
    detail: str

    @property
    def running(self) -> bool:
        return self.state == "RUNNING"
