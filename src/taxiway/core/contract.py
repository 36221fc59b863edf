"""The contract of a revision: which tensors it takes and gives, and which values it was proved on.

`finite` and `max_length` are enforced at serving time; `observed` (the least and greatest value seen in
the notebook's own data) is a reference for watching, never a reason to turn a request away.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from taxiway.core.tensor import TensorSpec


@dataclass(frozen=True, slots=True)
class Field:
    """One input or output tensor.

    `columns` names the last axis of a table in order (empty when it has no names). `finite` forbids NaN
    and infinities. `max_length` bounds every -1 dim. `observed` is (least, greatest) finite value.
    """

    spec: TensorSpec
    columns: tuple[str, ...] = ()
    finite: bool = True
    max_length: int | None = None
    observed: tuple[float, float] | None = None

    @property
    def name(self) -> str:
        return self.spec.name

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.spec.name,
            "dtype": self.spec.dtype,
            "dims": list(self.spec.dims),
            "columns": list(self.columns),
            "finite": self.finite,
            "max_length": self.max_length,
            "observed": None if self.observed is None else list(self.observed),
        }

    @staticmethod
    def from_json(value: dict[str, Any]) -> Field:
        observed = value.get("observed")
        return Field(
            spec=TensorSpec(value["name"], value["dtype"], tuple(value["dims"])),
            columns=tuple(value.get("columns", ())),
            finite=value.get("finite", True),
            max_length=value.get("max_length"),
            observed=None if observed is None else (observed[0], observed[1]),
        )


@dataclass(frozen=True, slots=True)
class Contract:
    """All inputs and outputs of a revision, and the largest batch of one request (rows)."""

    inputs: tuple[Field, ...]
    outputs: tuple[Field, ...]
    max_batch: int = 128

    def to_json(self) -> dict[str, Any]:
        return {
            "inputs": [f.to_json() for f in self.inputs],
            "outputs": [f.to_json() for f in self.outputs],
            "max_batch": self.max_batch,
        }

    @staticmethod
    def from_json(value: dict[str, Any]) -> Contract:
        return Contract(
            inputs=tuple(Field.from_json(f) for f in value["inputs"]),
            outputs=tuple(Field.from_json(f) for f in value["outputs"]),
            max_batch=value["max_batch"],
        )
