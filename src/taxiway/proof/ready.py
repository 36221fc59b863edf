"""ONNX models that the notebook built itself: samples from the runs it made, contract from the graph."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from taxiway.core.errors import Refused
from taxiway.core.tensor import DTYPES
from taxiway.proof.cases import Array, Case, columns_of_rows
from taxiway.proof.graph import finish


@dataclass(frozen=True, slots=True)
class Ready:
    """The model's bytes as served, and the dims of one row (-1 = any length) and numpy type of each tensor."""

    model: bytes
    dims: Mapping[str, tuple[int, ...]]
    dtypes: Mapping[str, np.dtype[Any]]
    outputs: tuple[str, ...]

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(name for name in self.dims if name not in self.outputs)


def ready(data: bytes) -> Ready:
    """Check a model for serving.

    Raises Refused: too new, an input or output that is no tensor of a servable type, or one without a free batch axis.
    """
    model = onnx.load_model_from_string(data)
    graph = model.graph
    stored = {t.name for t in graph.initializer}
    tensors = [*(v for v in graph.input if v.name not in stored), *graph.output]
    dtypes = {v.name: _dtype(v) for v in tensors}
    fixed = [v.name for v in tensors if not _free_batch(v)]
    if fixed:
        raise Refused(
            f"the ONNX model has no free batch axis in {', '.join(fixed)}: requests could not be put together.",
            "What to do: give each input and output a first axis with a name, for instance [None, 30] or ['N', 30].",
            code="fixed-batch",
        )
    return Ready(
        finish(model, own=False), {v.name: _dims(v) for v in tensors}, dtypes, tuple(v.name for v in graph.output)
    )


def cases(model: Ready, runs: Iterable[tuple[Mapping[str, Any], Sequence[str] | None, Sequence[Any]]]) -> list[Case]:
    """Runs that the notebook made (feeds, names of the outputs asked for or None for all, answers) as cases.

    Raises Refused when there is none that fed every input and asked for every output (then nothing is known to be
    right), or when an input or output has another number of rows than the first input.
    """
    found = []
    for feeds, names, answers in runs:
        asked = list(names or model.outputs)
        if set(asked) != set(model.outputs) or set(feeds) != set(model.inputs):
            continue
        given = {n: _array(v, model.dtypes[n]) for n, v in feeds.items()}
        by_name = dict(zip(asked, answers, strict=True))
        case = Case(given, {n: _array(by_name[n], model.dtypes[n]) for n in model.outputs})
        if given and case.rows:
            found.append(_by_rows(case))
    if not found:
        raise Refused(
            "the notebook never runs the ONNX model on all its inputs for all its outputs, so no right answers are "
            "known.",
            "What to do: run it in the notebook on some rows: "
            "onnxruntime.InferenceSession(model.SerializeToString()).run(None, {...}).",
            code="no-samples",
        )
    return found


def _by_rows(case: Case) -> Case:
    for name, values in (*case.feeds.items(), *case.expected.items()):
        if len(values) != case.rows:
            first = next(iter(case.feeds))
            raise Refused(
                f"the first axis of the ONNX model's tensors is not the row: {name} has {len(values)}, {first} has "
                f"{case.rows}, so that requests could not be put together.",
                "What to do: make the first axis of every input and output the row, and give shared values per row.",
                code="batch-dependent",
            )
    return case


def _array(value: Any, dtype: np.dtype[Any]) -> Array:
    """What ONNX Runtime was given or gave, be it a list or a value of its own, as [rows, ...]."""
    values = np.asarray(value.numpy() if hasattr(value, "numpy") else value)
    if values.dtype.kind == "S":
        values = np.char.decode(values, "utf-8", "replace")
    return columns_of_rows(values.astype(dtype, copy=False))


def _dtype(value: Any) -> np.dtype[Any]:
    number = value.type.tensor_type.elem_type
    if number:
        with contextlib.suppress(KeyError):
            dtype: np.dtype[Any] = onnx.helper.tensor_dtype_to_np_dtype(number)
            if dtype.name in {name for name, _ in DTYPES.values()}:
                return dtype
    said = (
        onnx.TensorProto.DataType.Name(number)
        if number
        else str(value.type.WhichOneof("value") or "unknown").removesuffix("_type")
    )
    raise Refused(
        f"the ONNX model's {value.name} is of type {said}, which requests cannot carry.",
        "What to do: use tensors of numbers, text or booleans; for scikit-learn's converter set zipmap: False.",
        code="not-servable",
    )


def _free_batch(value: Any) -> bool:
    dims = value.type.tensor_type.shape.dim
    return bool(dims) and not dims[0].HasField("dim_value")


def _dims(value: Any) -> tuple[int, ...]:
    dims = value.type.tensor_type.shape.dim[1:]
    return tuple(int(d.dim_value) if d.HasField("dim_value") and d.dim_value > 0 else -1 for d in dims) or (1,)
