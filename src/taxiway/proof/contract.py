"""What may be sent and what comes back, inferred from the rows that were proved.

Only what the rows show is inferred: where values are missing, whether any is infinite, how long lists and texts are,
which lists go together. A range is observed and never made a bound, for the next caller's age may well be above the
oldest in the notebook. Which values the model itself refuses is known to the exporter, and given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from taxiway.core.contract import Column, Contract, Field, Member
from taxiway.core.tensor import TensorSpec
from taxiway.proof.cases import Array, Case, protocol_dtype

MAX_LENGTH: Final = 512
MAX_BYTES: Final = 256
MAX_BATCH: Final = 128
# A text may be this many times as long as the longest that was seen.
_LONGER: Final = 4

Dims = Mapping[str, tuple[int, ...]]
Tensors = Sequence[Mapping[str, Array]]


def contract(
    cases: Sequence[Case],
    columns: Mapping[str, tuple[str, ...]],
    dims: Dims | None = None,
    allowed: Mapping[str, tuple[Any, ...]] | None = None,
) -> Contract:
    """The contract of `cases`.

    `dims` by tensor name where the graph says more than the data (-1 = any length); `allowed` by input name where
    the model refuses all other values.
    """
    feeds, expected = [c.feeds for c in cases], [c.expected for c in cases]
    inputs = tuple(_allowing(f, (allowed or {}).get(f.name)) for f in _fields(feeds, columns, dims or {}))
    outputs = _fields(expected, columns, dims or {})
    lengths = _lengths(inputs, feeds)
    return Contract(
        tuple(_with_partner(f, lengths[: i + 1]) for i, f in enumerate(inputs)),
        tuple(_with_partner(f, [*lengths, *_lengths((f,), expected)]) for f in outputs),
        MAX_BATCH,
    )


def _fields(values: Tensors, columns: Mapping[str, tuple[str, ...]], dims: Dims) -> tuple[Field, ...]:
    return tuple(_field(n, [v[n] for v in values], columns.get(n, ()), dims.get(n)) for n in values[0])


def _field(name: str, values: list[Array], columns: tuple[str, ...], dims: tuple[int, ...] | None) -> Field:
    dims = dims or values[0].shape[1:]
    longest = max((n for v in values for n in v.shape[1:]), default=0)
    flat = _numbers(values)
    plain = Field(
        spec=TensorSpec(name, protocol_dtype(values[0]), dims),
        columns=columns,
        finite=bool(np.isfinite(flat).all()),
        infinite=bool(np.isinf(flat).any()),
        max_length=max(MAX_LENGTH, longest) if -1 in dims else None,
        observed=_observed(flat),
    )
    if plain.spec.dtype == "BYTES":
        plain = replace(plain, max_bytes=max(MAX_BYTES, _LONGER * _longest_text(values)))
    return replace(plain, table=_table(plain, values))


def _numbers(values: list[Array]) -> Array:
    """All values as float64; none where they are not numbers."""
    if values[0].dtype.kind not in "biuf":
        return np.empty(0)
    return np.concatenate([v.ravel() for v in values]).astype(np.float64)


def _observed(numbers: Array) -> tuple[float, float] | None:
    finite = numbers[np.isfinite(numbers)]
    return (float(finite.min()), float(finite.max())) if len(finite) else None


def _longest_text(values: list[Array]) -> int:
    return max((len(str(text).encode("utf-8", "replace")) for v in values for text in v.ravel().tolist()), default=0)


def _table(field: Field, values: list[Array]) -> tuple[Column, ...]:
    """A column for each element of the last axis where they differ by name or by what is missing.

    A tensor whose last axis varies, or has no names within other axes, has one column for all or none.
    """
    named = field.width is not None and len(field.columns) == field.width
    if named or (not field.finite and len(field.spec.dims) == 1 and field.width is not None):
        width = field.width or 1
        table = np.concatenate([v.reshape(-1, width) for v in values])
        names = field.columns if named else ("",) * width
        return tuple(_column(name, table[:, i]) for i, name in enumerate(names))
    missing = bool(np.isnan(_numbers(values)).any())
    return () if field.finite or missing else (Column(),)


def _column(name: str, values: Array) -> Column:
    numbers = _numbers([values])
    return Column(name, nullable=bool(np.isnan(numbers).any()), observed=_observed(numbers))


def _allowing(field: Field, values: tuple[Any, ...] | None) -> Field:
    """`field` with every column limited to `values` (no limit when there are none)."""
    members = tuple(m for m in map(_member, values or ()) if m is not None)
    if not members:
        return field
    base = field.table or (Column(nullable=not field.finite),)
    return replace(field, table=tuple(replace(c, allowed=members) for c in base))


def _member(value: Any) -> Member | None:
    """`value` as JSON can say it; None for what is missing, which is a matter of `nullable`."""
    plain: Any = value.item() if isinstance(value, np.generic) else value
    missing = plain is None or plain != plain
    return None if missing else plain


_Lengths = tuple[str, tuple[int, ...] | None]


def _lengths(fields: Sequence[Field], values: Tensors) -> list[_Lengths]:
    """Tensor name -> the length of its one -1 dim in each case; None when it has not one such dim."""
    return [(f.name, _open(f, [v[f.name] for v in values])) for f in fields]


def _open(field: Field, values: list[Array]) -> tuple[int, ...] | None:
    dims = field.spec.dims
    if dims.count(-1) != 1 or any(v.ndim != len(dims) + 1 for v in values):
        return None
    return tuple(v.shape[1 + dims.index(-1)] for v in values)


def _with_partner(field: Field, lengths: Sequence[_Lengths]) -> Field:
    """`field` (the last of `lengths`) with the first tensor before it that was as long in every case."""
    *before, (_, own) = lengths
    partner = next((name for name, other in before if own is not None and other == own), None)
    return replace(field, same_length_as=partner)
