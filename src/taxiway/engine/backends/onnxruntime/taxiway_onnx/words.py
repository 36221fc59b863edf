"""How a refusal speaks of places, values and what is accepted instead.

Whatever a caller sent is shown cut, and so is a long list of what would be accepted: an error travels in headers too,
which have limits of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

LONGEST = 40
MOST = 100
_MOST_BYTES = 2000


def place(where: Sequence[int], names: Sequence[str]) -> str:
    """The row, and the column by number and name."""
    if not where:
        return "its value"
    row = f"row {where[0]}"
    if len(where) == 1:
        return row
    inner = "".join(f"{k}, " for k in where[1:-1])
    return f"{row}, column {inner}{column(where[-1], names)}"


def column(number: int, names: Sequence[str]) -> str:
    """`3 ('age')`, or the number alone where there is no name."""
    return f"{number} ('{names[number]}')" if number < len(names) else str(number)


def value(given: Any) -> str:
    """A value as a reader knows it: text in quotes and cut, NaN and infinities by name."""
    if isinstance(given, str):
        return repr(given if len(given) <= LONGEST else given[:LONGEST] + "…")
    if isinstance(given, float | np.floating) and not np.isfinite(given):
        return "NaN" if np.isnan(given) else ("Infinity" if given > 0 else "-Infinity")
    return str(given)


def nan_only(columns: Iterable[int], names: Sequence[str]) -> str:
    """Where NaN is accepted."""
    where = listed(column(int(k), names) for k in columns)
    return f"NaN is accepted only in column {where}" if where else "NaN is not accepted"


def range_of(least: float | None, greatest: float | None) -> str:
    """What lies within bounds, None where there is none."""
    if least is None:
        return f"numbers of at most {greatest} are accepted"
    if greatest is None:
        return f"numbers of at least {least} are accepted"
    return f"numbers from {least} to {greatest} are accepted"


def listed(texts: Iterable[str]) -> str:
    """As many of `texts` as a message has room for, and how many there are besides; the first in any case."""
    every = list(texts)
    sizes = accumulate(len(text.encode("utf-8", "replace")) + 2 for text in every)
    room = sum(size <= _MOST_BYTES for size in sizes)
    shown = every[: max(1, min(room, MOST))]
    more = f" and {len(every) - len(shown)} more" if len(every) > len(shown) else ""
    return ", ".join(shown) + more
