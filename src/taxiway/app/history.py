"""What was decided about a model, oldest first."""

from __future__ import annotations

from typing import Any

from taxiway.app.wire import Platform
from taxiway.release.entries import Entry


def history(platform: Platform, model: str) -> list[dict[str, Any]]:
    """The journal's entries of `model` as JSON; raises `Refused` for an unknown model."""
    platform.state().model(model)
    return [e.to_json() for e in platform.journal.read() if e.model == model]


def sentence(entry: Entry | dict[str, Any]) -> str:
    """An entry's detail for a person."""
    value = entry.to_json() if isinstance(entry, Entry) else entry
    detail = value["detail"]
    if "split" in detail:
        return f"{_percent(detail['before'])} -> {_percent(detail['split'])}"
    digest = f" {detail['digest']}" if "digest" in detail else ""
    return f"revision {detail.get('number', '?')}{digest}"


def _percent(split: dict[str, int]) -> str:
    return " ".join(f"{n}={w / 100:g}%" for n, w in sorted(split.items(), key=lambda x: int(x[0]))) or "none"
