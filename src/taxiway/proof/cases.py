"""Rows with their right answers: what everything in this room is measured on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taxiway.core.sample import Tensor
from taxiway.core.tensor import DTYPES

Array = NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """`feeds` and `expected` by tensor name; the first axis of every array is the row."""

    feeds: Mapping[str, Array]
    expected: Mapping[str, Array]

    @property
    def rows(self) -> int:
        return len(next(iter(self.feeds.values())))

    def take(self, rows: Sequence[int]) -> Case:
        """Only these rows, in this order."""
        chosen = list(rows)
        return Case({k: v[chosen] for k, v in self.feeds.items()}, {k: v[chosen] for k, v in self.expected.items()})


def merged(cases: Sequence[Case]) -> tuple[Case, ...]:
    """Cases whose rows have equal shapes put together, in the order of their first appearance."""
    groups: dict[Any, list[Case]] = {}
    for case in cases:
        groups.setdefault(tuple(v.shape[1:] for v in (*case.feeds.values(), *case.expected.values())), []).append(case)
    return tuple(
        Case(
            {k: np.concatenate([c.feeds[k] for c in group]) for k in group[0].feeds},
            {k: np.concatenate([c.expected[k] for c in group]) for k in group[0].expected},
        )
        for group in groups.values()
    )


def columns_of_rows(values: Array) -> Array:
    """Arrays of shape [rows] as [rows, 1]: a served tensor has an axis of its own in each row."""
    return values[:, None] if values.ndim == 1 else values


def protocol_dtype(values: Array) -> str:
    """The protocol's name for the type of `values`; text of any kind is BYTES."""
    if values.dtype.kind in "OUS":
        return "BYTES"
    return next(name for name, (numpy_name, _) in DTYPES.items() if numpy_name == values.dtype.name)


def tensor(values: Array) -> Tensor:
    """`values` as a sample tensor; float32 in the fewest digits that mean the same float32 (0.1, not 0.10000000149)."""
    flat = values.ravel()
    data = [float(str(v)) for v in flat] if values.dtype == np.float32 else flat.tolist()
    return Tensor(protocol_dtype(values), values.shape, tuple(data))
