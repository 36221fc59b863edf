"""The reference distribution of every input column and every output: what drift is measured against later."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from taxiway.proof.cases import Array, Case

PERCENTS: Final = (0, 1, 5, 10, 20, 25, 30, 40, 50, 60, 70, 75, 80, 90, 95, 99, 100)
MAX_LEVELS: Final = 50


def profile(cases: Sequence[Case], columns: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    """`{"rows", "inputs": {tensor: [column, ...]}, "outputs": {...}}`.

    A tensor of fixed width is described column by column; one of varying length as all its values together,
    with its lengths as a column of their own.
    """
    names = (list(cases[0].feeds), list(cases[0].expected))
    return {
        "rows": sum(c.rows for c in cases),
        "inputs": {n: _tensor([c.feeds[n] for c in cases], columns.get(n, ())) for n in names[0]},
        "outputs": {n: _tensor([c.expected[n] for c in cases], columns.get(n, ())) for n in names[1]},
    }


def _tensor(values: list[Array], names: tuple[str, ...]) -> list[dict[str, Any]]:
    if len({v.shape[1:] for v in values}) > 1:
        flat = np.concatenate([v.ravel() for v in values])
        lengths = np.concatenate([np.full(len(v), v[0].size) for v in values])
        return [describe("values", flat), describe("length", lengths)]
    table = np.concatenate(values).reshape(sum(len(v) for v in values), -1)
    titles = names if len(names) == table.shape[1] else tuple(str(i) for i in range(table.shape[1]))
    return [describe(title, table[:, i]) for i, title in enumerate(titles)]


def describe(title: str, values: Array) -> dict[str, Any]:
    """One column. Numbers: count, missing, mean, std (population), quantiles by percent, deciles as a histogram.

    Whole numbers (of any type) and text of at most 50 levels also have `categories`: level -> count.
    """
    if values.dtype.kind not in "biuf":
        present = [str(v) for v in values.tolist() if v is not None]
        return {"column": title, "count": len(present), "missing": len(values) - len(present)} | _levels(present)
    numbers = values.astype(np.float64)
    finite = numbers[np.isfinite(numbers)]
    found: dict[str, Any] = {"column": title, "count": len(finite), "missing": int(len(numbers) - len(finite))}
    if not len(finite):
        return found
    found |= {"mean": float(finite.mean()), "std": float(finite.std()), "min": float(finite.min())}
    found |= {"max": float(finite.max()), "quantiles": _quantiles(finite), "deciles": _deciles(finite)}
    if values.dtype.kind in "biu" or _is_whole(finite):
        found |= _levels([str(v) for v in (finite.astype(np.int64) if values.dtype.kind == "f" else values).tolist()])
    return found


def _is_whole(finite: Array) -> bool:
    # Beyond 2**53 every float is whole; that says nothing of what it counts.
    return bool((np.abs(finite) < 2.0**53).all()) and np.array_equal(finite, np.round(finite))


def _quantiles(finite: Array) -> dict[str, float]:
    return {str(p): float(q) for p, q in zip(PERCENTS, np.percentile(finite, PERCENTS), strict=True)}


def _deciles(finite: Array) -> dict[str, list[float]]:
    edges = np.unique(np.percentile(finite, range(0, 101, 10)))
    if len(edges) == 1:
        return {"edges": [float(edges[0])] * 2, "counts": [len(finite)]}
    counts, _ = np.histogram(finite, edges)
    return {"edges": edges.tolist(), "counts": counts.tolist()}


def _levels(values: list[str]) -> dict[str, Any]:
    counts = Counter(values)
    if len(counts) > MAX_LEVELS:
        return {"levels": len(counts)}
    return {"categories": dict(sorted(counts.items()))}
