"""A pipeline in two: a front that stays Python, and a rest that becomes ONNX."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sklearn.pipeline import Pipeline


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Two fitted halves: `rest.predict(front.transform(rows))` is what the whole answers."""

    front: Any
    rest: Any

    @property
    def names(self) -> tuple[str, ...]:
        """The classes of the front's steps."""
        return tuple(type(step).__name__ for step in _steps(self.front))


def splits(estimator: Any) -> Iterator[Split]:
    """Every way to cut a fitted pipeline, the shortest front first; none for anything else."""
    steps = _steps(estimator)
    for cut in range(1, len(steps)):
        front, rest = steps[:cut], steps[cut:]
        if hasattr(front[-1], "transform"):
            yield Split(_joined(front), _joined(rest))


def _steps(estimator: Any) -> list[Any]:
    """The fitted steps in order; pipelines in pipelines and in searches are opened, steps that do nothing left out."""
    inner = getattr(estimator, "best_estimator_", None)
    if inner is not None:
        return _steps(inner)
    if estimator is None or isinstance(estimator, str):
        return []
    steps: Any = getattr(estimator, "steps", None)
    return [estimator] if steps is None else [s for _, step in steps for s in _steps(step)]


def _joined(steps: list[Any]) -> Any:
    return steps[0] if len(steps) == 1 else Pipeline([(f"step{i}", s) for i, s in enumerate(steps, 1)])
