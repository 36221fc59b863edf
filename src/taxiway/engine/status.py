"""What a keeper reports, in a file: the same words for people, for the controller and for its own successor."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

State = Literal["starting", "ready", "failed", "stopped"]


@dataclass(frozen=True, slots=True)
class Ports:
    """Loopback ports of one server."""

    http: int
    grpc: int
    metrics: int

    def each(self) -> tuple[int, int, int]:
        return (self.http, self.grpc, self.metrics)


@dataclass(frozen=True, slots=True)
class Status:
    """The state of one revision's server.

    `run` names this start of the server, unique on the machine: its processes carry it in their command
    lines and its shared memory in its name. `since` (Unix seconds) is when `state` was entered; `reason` is
    why the server last failed or was replaced; `restarts` counts replacements.
    """

    model: str
    number: int
    state: State
    run: str
    keeper_pid: int
    since: float
    pid: int | None = None
    stubs: tuple[int, ...] = ()
    ports: Ports | None = None
    reason: str | None = None
    restarts: int = 0

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(value: dict[str, Any]) -> Status:
        ports = value.get("ports")
        return Status(**{**value, "stubs": tuple(value["stubs"]), "ports": Ports(**ports) if ports else None})


def read(path: Path) -> Status | None:
    """The status in `path`; None when there is none that can be read."""
    try:
        return Status.from_json(json.loads(path.read_text()))
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def write(path: Path, status: Status) -> None:
    """Replace the status in `path`; a reader sees the old or the new one."""
    aside = path.with_name(path.name + ".new")
    aside.write_text(json.dumps(status.to_json()) + "\n")
    aside.replace(path)
