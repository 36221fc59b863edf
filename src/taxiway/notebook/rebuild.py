"""One pipeline from the transformers and the model that a notebook fitted one by one.

Stages: trace the rows that the model was fitted on back through the transformers whose output they were (`_chain`),
trace every other row that the model saw through the same chain, build the pipeline, and prove on all those rows that
it answers what the notebook's model answered. What cannot be traced or proved is refused, never guessed.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from sklearn.pipeline import Pipeline

from taxiway.core.errors import Refused
from taxiway.notebook.candidates import Candidate
from taxiway.notebook.record import Call
from taxiway.notebook.rows import (
    Narrow,
    Table,
    columns,
    float32,
    is_frame,
    places,
    shared_columns,
    stack,
    table,
    take,
    trouble,
    unique,
)

_WAY_OUT: Final = "Put scaler and model in one Pipeline (sklearn.pipeline.make_pipeline), fit that, and build again"
_ANSWERS: Final = ("predict_proba", "predict")
_SAW_ROWS: Final = frozenset({"predict", "predict_proba", "decision_function", "score"})


@dataclass(frozen=True, slots=True, eq=False)
class Rebuilt:
    """The whole way from raw rows to answers.

    `train` and `rows` are tables (see `rows.py`): what it was fitted on, and every raw row the notebook showed it
    (training rows first, each once). `names` are the columns, when it was fitted on a DataFrame; `narrow` says which
    columns were float32.
    """

    estimator: Any
    train: Table
    rows: Table
    names: tuple[str, ...]
    steps: tuple[str, ...]
    narrow: Narrow = False

    def table(self, rows: Table) -> Any:
        """`rows` in the form that the estimator was fitted on."""
        return as_table(rows, self.names, self.narrow)


@dataclass(frozen=True, slots=True, eq=False)
class _Step:
    """A transformer with all rows that went through it since it was fitted last."""

    transformer: Any
    cell: int
    before: Table
    after: Table
    names: tuple[str, ...]
    given: Any


def as_table(rows: Table, names: tuple[str, ...], narrow: Narrow) -> Any:
    """A DataFrame when there are names, else the rows themselves; float32 where the notebook's rows were."""
    if names and not is_frame(rows):
        import pandas

        rows = pandas.DataFrame(rows, columns=list(names))
    if is_frame(rows):
        return rows.astype({n: np.float32 for n in rows.columns if narrow is True or (narrow and n in narrow)})
    return rows.astype(np.float32) if narrow and rows.dtype != object else rows


def rebuild(candidate: Candidate, calls: Sequence[Call]) -> Rebuilt:
    """Rebuild `candidate`. Raises Refused when its rows are no table, cannot be traced, or the answers differ."""
    mine = [c for c in calls if c.owner is candidate.owner]
    fits = [i for i, c in enumerate(mine) if c.method == "fit"]
    if not fits:
        raise Refused(
            f"{candidate.label}: the notebook never calls {candidate.name}.fit(...) itself, so the rows that it "
            "was trained on are unknown. Fit it in the notebook and build again",
            code="untraceable",
        )
    seen = [mine[fits[-1]], *(c for c in mine[fits[-1] + 1 :] if c.method in _SAW_ROWS)]
    fit_rows = _table(candidate, seen[0])
    steps = _steps(calls)
    chain = _chain(candidate, seen[0], fit_rows, steps)
    names = chain[0].names if chain else columns(seen[0].rows)
    estimator = _joined(candidate.model, chain)
    train = _back(candidate, seen[0], fit_rows, chain)
    raw = [train]
    narrow = float32(chain[0].given if chain else seen[0].rows)
    _prove(candidate, estimator, as_table(train, names, narrow), seen[0], None)
    for call in seen[1:]:
        traced = _back(candidate, call, _table(candidate, call), chain)
        _prove(candidate, estimator, as_table(traced, names, narrow), call, call.result)
        raw.append(traced)
    labels = (*(type(s.transformer).__name__ for s in chain), candidate.class_name)
    return Rebuilt(estimator, train, unique(raw), names, labels, narrow)


def _table(candidate: Candidate, call: Call) -> Table:
    rows = table(call.rows)
    if rows is None or not len(rows):
        raise Refused(
            f"{candidate.label}: the rows that cell {call.cell} gives to .{call.method}() cannot be served: "
            f"{trouble(call.rows) if rows is None else 'there are none'}",
            code="not-servable",
        )
    return rows


