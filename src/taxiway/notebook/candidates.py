"""Which models a notebook made, and which of them is meant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import onnx
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from taxiway.core.errors import Refused
from taxiway.notebook.record import Call
from taxiway.notebook.session import Run
from taxiway.notebook.torch_calls import METHOD, is_module


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A model that could be shipped: a fitted predictor, a module of PyTorch, or a ready ONNX model.

    `cell` is where it was fitted last (bound, for ONNX); `others` are further names of the same object; `score` is
    the last result of its `.score()`; `model` is the object itself (the best estimator of a search).
    """

    name: str
    cell: int
    class_name: str
    features: int | None
    score: float | None
    model: Any
    owner: Any
    others: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        return f"{self.name}@{self.cell}"

    @property
    def is_onnx(self) -> bool:
        return self.class_name in ("ModelProto", "InferenceSession")

    @property
    def is_torch(self) -> bool:
        return is_module(self.owner)

    def line(self) -> str:
        """One line for a person to choose by, for instance `--model clf@4   SVC, 30 features, score 0.9`."""
        words = [self.class_name]
        if self.features is not None:
            words.append(f"{self.features} features")
        if self.score is not None:
            words.append(f"score {self.score:.4g}")
        return f"--model {self.label}   {', '.join(words)}"


def candidates(run: Run) -> tuple[Candidate, ...]:
    """All candidates by cell and name; parts of another candidate and unfitted models are not among them."""
    things: dict[int, list[tuple[str, int, Any]]] = {}
    for bound in run.bindings:
        things.setdefault(id(bound.thing), []).append((bound.name, bound.cell, bound.thing))
    found = []
    for names in things.values():
        thing = names[0][2]
        if _is_onnx(thing) or is_module(thing) or _is_fitted_predictor(thing):
            found.append(_candidate(names, run.calls))
    inner = {id(part) for c in found if not c.is_onnx for part in _parts(c.owner)}
    found = [c for c in found if id(c.owner) not in inner]
    return tuple(sorted(_merged(found), key=lambda c: (c.cell, c.name)))


def choose(found: tuple[Candidate, ...], wanted: str | None, where: str) -> Candidate:
    """The candidate called `wanted` (NAME@CELL, or NAME when that is enough), or the only one.

    Raises Refused with code `no-model` or `choose-model`; the latter lists every choice.
    """
    if not found:
        raise Refused(
            f"{where}: no fitted model was found. A notebook must leave a fitted scikit-learn estimator with "
            "`predict`, a module of PyTorch, or an ONNX model, under a name of its own at the top level",
            code="no-model",
        )
    if wanted is None and len(found) == 1:
        return found[0]
    lines = [f"    {c.line()}" for c in found]
    if wanted is None:
        raise Refused(f"{where}: {len(found)} models could be shipped; say which:", *lines, code="choose-model")
    name, at, cell = wanted.partition("@")
    hits = [c for c in found if name in (c.name, *c.others) and (not at or cell == str(c.cell))]
    if len(hits) != 1:
        what = "names no model" if not hits else "names more than one model"
        raise Refused(f"{where}: --model {wanted} {what}; these could be shipped:", *lines, code="choose-model")
    return hits[0]


def _candidate(names: list[tuple[str, int, Any]], calls: Iterable[Call]) -> Candidate:
    name, cell, thing = names[0]
    mine = [c for c in calls if c.owner is thing]
    fits = [c.cell for c in mine if c.method.startswith("fit") or (c.method == METHOD and c.rows["training"])]
    scores = [c.came for c in mine if c.method == "score" and c.cell >= (fits[-1] if fits else 0)]
    model = getattr(thing, "best_estimator_", thing)
    return Candidate(
        name=name,
        cell=fits[-1] if fits else cell,
        class_name=type(model).__name__,
        features=_features(model, mine),
        score=float(scores[-1]) if scores else None,
        model=model,
        owner=thing,
        others=tuple(dict.fromkeys(n for n, _, _ in names[1:] if n != name)),
    )


def _features(model: Any, calls: list[Call]) -> int | None:
    if not is_module(model):
        return getattr(model, "n_features_in_", None)
    asked = [c.rows["inputs"] for c in calls if c.method == METHOD and c.rows["inputs"]]
    if not asked or len(asked[-1]) != 1:
        return None
    (values,) = asked[-1].values()
    return int(values.shape[-1]) if values.ndim == 2 else None


def _is_onnx(thing: Any) -> bool:
    return type(thing).__name__ in ("ModelProto", "InferenceSession")


def _is_fitted_predictor(thing: Any) -> bool:
    try:
        if not callable(getattr(thing, "predict", None)):
            return False
        check_is_fitted(thing)
    except (NotFittedError, TypeError, AttributeError, ValueError):
        return False
    # A search without refit has tried many models and kept none.
    return not hasattr(thing, "cv_results_") or hasattr(thing, "best_estimator_")


def _parts(thing: Any, depth: int = 4) -> Iterator[Any]:
    """Estimators inside an estimator: parameters, steps and fitted attributes."""
    if is_module(thing):
        yield from list(thing.modules())[1:]
        return
    if depth == 0 or not hasattr(thing, "__dict__"):
        return
    for value in vars(thing).values():
        for part in _flat(value):
            if hasattr(part, "fit"):
                yield part
                yield from _parts(part, depth - 1)


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, list | tuple):
        for inner in value:
            yield from _flat(inner)
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _flat(inner)
    else:
        yield value


def _merged(found: list[Candidate]) -> list[Candidate]:
    """One candidate for an ONNX model and the sessions opened on its bytes."""
    kept: list[Candidate] = []
    seen: set[bytes] = set()
    for c in sorted(found, key=lambda c: c.class_name == "InferenceSession"):
        data = onnx_bytes(c.owner) if c.is_onnx else None
        if data is not None and data in seen:
            continue
        if data is not None:
            seen.add(data)
        elif c.class_name == "InferenceSession":
            continue
        kept.append(c)
    return kept


def onnx_bytes(thing: Any) -> bytes | None:
    """The bytes of an ONNX model, or of the model that a session was opened on (None when it does not say)."""
    if hasattr(thing, "SerializeToString"):
        return bytes(thing.SerializeToString(deterministic=True))
    data = getattr(thing, "_model_bytes", None)
    path = getattr(thing, "_model_path", None)
    if data is None and path:
        with open(path, "rb") as file:  # noqa: PTH123 - ONNX Runtime takes any kind of path
            data = file.read()
    if data is None:
        return None
    return bytes(onnx.load_model_from_string(data).SerializeToString(deterministic=True))
