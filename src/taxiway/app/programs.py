"""The programs of a platform: the gateway, the controller, and one engine per live revision."""

from __future__ import annotations

import os
import sys

from taxiway.app.wire import Platform
from taxiway.core.revision import Revision
from taxiway.gateway import envoy
from taxiway.release.state import State
from taxiway.runtime.program import Program

ENGINE = "engine-"


def basic(platform: Platform) -> list[Program]:
    """What runs whatever was shipped."""
    places = platform.places
    # Engines work on the same cores; on two of them a second gateway thread costs more than it gives.
    workers = max(1, len(os.sched_getaffinity(0)) // 2)
    gateway = envoy.command(places.gateway / "bootstrap.json", concurrency=workers)
    return [
        Program("gateway", tuple(gateway), places.log / "gateway.log"),
        Program("controller", _own("controller", str(places.state)), places.log / "controller.log"),
    ]


def engines(platform: Platform, state: State) -> list[Program]:
    """One keeper per live revision of every model."""
    return [
        engine(platform, Revision(model.model, number), model.revisions[number])
        for model in state.models.values()
        for number in sorted(model.live() & model.revisions.keys())
    ]


def engine(platform: Platform, revision: Revision, digest: str) -> Program:
    """The keeper of one revision's engine; it refuses any other bytes than those of `digest`."""
    return Program(
        program_name(revision),
        _own("engine", str(platform.places.state), str(revision), digest),
        platform.places.log / f"engine-{revision}.log",
        stop_s=20,
    )


def program_name(revision: Revision) -> str:
    """`engine-risk-3`."""
    return f"{ENGINE}{revision.model}-{revision.number}"


def _own(daemon: str, *words: str) -> tuple[str, ...]:
    return (sys.executable, "-m", f"taxiway.entry.daemons.{daemon}", *words)
