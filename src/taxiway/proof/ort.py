"""ONNX Runtime, on one thread so that answers do not depend on the machine's size."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import onnxruntime

from taxiway.core.errors import Refused
from taxiway.proof.cases import Array, columns_of_rows

Answer = Callable[[Mapping[str, Array]], dict[str, Array]]
VERSION: str = onnxruntime.__version__


def answer(model: bytes) -> Answer:
    """A function from feeds to answers; [rows] answers come as [rows, 1]. Raises Refused if it does not load."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    try:
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the runtime's own errors share no public base class
        raise Refused(f"ONNX Runtime {VERSION} does not load the model: {str(error)[:500]}", code="no-load") from error
    names = [o.name for o in session.get_outputs()]

    def run(feeds: Mapping[str, Array]) -> dict[str, Array]:
        return {n: columns_of_rows(v) for n, v in zip(names, session.run(names, dict(feeds)), strict=True)}

    return run
