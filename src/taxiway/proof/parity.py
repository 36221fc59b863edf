"""The same rows through the original model and its export: how far apart the answers are.

A number passes when |got - expected| <= atol + rtol * |expected|. A label passes when it is the same, or when the
original's two most probable classes lie within TIE of each other (both answers are then as right). A person can say
how far numbers may be apart; labels, and whole numbers of any kind, are never tolerated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from taxiway.proof.cases import Array, Case

TIE: Final = 1e-5
BATCHES: Final = (1, 2, 5)


@dataclass(frozen=True, slots=True)
class Tolerance:
    """`overridden` has what would have been, for each of the two that a person has set."""

    atol: float = 1e-5
    rtol: float = 1e-4
    overridden: Mapping[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As it stands in `parity.json`: `overridden` only where there is something in it."""
        limits = {"atol": self.atol, "rtol": self.rtol, "tie": TIE}
        return limits | ({"overridden": dict(self.overridden)} if self.overridden else {})


@dataclass(frozen=True, slots=True)
class Offence:
    """A row whose answer is wrong: its number among all rows, the output, and both answers to it."""

    row: int
    output: str
    expected: tuple[Any, ...]
    got: tuple[Any, ...]
    inputs: tuple[Any, ...]

    def __str__(self) -> str:
        return (
            f"row {self.row}: {self.output} is {_list(self.got)}, the notebook's model says {_list(self.expected)}; "
            f"input {_list(self.inputs)}"
        )


@dataclass(frozen=True, slots=True)
class Errors:
    """Of one output. `relative` counts values larger than the absolute tolerance only."""

    absolute: float
    relative: float
    flips: int


@dataclass(frozen=True, slots=True)
class Parity:
    """Over all `rows`; `offences` is empty when everything passes; `good` are the rows fit for golden samples."""

    rows: int
    outputs: Mapping[str, Errors]
    offences: tuple[Offence, ...]
    offending_rows: int
    tolerance: Tolerance
    good: tuple[tuple[int, ...], ...]

    @property
    def flips(self) -> int:
        return sum(e.flips for e in self.outputs.values())

    def to_json(self) -> dict[str, Any]:
        """The figures of `parity.json`; the caller adds versions."""
        errors = self.outputs.values()
        return {
            "rows": self.rows,
            "max_abs_error": max((e.absolute for e in errors), default=0.0),
            "max_rel_error": max((e.relative for e in errors), default=0.0),
            "label_flips": self.flips,
            "per_output": {
                name: {"max_abs_error": e.absolute, "max_rel_error": e.relative, "flips": e.flips}
                for name, e in sorted(self.outputs.items())
            },
            "tolerance": self.tolerance.to_json(),
            "batches": list(BATCHES),
        }


def tolerance(cases: Sequence[Case], *, atol: float | None = None, rtol: float | None = None) -> Tolerance:
    """What a person says, else: the absolute tolerance grows with outputs larger than 1, as float32 itself does."""
    largest = 1.0
    for case in cases:
        for values in case.expected.values():
            if values.dtype.kind == "f" and values.size:
                finite = np.abs(values[np.isfinite(values)])
                largest = max(largest, float(finite.max(initial=0.0)))
    inferred = Tolerance(atol=float(f"{1e-5 * largest:.3g}"))
    said = {name: float(v) for name, v in (("atol", atol), ("rtol", rtol)) if v is not None}
    return replace(inferred, **said, overridden={name: getattr(inferred, name) for name in said})


def compare(cases: Sequence[Case], got: Sequence[Mapping[str, Array]], limits: Tolerance) -> Parity:
    """Compare the export's answers `got` with what is expected in `cases` (same order, same rows)."""
    outputs: dict[str, Errors] = {}
    offences: list[Offence] = []
    good: list[tuple[int, ...]] = []
    start, offending = 0, 0
    for case, answers in zip(cases, got, strict=True):
        wrong = np.zeros(case.rows, dtype=bool)
        shaky = np.zeros(case.rows, dtype=bool)
        for name, expected in case.expected.items():
            bad, errors, unsure = _output(case, expected, answers[name], limits)
            outputs[name] = _worse(outputs.get(name), errors)
            offences += [_offence(case, name, answers[name], i, start) for i in np.flatnonzero(bad)[:5].tolist()]
            wrong |= bad
            shaky |= unsure
        good.append(tuple(np.flatnonzero(~wrong & ~shaky).tolist()))
        offending += int(wrong.sum())
        start += case.rows
    return Parity(start, outputs, tuple(offences[:5]), offending, limits, tuple(good))