def _steps(calls: Sequence[Call]) -> list[_Step]:
    """Every transformer with the rows that went through it since its last fit, the latest first."""
    found = []
    for owner in {id(c.owner): c.owner for c in calls if c.method in ("transform", "fit_transform")}.values():
        mine = [c for c in calls if c.owner is owner and c.method.startswith(("fit", "transform"))]
        last_fit = max((i for i, c in enumerate(mine) if c.method.startswith("fit")), default=0)
        pairs = [(table(c.rows), table(c.result), c) for c in mine[last_fit:] if c.method.endswith("transform")]
        good = [(a, b, c) for a, b, c in pairs if a is not None and b is not None and len(a) == len(b)]
        if good and len({(a.shape[1:], b.shape[1:]) for a, b, _ in good}) == 1:
            before, after = stack([a for a, _, _ in good]), stack([b for _, b, _ in good])
            names = next((n for _, _, c in good if (n := columns(c.rows))), ())
            found.append(_Step(owner, good[-1][2].cell, before, after, names, good[0][2].rows))
    return found[::-1]


def _chain(candidate: Candidate, fit: Call, rows: Table, steps: list[_Step]) -> list[_Step]:
    """The transformers from the raw rows to `rows`, first to last."""
    chain: list[_Step] = []
    left = [s for s in steps if s.transformer is not candidate.owner]
    while True:
        step = next((s for s in left if places(rows, s.after) is not None and not _idle(s, rows)), None)
        if step is None:
            break
        chain.insert(0, step)
        left.remove(step)
        rows = take(step.before, places(rows, step.after) or [])
    half = next((s for s in left if not _idle(s, rows) and shared_columns(rows, s.after)), None)
    if half is not None:
        raise _untraceable(
            candidate,
            f"the rows of .{fit.method}() in cell {fit.cell} take some columns, but not all, from "
            f"{type(half.transformer).__name__} (cell {half.cell})",
        )
    return chain


def _idle(step: _Step, rows: Table) -> bool:
    """A transformer that left everything as it was is no part of the way, however alike the rows look."""
    if is_frame(step.before) or is_frame(step.after) or step.before.dtype == object:
        return False
    same = step.before.shape == step.after.shape and np.array_equal(step.before, step.after, equal_nan=True)
    return same and places(rows, step.before) is not None


def _back(candidate: Candidate, call: Call, rows: Table, chain: list[_Step]) -> Table:
    for step in reversed(chain):
        found = places(rows, step.after)
        if found is None:
            raise _untraceable(
                candidate,
                f"cell {call.cell} calls .{call.method}() on rows that did not come out of "
                f"{type(step.transformer).__name__} (cell {step.cell}), though the model was fitted on such rows",
            )
        rows = take(step.before, found)
    return rows


def _untraceable(candidate: Candidate, what: str) -> Refused:
    return Refused(f"{candidate.label}: {what}.", f"What to do: {_WAY_OUT}.", code="untraceable")


def _joined(model: Any, chain: list[_Step]) -> Any:
    if not chain:
        return model
    # The fitted objects themselves: nothing is trained again.
    steps = [(f"step{i}", s.transformer) for i, s in enumerate(chain, 1)]
    return Pipeline([*steps, ("model", model)])


def _prove(candidate: Candidate, estimator: Any, raw: Any, call: Call, recorded: Any) -> None:
    """The rebuilt pipeline on raw rows answers what the model answers on the notebook's rows, and answered then."""
    with warnings.catch_warnings():
        # "X does not have valid feature names": the notebook's own mix of tables and arrays, of no effect here.
        warnings.simplefilter("ignore")
        for method in _ANSWERS:
            if not hasattr(estimator, method):
                continue
            got = np.asarray(getattr(estimator, method)(raw))
            want = np.asarray(getattr(candidate.owner, method)(call.rows))
            _same(candidate, call, method, got, want)
            if call.method == method:
                _same(candidate, call, method, got, np.asarray(recorded))


def _same(candidate: Candidate, call: Call, method: str, got: Any, want: Any) -> None:
    # Matrix products of another batch size may differ in the last bits; labels may not differ at all.
    near = got.dtype.kind == "f" and want.dtype.kind == "f" and got.shape == want.shape
    wrong = ~np.isclose(got, want, rtol=1e-9, atol=1e-12) if near else np.atleast_1d(got != want)
    if wrong.any():
        raise Refused(
            f"{candidate.label}: scaler and model put into one pipeline do not answer what the notebook's model "
            f"answers ({method} on the rows of cell {call.cell}: {int(wrong.sum())} of {wrong.size} values differ).",
            f"What to do: {_WAY_OUT}.",
            code="rebuild-differs",
        )
