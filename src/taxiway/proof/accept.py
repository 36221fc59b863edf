"""Which rows a contract lets through (what the engine enforces, said once more for the proof's own rows)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from taxiway.core.contract import Column, Contract, Field
from taxiway.proof.cases import Array


def accepted(contract: Contract, feeds: Mapping[str, Array]) -> list[int]:
    """The rows of `feeds` that keep every rule of the inputs."""
    fields = {f.name: f for f in contract.inputs}
    good = np.ones(len(next(iter(feeds.values()))), dtype=bool)
    for name, values in feeds.items():
        if name in fields:
            good &= _keeps(fields[name], values)
    return [int(i) for i in np.flatnonzero(good)]


def _keeps(field: Field, values: Array) -> Array:
    rows = values.reshape(len(values), -1)
    good = np.ones(len(rows), dtype=bool)
    if field.max_length is not None and any(n > field.max_length for n in values.shape[1:]):
        good[:] = False
    if field.max_bytes is not None:
        longest = [max((len(str(v).encode()) for v in row), default=0) for row in rows]
        good &= np.asarray(longest, dtype=np.int64) <= field.max_bytes
    if rows.dtype.kind == "f":
        if field.finite:
            good &= np.isfinite(rows).all(axis=1)
        elif not field.infinite:
            good &= ~np.isinf(rows).any(axis=1)
    for i, column in enumerate(field.table):
        part = rows[:, [i]] if len(field.table) == rows.shape[1] else rows
        good &= _within(column, part, finite=field.finite).all(axis=1)
    return good


def _within(column: Column, values: Array, *, finite: bool) -> Array:
    missing = np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, dtype=bool)
    good = np.ones(values.shape, dtype=bool)
    if column.minimum is not None:
        good &= missing | (values >= values.dtype.type(column.minimum))
    if column.maximum is not None:
        good &= missing | (values <= values.dtype.type(column.maximum))
    if column.allowed is not None:
        known = frozenset(column.allowed)
        good &= missing | np.array([[v in known for v in row] for row in values.tolist()], dtype=bool)
    return good if column.nullable or finite else good & ~missing
