"""Whether what was recorded keeps the new rules, and how much of it does not."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from taxiway.app.overrides.side import Side, column_place
from taxiway.app.overrides.words import is_number
from taxiway.core.contract import Column, Field
from taxiway.core.sample import Tensor, Value
from taxiway.core.tensor import FLOATS, rounded

Rule = tuple[str, Callable[[Any], bool]]
"""How a rule is written, and whether it refuses a value."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """How it is told: what a rule does to which values, and what follows."""

    does: str
    values: str
    follows: str


PROVED: Final = Evidence(
    "would refuse",
    "proved values",
    "golden samples would be refused: widen the rule, or keep such rows out of the notebook's data",
)
ANSWERED: Final = Evidence(
    "contradicts", "recorded answers", "the notebook's model gives them: widen the rule, or leave it out"
)
ANSWERED_MADE: Final = Evidence(
    "contradicts", "answers to made rows", "callers can send such rows: widen the rule, or narrow contract.inputs"
)


def against(side: Side, before: Field, after: Field, evidence: Evidence) -> Iterator[str]:
    """Which rules of `after` the recorded values break, and how many of them do."""
    where = side.place(after.name)
    recorded = [rows[after.name] for rows in side.rows if after.name in rows]
    table = after.table or (Column(nullable=not after.finite),)
    known = before.table if len(before.table) == len(table) else (before.table or (Column(),)) * len(table)
    for i, column in enumerate(table):
        seen = _seen(before, i, len(table), recorded) if recorded else _observed(before, known[i], len(table))
        place = column_place(where, after, i) if len(table) > 1 else where
        yield from _told(place, _column_rules(after, column), seen, evidence, counted=bool(recorded))
    every = [v for t in recorded for v in t.data] if recorded else [math.inf] * before.infinite
    yield from _told(where, _tensor_rules(after), every, evidence, counted=bool(recorded))
    lengths = [n for t in recorded for n, d in zip(t.shape[1:], after.spec.dims, strict=False) if d < 0]
    limit = after.max_length or math.inf
    yield from _told(where, [(f"max_length {limit}", lambda n: n > limit)], lengths, evidence, counted=True)
    yield from _apart(side, after, evidence)


def _column_rules(field: Field, column: Column) -> Iterator[Rule]:
    dtype = field.spec.dtype
    if column.minimum is not None:
        least = rounded(dtype, column.minimum)
        yield f"min {column.minimum}", lambda v: v < least
    if column.maximum is not None:
        greatest = rounded(dtype, column.maximum)
        yield f"max {column.maximum}", lambda v: v > greatest
    if column.allowed is not None:
        members = frozenset(rounded(dtype, m) if dtype in FLOATS else m for m in column.allowed)
        yield "allowed", lambda v: v == v and v not in members
    if dtype in FLOATS and not column.nullable:
        yield "not nullable: it", lambda v: v != v


def _tensor_rules(field: Field) -> Iterator[Rule]:
    if field.spec.dtype in FLOATS and not field.infinite:
        yield "not infinite: it", lambda v: v in (math.inf, -math.inf)
    if field.max_bytes is not None:
        limit = field.max_bytes
        yield f"max_bytes {limit}", lambda v: len(v.encode("utf-8", "replace")) > limit


def _seen(field: Field, column: int, columns: int, recorded: Sequence[Tensor]) -> list[Value]:
    """The recorded values of one column, as the tensor's type holds them."""
    values = [v for t in recorded for v in (t.data[column::columns] if columns > 1 else t.data)]
    dtype = field.spec.dtype
    return [rounded(dtype, v) if dtype in FLOATS and not isinstance(v, str) else v for v in values]


def _observed(field: Field, column: Column, columns: int) -> list[Value]:
    """What a contract remembers of the values of one column: the extremes, and whether others than numbers came."""
    extremes = column.observed or (field.observed if columns == 1 else None) or ()
    missing = column.nullable or not (field.finite or field.table or columns > 1)
    return [*extremes, *[math.nan] * missing]


def _apart(side: Side, field: Field, evidence: Evidence) -> Iterator[str]:
    """Whether lists that shall go together were recorded apart."""
    other = side.inputs.get(field.same_length_as or "")
    if other is None:
        return
    both = [
        (rows, asked)
        for rows, asked in zip(side.rows, side.asked, strict=True)
        if field.name in rows and other.name in asked
    ]
    apart = sum(_length(field, rows) != _length(other, asked) for rows, asked in both)
    if apart:
        yield (
            f"{side.place(field.name)}: same_length_as {other.name!r} {evidence.does} {apart} of the {len(both)} "
            "proved requests, whose lengths differ: leave it out"
        )


def _length(field: Field, rows: Mapping[str, Tensor]) -> int:
    """How long the one dim is that may have any length."""
    return rows[field.name].shape[1 + field.spec.dims.index(-1)]


def _told(
    where: str, rules: Iterable[Rule], seen: Sequence[Value], evidence: Evidence, *, counted: bool
) -> Iterator[str]:
    for rule, refuses in rules:
        refused = [v for v in seen if refuses(v)]
        if refused:
            count = f"{len(refused)} of the {len(seen)} {evidence.values}" if counted else evidence.values
            yield (
                f"{where}: {rule} {evidence.does} {count}, such as {_shown(refused[0])}{_reach(seen)}; "
                f"{evidence.follows}"
            )


def _shown(value: Value) -> str:
    return repr(value[:40] + "…") if isinstance(value, str) and len(value) > 40 else repr(value)


def _reach(seen: Sequence[Value]) -> str:
    numbers = [v for v in seen if is_number(v)]
    return f" (they reach from {min(numbers):.6g} to {max(numbers):.6g})" if numbers else ""
