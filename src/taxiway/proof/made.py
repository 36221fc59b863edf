"""Rows that no notebook shows but callers send: where exported models go wrong without a word.

Each made row is a row of the notebook with one value changed:

- `tie`       halfway between two neighbouring values of a column of whole numbers, where trees have their thresholds
- `fine-tie`  the same for a column of other numbers, to the last bit of a float32: what no caller hits but by chance
- `edge`      a little below the least or above the greatest value
- `missing`   NaN, where the notebook's own rows have NaN
- `unseen`    a category or text that the notebook does not have, the empty text among them
- `non-ascii` text beyond ASCII: accents, other scripts, emoji

Everything is a function of the rows: the same rows give the same made rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from taxiway.proof.cases import Array
from taxiway.proof.tensors import Signature

KINDS: Final = ("tie", "fine-tie", "edge", "missing", "unseen", "non-ascii")
_UNSEEN: Final = ("", "never seen before", " ")
_BEYOND_ASCII: Final = ("Crème brûlée d'été", "Žluťoučký kůň", "東京 駅", "ДОМ", "naïve café 🙂")


@dataclass(frozen=True, slots=True, eq=False)
class Made:
    """Rows of one kind, in the form of the table that they were made from."""

    kind: str
    table: Any
    rows: int


@dataclass(frozen=True, slots=True)
class _Change:
    kind: str
    column: Any
    value: Any


def made(inputs: Signature, table: Any, count: int) -> tuple[Made, ...]:
    """About `count` rows (as near as equal shares for each kind and column come), in the order of KINDS."""
    changes = [c for column, values in _columns(inputs, table) for c in _changes(column, values)]
    found = []
    for kind in KINDS:
        mine = [c for c in changes if c.kind == kind]
        share = max(1, count // max(1, len({c.kind for c in changes})))
        chosen = [mine[i] for i in _spread(len(mine), share)]
        if chosen:
            found.append(Made(kind, _changed(table, chosen), len(chosen)))
    return tuple(found)


def _columns(inputs: Signature, table: Any) -> Iterator[tuple[Any, Array]]:
    if hasattr(table, "iloc"):
        names = [i.column for i in inputs] if inputs[0].column is not None else list(table.columns)
        for name in names:
            yield name, table[name].to_numpy()
    elif table.ndim == 1:
        yield None, table
    else:
        for j in range(table.shape[1]):
            yield j, table[:, j]


def _changes(column: Any, values: Array) -> Iterator[_Change]:
    if values.dtype.kind not in "biuf":
        yield from (_Change("unseen", column, text) for text in (*_UNSEEN, *_variants(values)))
        yield from (_Change("non-ascii", column, text) for text in _BEYOND_ASCII)
        return
    finite = np.unique(values[np.isfinite(values.astype(np.float64))].astype(np.float64))
    if not len(finite):
        return
    if values.dtype.kind == "f" and np.isnan(values).any():
        yield _Change("missing", column, np.nan)
    whole = np.array_equal(finite, np.round(finite))
    if values.dtype.kind != "f":
        yield from (_Change("unseen", column, v) for v in _gaps(finite))
        return
    yield from (_Change("tie" if whole else "fine-tie", column, v) for v in _ties(finite, whole))
    step = (finite[-1] - finite[0]) / 10 or 1.0
    for value in (finite[0] - step, finite[-1] + step):
        yield _Change("edge", column, _float32(np.round(value) if whole else value))


def _variants(values: Array) -> list[str]:
    """Other spellings of the most usual text."""
    words, counts = np.unique(values.astype(str), return_counts=True)
    usual = str(words[counts.argmax()])
    known = set(words.tolist())
    return [v for v in (usual.upper(), usual.lower(), f" {usual} ", usual * 3) if v not in known]


def _gaps(finite: Array) -> list[int]:
    between = [int(a) + 1 for a, b in itertools.pairwise(finite) if b - a > 1]
    return [int(finite[0]) - 1, int(finite[-1]) + 1, *between[:8]]


def _ties(finite: Array, whole: bool) -> list[float]:
    """Halfway between neighbours; of whole numbers both those that are whole and those that end in .5."""
    halves = (finite[1:] + finite[:-1]) / 2
    return [_float32(v) for v in (halves if whole else halves[_spread(len(halves), 200)])]


def _float32(value: Any) -> float:
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def _changed(table: Any, changes: list[_Change]) -> Any:
    rows = _spread(len(table), len(changes))
    rows = [rows[i % len(rows)] for i in range(len(changes))]
    if not hasattr(table, "iloc"):
        found = table[rows].copy()
        for i, change in enumerate(changes):
            found[i if change.column is None else (i, change.column)] = change.value
        return found
    found = table.iloc[rows].reset_index(drop=True)
    for column in {c.column for c in changes}:
        values = found[column].to_numpy().copy()
        for i, change in enumerate(changes):
            if change.column == column:
                values[i] = change.value
        found[column] = values
    return found


def _spread(count: int, wanted: int) -> list[int]:
    """At most `wanted` different places, evenly over range(count)."""
    if count <= wanted:
        return list(range(count))
    return sorted({round(i * (count - 1) / max(1, wanted - 1)) for i in range(wanted)})
