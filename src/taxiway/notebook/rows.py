"""Tables of rows, whatever they came in: their numbers, their names, and which row is where.

Rows are told apart by the bytes of their float64 values, NaN included.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]

_DENSE_LIMIT = 50_000_000  # values of a sparse table that are still written out


def matrix(rows: Any) -> Matrix | None:
    """`rows` as float64 [rows, columns], or None when it is not a table of numbers."""
    if hasattr(rows, "toarray") and hasattr(rows, "shape"):
        if int(np.prod(rows.shape)) > _DENSE_LIMIT:
            return None
        rows = rows.toarray()
    if bad_columns(rows):
        return None
    try:
        values = np.asarray(rows, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return np.ascontiguousarray(values) if values.ndim == 2 else None


def bad_columns(rows: Any) -> list[str]:
    """Names of the columns of a DataFrame that hold no numbers."""
    if not hasattr(rows, "dtypes") or not hasattr(rows, "columns"):
        return []
    return [
        str(c) for c, dtype in zip(rows.columns, rows.dtypes, strict=True) if getattr(dtype, "kind", "O") not in "biuf"
    ]


def columns(rows: Any) -> tuple[str, ...]:
    """Column names of a DataFrame whose columns are named by text, else none."""
    names = getattr(rows, "columns", None)
    if names is None or not all(isinstance(n, str) for n in names):
        return ()
    return tuple(names)


def keys(rows: Matrix) -> list[bytes]:
    """What tells each row apart. -0.0 counts as 0.0."""
    return [row.tobytes() for row in rows + 0.0]


def places(wanted: Matrix, among: Matrix) -> list[int] | None:
    """For each row of `wanted` its (last) place in `among`; None unless all are there."""
    if wanted.shape[1] != among.shape[1]:
        return None
    index = {key: i for i, key in enumerate(keys(among))}
    found = [index.get(key) for key in keys(wanted)]
    return None if None in found else [i for i in found if i is not None]


def unique(tables: Sequence[Matrix]) -> Matrix:
    """All rows of `tables` once, in the order of their first appearance."""
    stacked = np.vstack(tables)
    first = {key: i for i, key in reversed(list(enumerate(keys(stacked))))}
    return stacked[sorted(first.values())]


def shared_columns(wanted: Matrix, made: Matrix) -> bool:
    """Whether a column of `wanted` was clearly taken from `made`: same values that are not merely a few levels."""
    sample = wanted[:: max(1, len(wanted) // 16)][:16]
    for j in range(wanted.shape[1]):
        values = set(sample[:, j].tolist())
        aligned = len(wanted) == len(made) and len(values) > 1
        for k in range(made.shape[1]):
            if aligned and np.array_equal(wanted[:, j], made[:, k]):
                return True
            if len(values) > 4 and values <= set(made[:, k].tolist()):
                return True
    return False
