"""What may be sent and what comes back, inferred from the rows that were proved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from taxiway.core.contract import Contract, Field
from taxiway.core.tensor import TensorSpec
from taxiway.proof.cases import Array, Case, protocol_dtype

MAX_LENGTH: Final = 512
MAX_BATCH: Final = 128

Dims = Mapping[str, tuple[int, ...]]


def contract(cases: Sequence[Case], columns: Mapping[str, tuple[str, ...]], dims: Dims | None = None) -> Contract:
    """The contract of `cases`; `dims` by tensor name where the graph says more than the data (-1 = any length)."""
    known = dims or {}

    def fields(values: list[Mapping[str, Array]]) -> tuple[Field, ...]:
        return tuple(_field(n, [v[n] for v in values], columns.get(n, ()), known.get(n)) for n in values[0])

    return Contract(fields([c.feeds for c in cases]), fields([c.expected for c in cases]), MAX_BATCH)


def _field(name: str, values: list[Array], columns: tuple[str, ...], dims: tuple[int, ...] | None) -> Field:
    dims = dims or values[0].shape[1:]
    longest = max((n for v in values for n in v.shape[1:]), default=0)
    spec = TensorSpec(name, protocol_dtype(values[0]), dims)
    numbers = values[0].dtype.kind in "biuf"
    flat = np.concatenate([v.ravel() for v in values]).astype(np.float64) if numbers else np.empty(0)
    finite = flat[np.isfinite(flat)]
    return Field(
        spec=spec,
        columns=columns,
        finite=len(finite) == len(flat),
        max_length=max(MAX_LENGTH, longest) if -1 in dims else None,
        observed=(float(finite.min()), float(finite.max())) if len(finite) else None,
    )
