"""How a model's traffic is split between its revisions.

Weights are whole hundredths of a percent and always add up to 10,000: with a constant total, growing one
revision's share never reshuffles the callers of another.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Final

from taxiway.core.errors import Usage

TOTAL: Final = 10_000

Split = Mapping[int, int]  # revision number -> weight; no zero entries; empty = nobody answers


def whole(number: int) -> Split:
    """All traffic to one revision."""
    return {number: TOTAL}


def parse(words: list[str]) -> Split:
    """Parse `["2=90", "3=10"]` (percent, two decimals at most); raises `Usage`."""
    split: dict[int, int] = {}
    for word in words:
        left, equals, right = word.partition("=")
        if not equals or not left.isascii() or not left.isdigit() or int(left) < 1:
            raise Usage(f"split {word!r}: write REVISION=PERCENT, for instance 3=10")
        if int(left) in split:
            raise Usage(f"split: revision {left} is named twice")
        split[int(left)] = _weight(word, right)
    total = sum(split.values())
    if total != TOTAL:
        raise Usage(f"split {' '.join(words)}: the percentages add up to {total / 100:g}, not 100")
    return {number: weight for number, weight in split.items() if weight}


def _weight(word: str, percent: str) -> int:
    try:
        weight = Decimal(percent) * 100
    except InvalidOperation:
        raise Usage(f"split {word!r}: {percent!r} is not a percentage") from None
    if not weight.is_finite() or not 0 <= weight <= TOTAL:
        raise Usage(f"split {word!r}: a percentage lies between 0 and 100")
    if weight != weight.to_integral_value():
        raise Usage(f"split {word!r}: the finest step is 0.01 %")
    return int(weight)


def show(split: Split) -> str:
    """`2=90 % 3=10 %`, or `none`."""
    return " ".join(f"{n}={w / 100:g} %" for n, w in sorted(split.items())) or "none"
