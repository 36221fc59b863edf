"""Golden samples: real rows with the answers of the original model, kept with the revision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from taxiway.core.errors import Refused
from taxiway.core.sample import Golden
from taxiway.proof.cases import Case, tensor
from taxiway.proof.parity import Tolerance

SINGLES: Final = 8
BATCH: Final = 5


def golden(cases: Sequence[Case], good: Sequence[Sequence[int]], limits: Tolerance) -> tuple[Golden, ...]:
    """Up to 8 single rows, spread evenly over the `good` rows of each case, and one batch of up to 5 rows.

    Every class that has a label in the rows is among the singles when there is room. Raises Refused when no row is
    good.
    """
    if not any(good):
        raise Refused(
            "no answer of the model is certain: in every row its two most probable classes are as good as equal.",
            "What to do: give the model features that tell the classes apart, or ship one that decides.",
            code="no-golden",
        )
    spots = [(c, row) for c, rows in enumerate(good) for row in rows]
    singles = [spots[i] for i in _spread(len(spots), SINGLES)]
    singles = _with_every_label(cases, spots, singles)
    samples = [_sample(f"row-{i}", cases[c].take([row]), limits) for i, (c, row) in enumerate(singles, 1)]
    largest = max(range(len(cases)), key=lambda c: len(good[c]))
    if len(good[largest]) > 1:
        rows = [good[largest][i] for i in _spread(len(good[largest]), BATCH)]
        samples.append(_sample(f"batch-of-{len(rows)}", cases[largest].take(rows), limits))
    return tuple(samples)


def _sample(name: str, case: Case, limits: Tolerance) -> Golden:
    inputs = {k: tensor(v) for k, v in sorted(case.feeds.items())}
    outputs = {k: tensor(v) for k, v in sorted(case.expected.items())}
    return Golden(name, inputs, outputs, limits.atol, limits.rtol)


def _spread(count: int, wanted: int) -> list[int]:
    """`wanted` different places over range(count), first and last included."""
    if count <= wanted:
        return list(range(count))
    return [round(i * (count - 1) / (wanted - 1)) for i in range(wanted)]


def _with_every_label(
    cases: Sequence[Case], spots: list[tuple[int, int]], chosen: list[tuple[int, int]]
) -> list[tuple[int, int]]:
    def label(spot: tuple[int, int]) -> object:
        values = cases[spot[0]].expected.get("label")
        return None if values is None else values[spot[1]].ravel().tolist()[0]

    missing = {label(s) for s in spots} - {label(s) for s in chosen}
    extra = [next(s for s in spots if label(s) == wanted) for wanted in sorted(missing, key=str)]
    return sorted(chosen + extra[: 16 - BATCH - len(chosen)])
