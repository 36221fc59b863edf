"""`taxiway.yaml` as a value: one field a key, with the defaults that the schema names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Export:
    """Versions of the ONNX operators to write."""

    opset: int = 17
    ml_opset: int = 3


@dataclass(frozen=True, slots=True)
class Parity:
    """How hard the export is tried (`rows` are made from the notebook's own), and what a person allows it to differ."""

    rows: int = 200
    atol: float | None = None
    rtol: float | None = None


@dataclass(frozen=True, slots=True)
class Serving:
    """Limits of one request (rows, milliseconds until it is given up), copies of the model, microseconds in a queue."""

    max_batch: int = 128
    timeout_ms: int = 10_000
    instances: int = 1
    queue_delay_us: int = 0


@dataclass(frozen=True, slots=True)
class Config:
    """What a person has said, over the defaults. `contract` is as it stands in the file (see `app/overrides.py`)."""

    model: str | None = None
    choose: str | None = None
    python: str | None = None
    kernel: str | None = None
    export: Export = field(default_factory=Export)
    parity: Parity = field(default_factory=Parity)
    serving: Serving = field(default_factory=Serving)
    contract: Mapping[str, Any] = field(default_factory=dict)

    @staticmethod
    def of(value: Mapping[str, Any]) -> Config:
        """The configuration in a mapping that the schema has accepted."""
        parts = {"export": Export, "parity": Parity, "serving": Serving}
        plain = {k: v for k, v in value.items() if k not in parts}
        return Config(**plain, **{k: kind(**value[k]) for k, kind in parts.items() if k in value})
