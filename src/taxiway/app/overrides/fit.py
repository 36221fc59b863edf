"""Whether a tensor of this type and shape can have what is said of it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from taxiway.app.overrides.merge import columns
from taxiway.app.overrides.side import Side, Words, column_place
from taxiway.app.overrides.words import is_number, rules, suggestion
from taxiway.core.contract import Column, Field
from taxiway.core.tensor import DTYPES, FLOATS, rounded


def unfit(side: Side, field: Field, words: Words) -> Iterator[str]:
    """Every mistake in what is said of `field`."""
    where = side.place(field.name)
    for key, reason in _misplaced(field, words):
        yield f"{where}.{key}: {reason}; leave it out"
    if words.get("finite") and words.get("infinite"):
        yield f"{where}: finite and infinite cannot both be true; leave one out"
    if words.get("same_length_as") is not None:
        yield from _unfit_partner(side, field, words["same_length_as"])
    of_columns: Mapping[int, Words] = words["columns"]
    for place, said in [(where, words), *((column_place(where, field, i), said) for i, said in of_columns.items())]:
        yield from (f"{place}.{key}: {reason}; leave it out" for key, reason in _misplaced_rules(field, said))
        yield from (f"{place}.allowed: {reason}" for reason in _unfit_members(field, said.get("allowed") or ()))
    table = enumerate(columns(field, words))
    yield from (
        f"{column_place(where, field, i, words)}: {reason}"
        for i, c in table
        for reason in _unfit_column(field, c, words, i)
    )


def _misplaced(field: Field, words: Words) -> Iterator[tuple[str, str]]:
    dtype = field.spec.dtype
    for key in ("finite", "infinite"):
        if key in words and dtype not in FLOATS:
            yield key, f"only floats can be infinite, this is {dtype}"
    if "max_bytes" in words and dtype != "BYTES":
        yield "max_bytes", f"only texts (BYTES) have a length in bytes, this is {dtype}"
    if "max_length" in words and -1 not in field.spec.dims:
        yield "max_length", f"no dim of {list(field.spec.dims)} varies in length"


def _misplaced_rules(field: Field, said: Words) -> Iterator[tuple[str, str]]:
    dtype = field.spec.dtype
    if "nullable" in said and dtype not in FLOATS:
        yield "nullable", f"only floats can be missing (NaN), this is {dtype}"
    for key in ("min", "max"):
        if key in said and dtype in ("BYTES", "BOOL"):
            yield key, f"only numbers have bounds, this is {dtype}"


def _unfit_partner(side: Side, field: Field, other: str) -> Iterator[str]:
    where = f"{side.place(field.name)}.same_length_as"
    if other not in side.inputs:
        yield f"{where}: no input {other!r}; {suggestion(other, side.inputs)}"
    elif side.inputs[other] is field:
        yield f"{where}: a tensor is always as long as itself; name another one, or leave it out"
    else:
        for one in (field, side.inputs[other]):
            if one.spec.dims.count(-1) != 1:
                yield f"{where}: {one.name!r} has dims {list(one.spec.dims)}, of which not exactly one varies in length"


def _unfit_members(field: Field, members: Sequence[Any]) -> Iterator[str]:
    what = _members_of(field.spec.dtype)
    for member in members:
        if not _is_member(field.spec.dtype, member):
            yield f"{field.spec.dtype} takes {what}, not {member!r}"


def _members_of(dtype: str) -> str:
    if dtype in FLOATS:
        return "whole numbers that it holds exactly (give min and max instead)"
    return {"BYTES": "texts (put them in quotes)", "BOOL": "true and false"}.get(dtype, "whole numbers of its size")


def _is_member(dtype: str, value: Any) -> bool:
    if dtype in ("BYTES", "BOOL"):
        return isinstance(value, str if dtype == "BYTES" else bool)
    if dtype in FLOATS:
        return is_number(value) and value == int(value) == rounded(dtype, value)
    least, greatest = _limits(dtype)
    return type(value) is int and least <= value <= greatest


def _limits(dtype: str) -> tuple[int, int]:
    bits = 8 * DTYPES[dtype][1]
    return (0, 2**bits - 1) if dtype.startswith("U") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _unfit_column(field: Field, before: Column, words: Words, column: int) -> Iterator[str]:
    said = rules(words, column)
    least, greatest = said.get("min", before.minimum), said.get("max", before.maximum)
    if least is not None and greatest is not None and least > greatest:
        yield f"min {least} is above max {greatest}; nothing would be accepted"
    elif field.spec.dtype not in (*FLOATS, "BYTES", "BOOL") and not _any_whole(field.spec.dtype, least, greatest):
        yield f"no {field.spec.dtype} lies between min {least} and max {greatest}; nothing would be accepted"
    if "allowed" in said and before.allowed is not None:
        unknown = [repr(m) for m in said["allowed"] or () if m not in before.allowed]
        if unknown or not said["allowed"]:
            found = ", ".join(unknown[:5]) or "other values"
            yield f"the model does not know {found}; allowed can only be a part of what it knows"


def _any_whole(dtype: str, least: float | None, greatest: float | None) -> bool:
    low, high = _limits(dtype)
    return max(low, math.ceil(low if least is None else least)) <= min(
        high, math.floor(high if greatest is None else greatest)
    )
