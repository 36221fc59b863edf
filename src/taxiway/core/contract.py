"""The contract of a revision: which tensors it takes and gives, and which of their values.

What belongs here is only the words: a `Field` for each tensor, a `Column` for each element of its last axis, and
their JSON. Who writes them is elsewhere: most is inferred from the rows that were proved, and a person can narrow or
widen it. Everything said of an input is enforced at serving time, except `observed` (the least and greatest finite
value of the proved rows), which is a reference for watching and never a reason to turn a request away.

The JSON has always had the keys that every field has; the later ones stand in it only where they say something, so
that a plain contract stays short, and a contract written before they existed means what it meant then.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from taxiway.core.tensor import TensorSpec

Member = str | int | float
Range = tuple[float, float]

_COLUMN_KEYS: Final = ("name", "nullable", "minimum", "maximum", "allowed", "observed")


@dataclass(frozen=True, slots=True)
class Column:
    """One element of the last axis.

    `nullable` accepts NaN. `minimum` and `maximum` are inclusive; `allowed` lists the only values accepted; neither
    forbids NaN. Raises ValueError when no value could ever pass.
    """

    name: str = ""
    nullable: bool = False
    minimum: float | None = None
    maximum: float | None = None
    allowed: tuple[Member, ...] | None = None
    observed: Range | None = None

    def __post_init__(self) -> None:
        if not all(math.isfinite(b) for b in (self.minimum, self.maximum) if b is not None):
            raise ValueError(f"column {self.name!r}: bounds must be finite, not {self.minimum} to {self.maximum}")
        if self.minimum is not None and self.maximum is not None and self.minimum > self.maximum:
            raise ValueError(f"column {self.name!r}: minimum {self.minimum} is above maximum {self.maximum}")
        if self.allowed is not None and not self.allowed:
            raise ValueError(f"column {self.name!r}: allowed must have at least one value")

    def to_json(self) -> dict[str, Any]:
        """Only what differs from the default."""
        values = {key: getattr(self, key) for key in _COLUMN_KEYS}
        return {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in values.items()
            if value is not None and value is not False and value != ""
        }

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Column:
        allowed = value.get("allowed")
        return Column(
            name=value.get("name", ""),
            nullable=value.get("nullable", False),
            minimum=value.get("minimum"),
            maximum=value.get("maximum"),
            allowed=None if allowed is None else tuple(allowed),
            observed=_range(value.get("observed")),
        )


@dataclass(frozen=True, slots=True)
class Field:
    """One input or output tensor.

    `columns` names the last axis of a table in order (empty when it has no names). `finite` forbids NaN and
    infinities in the whole tensor; without it, infinities are accepted when `infinite`, and NaN in the nullable
    columns of `table` (anywhere when that is empty). `table` has a column for each element of the last axis, or a
    single one that holds for all of them. `max_length` bounds every -1 dim, `max_bytes` every text (in UTF-8).
    `same_length_as` names the tensor whose -1 dim is as long as this one's. `observed` is (least, greatest) finite
    value. Raises ValueError for what contradicts itself.
    """

    spec: TensorSpec
    columns: tuple[str, ...] = ()
    finite: bool = True
    max_length: int | None = None
    observed: Range | None = None
    table: tuple[Column, ...] = ()
    max_bytes: int | None = None
    same_length_as: str | None = None
    infinite: bool = False

    def __post_init__(self) -> None:
        if len(self.table) not in (0, 1, self.width):
            raise ValueError(
                f"tensor {self.name!r}: table has {len(self.table)} columns, the last axis {self.width or 'any number'}"
            )
        if self.finite and (self.infinite or any(c.nullable for c in self.table)):
            raise ValueError(f"tensor {self.name!r}: finite forbids NaN and infinities, which it accepts elsewhere")

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def width(self) -> int | None:
        """Elements of the last axis; None when any number is accepted."""
        last = self.spec.dims[-1] if self.spec.dims else 1
        return last if last > 0 else None

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.spec.name,
            "dtype": self.spec.dtype,
            "dims": list(self.spec.dims),
            "columns": list(self.columns),
            "finite": self.finite,
            "max_length": self.max_length,
            "observed": None if self.observed is None else list(self.observed),
        } | self._later()

    def _later(self) -> dict[str, Any]:
        """The keys that a plain contract has not."""
        found: dict[str, Any] = {}
        if self.table:
            found["table"] = [c.to_json() for c in self.table]
        if self.max_bytes is not None:
            found["max_bytes"] = self.max_bytes
        if self.same_length_as is not None:
            found["same_length_as"] = self.same_length_as
        if not self.finite:
            found["infinite"] = self.infinite
        return found

    @staticmethod
    def from_json(value: dict[str, Any]) -> Field:
        finite = value.get("finite", True)
        return Field(
            spec=TensorSpec(value["name"], value["dtype"], tuple(value["dims"])),
            columns=tuple(value.get("columns", ())),
            finite=finite,
            max_length=value.get("max_length"),
            observed=_range(value.get("observed")),
            table=tuple(Column.from_json(c) for c in value.get("table", ())),
            max_bytes=value.get("max_bytes"),
            same_length_as=value.get("same_length_as"),
            # Before the key existed, a tensor that was not finite took infinities as well.
            infinite=value.get("infinite", not finite),
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


def _range(value: Any) -> Range | None:
    return None if value is None else (value[0], value[1])
