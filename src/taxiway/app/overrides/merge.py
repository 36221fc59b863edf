"""The field that is meant."""

from __future__ import annotations

from dataclasses import replace

from taxiway.app.overrides.side import Words
from taxiway.app.overrides.words import rules
from taxiway.core.contract import Column, Field
from taxiway.core.tensor import FLOATS


def merged(field: Field, words: Words) -> Field:
    """`field` with what is said of it."""
    table = tuple(_column(c, words, rules(words, i)) for i, c in enumerate(columns(field, words)))
    infinite = words.get("infinite", field.infinite and not words.get("finite", False))
    finite = field.spec.dtype not in FLOATS or not (infinite or any(c.nullable for c in table))
    return replace(
        field,
        table=() if table in ((Column(),), (Column(nullable=True),)) and (finite or table[0].nullable) else table,
        finite=finite,
        infinite=infinite,
        max_length=words.get("max_length", field.max_length),
        max_bytes=words.get("max_bytes", field.max_bytes),
        same_length_as=words.get("same_length_as", field.same_length_as),
    )


def columns(field: Field, words: Words) -> tuple[Column, ...]:
    """The columns there were: one for each element when they are spoken of singly, else as few as will do."""
    table = field.table or (Column(nullable=not field.finite),)
    if not words["columns"] or field.width is None or len(table) == field.width:
        return table
    names = field.columns if len(field.columns) == field.width else ("",) * field.width
    return tuple(replace(table[0], name=name) for name in names)


def free(field: Field) -> Field:
    """A field of the same type, shape and names of which nothing is said."""
    floats = field.spec.dtype in FLOATS
    return Field(field.spec, columns=field.columns, finite=not floats, infinite=floats)


def _column(before: Column, words: Words, said: Words) -> Column:
    allowed = said.get("allowed", before.allowed)
    return replace(
        before,
        nullable=said.get("nullable", not words["finite"] if "finite" in words else before.nullable),
        minimum=said.get("min", before.minimum),
        maximum=said.get("max", before.maximum),
        allowed=None if allowed is None else tuple(allowed),
    )
