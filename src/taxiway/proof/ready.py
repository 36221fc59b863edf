"""ONNX models that the notebook built itself: samples from the runs it made, contract from the graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from taxiway.core.errors import Refused
from taxiway.proof.cases import Case, columns_of_rows
from taxiway.proof.graph import finish


@dataclass(frozen=True, slots=True)
class Ready:
    """The model's bytes as served, and the dims of one row of each tensor (-1 = any length)."""

    model: bytes
    dims: Mapping[str, tuple[int, ...]]
    outputs: tuple[str, ...]


def ready(data: bytes) -> Ready:
    """Check a model for serving. Raises Refused: too new, or an input or output without a free batch axis."""
    model = onnx.load_model_from_string(data)
    graph = model.graph
    stored = {t.name for t in graph.initializer}
    inputs = [v for v in graph.input if v.name not in stored]
    fixed = [v.name for v in (*inputs, *graph.output) if not _free_batch(v)]
    if fixed:
        raise Refused(
            f"the ONNX model fixes the batch size of {', '.join(fixed)}: requests could not be put together.",
            "What to do: give each input and output a first axis with a name, for instance [None, 30] or ['N', 30].",
            code="fixed-batch",
        )
    dims = {v.name: _dims(v) for v in (*inputs, *graph.output)}
    return Ready(finish(model, own=False), dims, tuple(v.name for v in graph.output))


def cases(model: Ready, runs: Iterable[tuple[Mapping[str, Any], Sequence[str] | None, Sequence[Any]]]) -> list[Case]:
    """Runs that the notebook made (feeds, names of the outputs asked for or None for all, answers) as cases.

    Raises Refused when there is none that asked for every output: then nothing is known to be right.
    """
    found = []
    for feeds, names, answers in runs:
        asked = list(names or model.outputs)
        if set(asked) == set(model.outputs) and len(next(iter(feeds.values()), ())):
            by_name = dict(zip(asked, answers, strict=True))
            expected = {n: columns_of_rows(np.asarray(by_name[n])) for n in model.outputs}
            found.append(Case({k: np.asarray(v) for k, v in feeds.items()}, expected))
    if not found:
        raise Refused(
            "the notebook never runs the ONNX model, so no right answers are known.",
            "What to do: run it in the notebook on some rows: "
            "onnxruntime.InferenceSession(model.SerializeToString()).run(None, {...}).",
            code="no-samples",
        )
    return found


def _free_batch(value: Any) -> bool:
    dims = value.type.tensor_type.shape.dim
    return bool(dims) and not dims[0].HasField("dim_value")


def _dims(value: Any) -> tuple[int, ...]:
    dims = value.type.tensor_type.shape.dim[1:]
    return tuple(int(d.dim_value) if d.HasField("dim_value") else -1 for d in dims) or (1,)