def same_in_batches(case: Case, run: Callable[[Mapping[str, Array]], Mapping[str, Array]], limits: Tolerance) -> bool:
    """Whether rows answered 1, 2 and 5 at a time get the answers that they get all together."""
    whole = run(case.feeds)
    for size in BATCHES:
        for start in range(0, min(case.rows, 10), size):
            part = list(range(start, min(start + size, case.rows)))
            for name, values in run(case.take(part).feeds).items():
                if values.shape != whole[name][part].shape or not _close(whole[name][part], values, limits).all():
                    return False
    return True


def _output(case: Case, expected: Array, got: Array, limits: Tolerance) -> tuple[Array, Errors, Array]:
    """(wrong rows, errors, rows whose answer hangs by a hair)."""
    rows = len(expected)
    if expected.shape != got.shape:
        return np.ones(rows, dtype=bool), Errors(float("inf"), float("inf"), 0), np.zeros(rows, dtype=bool)
    if expected.dtype.kind == "f":
        bad = np.asarray(~_close(expected, got, limits).reshape(rows, -1).all(axis=1))
        return bad, _distance(expected, got, limits), np.zeros(rows, dtype=bool)
    flipped = np.asarray(expected != got).reshape(rows, -1).any(axis=1)
    ties = _ties(case)
    return flipped & ~ties, Errors(0.0, 0.0, int(flipped.sum())), ties | flipped


def _ties(case: Case) -> Array:
    probabilities = case.expected.get("probabilities")
    if probabilities is None or probabilities.ndim != 2 or probabilities.shape[1] < 2:
        return np.zeros(case.rows, dtype=bool)
    top = np.sort(probabilities, axis=1)[:, -2:]
    return np.asarray(top[:, 1] - top[:, 0] <= TIE)


def _close(expected: Array, got: Array, limits: Tolerance) -> Array:
    if expected.dtype.kind != "f":
        return np.asarray(expected == got)
    return np.isclose(got.astype(np.float64), expected.astype(np.float64), limits.rtol, limits.atol, equal_nan=True)


def _distance(expected: Array, got: Array, limits: Tolerance) -> Errors:
    want, have = expected.astype(np.float64), got.astype(np.float64)
    equal = (want == have) | (np.isnan(want) & np.isnan(have))
    with np.errstate(invalid="ignore"):
        error = np.where(equal, 0.0, np.abs(have - want))
    # NaN on one side only is as far apart as can be; JSON has no infinity, so the largest float says it.
    error = np.nan_to_num(error, nan=np.finfo(np.float64).max)
    large = np.abs(want) > limits.atol
    relative = error[large] / np.abs(want[large])
    return Errors(float(error.max(initial=0.0)), float(relative.max(initial=0.0)), 0)


def _worse(a: Errors | None, b: Errors) -> Errors:
    if a is None:
        return b
    return Errors(max(a.absolute, b.absolute), max(a.relative, b.relative), a.flips + b.flips)


def _offence(case: Case, name: str, got: Array, row: int, start: int) -> Offence:
    inputs = [v for values in case.feeds.values() for v in values[row].ravel().tolist()]
    have = got[row].ravel().tolist() if row < len(got) else ()
    return Offence(start + row, name, tuple(case.expected[name][row].ravel().tolist()), tuple(have), tuple(inputs))


def _list(values: Sequence[Any]) -> str:
    shown = ", ".join(f"{v:.7g}" if isinstance(v, float) else str(v) for v in values[:8])
    return f"[{shown}{', ...' if len(values) > 8 else ''}]"
