"""Tables of rows, whatever they came in: what they hold, their names, and which row is where.

Rows come in three forms: a matrix of numbers (float64, also for a data frame of numbers only), a data frame with
columns of numbers and of text, and a list of texts. Rows are told apart by the bytes of their values, NaN included.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Texts = NDArray[np.object_]
Table = Any  # Matrix | Texts | a pandas DataFrame of float64 and text columns
Narrow = bool | frozenset[str]  # whether all, or which columns of a data frame

_NARROW = ("float32", "float16", "Float32")
_DENSE_LIMIT = 50_000_000  # values of a sparse table that are still written out


def table(rows: Any) -> Table | None:
    """`rows` in one of the three forms, or None when they have none of them (`trouble` says why)."""
    if is_frame(rows):
        return matrix(rows) if not _text_columns(rows) else _frame(rows)
    found = matrix(rows)
    return texts(rows) if found is None else found


def trouble(rows: Any) -> str:
    """Why `table` knows no form for `rows`, and what to do."""
    if is_frame(rows):
        bad = [f"{c} ({dtype})" for c, dtype in zip(rows.columns, rows.dtypes, strict=True) if _kind(dtype) == "?"]
        if bad:
            return f"the columns {', '.join(bad)} hold neither numbers nor text; turn dates and times into numbers"
        if not columns(rows) or len(set(rows.columns)) != len(rows.columns):
            return "the columns of the data frame must have names, each one once: df.columns = [...]"
        gaps = [str(c) for c in _text_columns(rows) if not _all_text(rows[c])]
        return (
            f"the columns {', '.join(gaps)} have missing values or something else among their texts, which a request "
            'cannot carry; fill them first, for instance df["city"] = df["city"].fillna("missing").astype(str)'
        )
    return "they are no table of numbers, no data frame and no list of texts"


def matrix(rows: Any) -> Matrix | None:
    """`rows` as float64 [rows, columns], or None when it is not a table of numbers."""
    if hasattr(rows, "toarray") and hasattr(rows, "shape"):
        if int(np.prod(rows.shape)) > _DENSE_LIMIT:
            return None
        rows = rows.toarray()
    if is_frame(rows) and not all(_kind(dtype) == "number" for dtype in rows.dtypes):
        return None
    try:
        values = np.asarray(rows, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return np.ascontiguousarray(values) if values.ndim == 2 else None


def texts(rows: Any) -> Texts | None:
    """`rows` as an array of texts [rows], or None when something else is among them."""
    if isinstance(rows, str | bytes | dict) or not hasattr(rows, "__len__") or not len(rows):
        return None
    try:
        values = np.asarray(rows, dtype=object)
    except ValueError:
        return None
    return values if values.ndim == 1 and all(isinstance(v, str) for v in values) else None


def float32(rows: Any) -> Narrow:
    """Whether `rows`, as the notebook has them, are float32 (or narrower): scikit-learn then calculates in float32."""
    if is_frame(rows):
        return frozenset(str(c) for c, d in zip(rows.columns, rows.dtypes, strict=True) if str(d) in _NARROW)
    return str(getattr(rows, "dtype", "")) in _NARROW


def is_frame(rows: Any) -> bool:
    """Whether `rows` is a data frame."""
    return hasattr(rows, "dtypes") and hasattr(rows, "columns") and hasattr(rows, "iloc")


def columns(rows: Any) -> tuple[str, ...]:
    """Column names of a DataFrame whose columns are named by text, else none."""
    names = getattr(rows, "columns", None)
    if names is None or not all(isinstance(n, str) for n in names):
        return ()
    return tuple(names)


def keys(rows: Table) -> list[bytes]:
    """What tells each row apart. -0.0 counts as 0.0."""
    if not is_frame(rows):
        return [v.encode() for v in rows] if rows.ndim == 1 else [row.tobytes() for row in rows + 0.0]
    numbers = numeric(rows) + 0.0
    words = [rows[c].tolist() for c in _text_columns(rows)]
    return [b"\0".join([row.tobytes(), *(w[i].encode() for w in words)]) for i, row in enumerate(numbers)]


def numeric(rows: Table) -> Matrix:
    """The columns of numbers alone, float64 [rows, columns]."""
    if not is_frame(rows):
        return rows if rows.ndim == 2 else np.empty((len(rows), 0))
    return np.ascontiguousarray(rows.select_dtypes("number").to_numpy(np.float64))


def take(rows: Table, at: Sequence[int]) -> Table:
    """These rows, in this order."""
    return rows.iloc[list(at)].reset_index(drop=True) if is_frame(rows) else rows[list(at)]


def stack(tables: Sequence[Table]) -> Table:
    """All rows of tables of one form below each other."""
    if not is_frame(tables[0]):
        return np.concatenate(tables)
    import pandas

    return pandas.concat(tables, ignore_index=True)


def width(rows: Table) -> int:
    """How many columns there are; a list of texts has one."""
    return 1 if rows.ndim == 1 else int(rows.shape[1])


def places(wanted: Table, among: Table) -> list[int] | None:
    """For each row of `wanted` its (last) place in `among`; None unless all are there."""
    if is_frame(wanted) != is_frame(among) or wanted.ndim != among.ndim or width(wanted) != width(among):
        return None
    index = {key: i for i, key in enumerate(keys(among))}
    found = [index.get(key) for key in keys(wanted)]
    return None if None in found else [i for i in found if i is not None]


def unique(tables: Sequence[Table]) -> Table:
    """All rows of `tables` once, in the order of their first appearance."""
    stacked = stack(tables)
    first = {key: i for i, key in reversed(list(enumerate(keys(stacked))))}
    return take(stacked, sorted(first.values()))


def shared_columns(wanted: Table, made: Table) -> bool:
    """Whether a column of `wanted` was clearly taken from `made`: same values that are not merely a few levels."""
    wanted, made = numeric(wanted), numeric(made)
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


def _kind(dtype: Any) -> str:
    """number, text or ? for a column's type; what an object column holds is seen value by value."""
    name, kind = str(dtype), getattr(dtype, "kind", "O")
    if name == "category":
        return "text" if _kind(dtype.categories.dtype) == "text" else _kind(dtype.categories.dtype)
    if kind in "biuf":
        return "number"
    return "text" if kind in "OUST" or name in ("str", "string") else "?"


def _text_columns(rows: Any) -> list[Any]:
    return [c for c, dtype in zip(rows.columns, rows.dtypes, strict=True) if _kind(dtype) != "number"]


def _all_text(column: Any) -> bool:
    return all(isinstance(v, str) for v in column.tolist())


def _frame(rows: Any) -> Any | None:
    """A copy with columns of float64 and of text (categories become what they name), its rows counted anew."""
    if not columns(rows) or len(set(rows.columns)) != len(rows.columns):
        return None
    found = rows.reset_index(drop=True)
    for name, dtype in zip(rows.columns, rows.dtypes, strict=True):
        kind = _kind(dtype)
        if kind == "?" or (kind == "text" and not _all_text(found[name])):
            return None
        found[name] = found[name].astype(np.float64 if kind == "number" else object)
    return found
