"""How a table of rows becomes the tensors of a request.

A table of numbers is one tensor `X`, float32 [rows, columns]. A table that its model takes apart by column names (or
that holds text) is one tensor per column, called like the column, [rows, 1]: text as it is, whole numbers that an
encoder takes for categories as int64, all other numbers as float32. A list of texts is one tensor `text` [rows, 1].
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from taxiway.core.errors import Refused
from taxiway.proof.cases import Array

WHOLE: Final = "X"
TEXT: Final = "text"
_ENCODERS: Final = frozenset({"OneHotEncoder", "OrdinalEncoder", "TargetEncoder"})
_NUMPY: Final[dict[str, Any]] = {"FP32": np.float32, "INT64": np.int64, "BYTES": object}


@dataclass(frozen=True, slots=True)
class Input:
    """A tensor: its name, protocol type and width (values per row); `column` is None for a whole table."""

    name: str
    dtype: str
    width: int
    column: str | None = None


Signature = tuple[Input, ...]


def signature(estimator: Any, table: Any, taken: Sequence[str]) -> Signature:
    """The tensors that `table` (a matrix, a data frame or texts) is sent as; no input is called like one of `taken`.

    Raises Refused when a column is.
    """
    if not _is_frame(table):
        return (Input(TEXT, "BYTES", 1) if table.ndim == 1 else Input(WHOLE, "FP32", int(table.shape[1])),)
    if not _has_text(table) and not _by_name(estimator):
        return (Input(WHOLE, "FP32", int(table.shape[1])),)
    clash = sorted(set(table.columns) & set(taken))
    if clash:
        raise Refused(
            f"the column {clash[0]!r} is called like an answer of the model; rename it in the notebook",
            code="name-taken",
        )
    encoded = encoded_columns(estimator, list(table.columns))
    return tuple(Input(name, _dtype(table[name], name in encoded), 1, name) for name in table.columns)


def feeds(inputs: Signature, table: Any) -> dict[str, Array]:
    """The tensors of all rows of `table`."""
    return {i.name: _tensor(i, table) for i in inputs}


def as_asked(inputs: Signature, table: Any) -> Any:
    """`table` as a request carries it: numbers hold float32 values, in the form that the estimator takes."""
    if inputs[0].column is None:
        if inputs[0].dtype == "BYTES":
            return table
        if _is_frame(table):
            return table.assign(**{str(c): _rounded(table[c], "FP32") for c in table.columns})
        return table.astype(np.float32).astype(table.dtype)
    changed = {i.name: _rounded(table[i.name], i.dtype) for i in inputs if i.dtype != "BYTES"}
    return table.assign(**changed)


def beyond_float32(inputs: Signature, table: Any) -> list[str]:
    """The tensors in which a finite number becomes an infinity."""
    found = []
    for one in inputs:
        if one.dtype == "FP32":
            values = np.asarray(table if one.column is None else table[one.column], dtype=np.float64)
            with np.errstate(over="ignore"):
                if (np.isinf(values.astype(np.float32)) & np.isfinite(values)).any():
                    found.append(one.name)
    return found


def dense(rows: Any) -> Any:
    """What a transformer gives as a table: sparse matrices written out, lists as arrays."""
    if hasattr(rows, "toarray"):
        return rows.toarray()
    return rows if hasattr(rows, "iloc") else np.asarray(rows)


def used(inputs: Signature, names: Sequence[str]) -> Signature:
    """Only the inputs that the exported graph has."""
    return tuple(i for i in inputs if i.name in names)


def encoded_columns(estimator: Any, columns: Sequence[str]) -> frozenset[str]:
    """Columns whose values an encoder takes for categories (in a ColumnTransformer, or as the first step)."""
    first = first_step(estimator)
    if type(first).__name__ in _ENCODERS:
        return frozenset(columns)
    parts = column_parts(first)
    return frozenset(c for step, names in parts for c in names if type(first_step(step)).__name__ in _ENCODERS)


def column_parts(first: Any) -> list[tuple[Any, list[str]]]:
    """(fitted transformer, the columns it takes) of a fitted ColumnTransformer; nothing for anything else."""
    if type(first).__name__ != "ColumnTransformer":
        return []
    names = [str(n) for n in getattr(first, "feature_names_in_", ())]
    found = []
    for _, step, chosen in first.transformers_:
        found.append((step, _names(chosen, names)))
    return found


def first_step(estimator: Any) -> Any:
    """What sees the raw rows: the first step of a pipeline (of one in a pipeline, or in a search)."""
    inner = getattr(estimator, "best_estimator_", None)
    if inner is not None:
        return first_step(inner)
    steps = getattr(estimator, "steps", None)
    return first_step(steps[0][1]) if steps else estimator


def allowed(estimator: Any, inputs: Signature) -> Mapping[str, tuple[Any, ...]]:
    """Tensor name -> the values that an encoder knows, where it refuses all others."""
    found: dict[str, tuple[Any, ...]] = {}
    by_column = {i.column: i for i in inputs if i.column is not None}
    for encoder, columns in _strict_encoders(estimator, list(by_column)):
        for column, values in zip(columns, encoder.categories_, strict=True):
            if column in by_column:
                whole = by_column[column].dtype == "INT64"
                found[by_column[column].name] = tuple(int(v) if whole else v for v in values.tolist())
    return found


def _strict_encoders(estimator: Any, columns: list[str]) -> Iterator[tuple[Any, list[str]]]:
    first = first_step(estimator)
    for step, names in column_parts(first) or [(first, columns)]:
        encoder = first_step(step)
        if getattr(encoder, "handle_unknown", None) == "error" and len(getattr(encoder, "categories_", ())) == len(
            names
        ):
            yield encoder, names


def _names(chosen: Any, names: list[str]) -> list[str]:
    if isinstance(chosen, str):
        return [chosen]
    if isinstance(chosen, slice):
        start, stop = (names.index(v) if isinstance(v, str) else v for v in (chosen.start, chosen.stop))
        after = stop + 1 if isinstance(chosen.stop, str) and stop is not None else stop
        return names[slice(start, after, chosen.step)]
    values = np.atleast_1d(np.asarray(chosen))
    if values.dtype == bool:
        return [n for n, wanted in zip(names, values, strict=True) if wanted]
    return [str(v) if isinstance(v, str) else names[int(v)] for v in values.tolist()]


def _dtype(column: Any, encoded: bool) -> str:
    if column.dtype.kind not in "biuf":
        return "BYTES"
    values = column.to_numpy(np.float64)
    whole = encoded and bool(np.isfinite(values).all()) and np.array_equal(values, np.round(values))
    return "INT64" if whole and bool((np.abs(values) < 2.0**53).all()) else "FP32"


def _tensor(one: Input, table: Any) -> Array:
    values = np.asarray(table if one.column is None else table[one.column])
    return values.astype(_NUMPY[one.dtype]).reshape(len(values), one.width)


def _rounded(column: Any, dtype: str) -> Any:
    return column.astype(np.int64) if dtype == "INT64" else column.astype(np.float32).astype(column.dtype)


def _by_name(estimator: Any) -> bool:
    first = first_step(estimator)
    return type(first).__name__ == "ColumnTransformer" and hasattr(first, "feature_names_in_")


def _has_text(table: Any) -> bool:
    return any(dtype.kind not in "biuf" for dtype in table.dtypes)


def _is_frame(table: Any) -> bool:
    return hasattr(table, "iloc") and hasattr(table, "columns")
