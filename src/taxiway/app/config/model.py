"""`taxiway.yaml` as a value: one field a key, with the defaults that the schema names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Export:
    """Versions of the ONNX operators to write, and whether what has none may stay Python."""

    opset: int = 17
    ml_opset: int = 3
    python_step: bool = True


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
    """What a person has said, over the defaults. `contract` is as it stands in the file (see `app/overrides/`).

    `places` are file, line and column of each key, for what only turns out to be wrong once the notebook has run.
    """

    model: str | None = None
    choose: str | None = None
    python: str | None = None
    kernel: str | None = None
    export: Export = field(default_factory=Export)
    parity: Parity = field(default_factory=Parity)
    serving: Serving = field(default_factory=Serving)
    contract: Mapping[str, Any] = field(default_factory=dict)
    places: Mapping[str, str] | None = field(default=None, compare=False, repr=False)

    @staticmethod
    def of(value: Mapping[str, Any]) -> Config:
        """The configuration in a mapping that the schema has accepted."""
        parts: Mapping[str, Any] = {"export": Export, "parity": Parity, "serving": Serving}
        plain = {k: v for k, v in value.items() if k not in parts}
        return Config(**plain, **{k: kind(**value[k]) for k, kind in parts.items() if k in value})

    def placed(self, reason: str) -> str:
        """`reason`, which begins with a key such as `contract.inputs.X.min`, with the place of that key before it.

        The key may be longer than what stands in the file, and names of tensors may hold dots and colons.
        """
        known = (
            k for k in self.places or () if reason.startswith(k) and reason[len(k) : len(k) + 1] in (":", ".", "[")
        )
        key = max(known, key=len, default=None)
        return reason if key is None or self.places is None else f"{self.places[key]}: {reason}"
