"""The contract that the data shows: names, dtypes, dims, ranges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from taxiway.core.contract import Contract, Field
from taxiway.core.tensor import TensorSpec

MAX_LENGTH: Final = 512


def contract(
    inputs: Sequence[TensorSpec],
    outputs: Sequence[TensorSpec],
    seen: Mapping[str, Sequence[Any]],
    columns: Mapping[str, tuple[str, ...]] | None = None,
) -> Contract:
    """`seen` are the arrays that each input was fed and each output gave; `columns` names the columns of inputs."""
    named = columns or {}
    return Contract(
        tuple(_field(spec, seen.get(spec.name, ()), named.get(spec.name, ())) for spec in inputs),
        tuple(_field(spec, seen.get(spec.name, ()), ()) for spec in outputs),
    )


def _field(spec: TensorSpec, arrays: Sequence[Any], columns: tuple[str, ...]) -> Field:
    numbers = [np.asarray(a, np.float64).ravel() for a in arrays if np.asarray(a).dtype.kind in "biuf"]
    flat = np.concatenate(numbers) if numbers else np.empty(0)
    finite = flat[np.isfinite(flat)]
    longest = max((n for a in arrays for n in np.shape(a)[1:]), default=0)
    return Field(
        spec=spec,
        columns=columns,
        finite=bool(len(finite) == len(flat)),
        max_length=max(MAX_LENGTH, longest) if -1 in spec.dims else None,
        observed=(float(finite.min()), float(finite.max())) if len(finite) else None,
    )
