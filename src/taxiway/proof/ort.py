"""ONNX Runtime, on one thread so that answers do not depend on the machine's size."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Final

import onnxruntime

from taxiway.core.errors import Refused
from taxiway.proof.cases import Array, columns_of_rows

VERSION: str = onnxruntime.__version__


_EMPTY: Final = """
import json, sys
import numpy, onnxruntime
options = onnxruntime.SessionOptions()
options.log_severity_level = 4
session = onnxruntime.InferenceSession(sys.stdin.buffer.read(), options, providers=["CPUExecutionProvider"])
feeds = {n: numpy.empty(shape, dtype) for n, (shape, dtype) in json.loads(sys.argv[1]).items()}
print(max(len(v) for v in session.run(None, feeds)))
"""


def empty(model: bytes, feeds: Mapping[str, Array], scalars: frozenset[str]) -> str:
    """What the runtime makes of no rows at all: `answers nothing`, `answers something`, `fails` or `crashes`.

    Asked in a process of its own, since some operators (LSTM) end the process.
    """
    shapes = {n: ([0] if n in scalars else [0, *v.shape[1:]], v.dtype.str) for n, v in feeds.items()}
    command = [sys.executable, "-c", _EMPTY, json.dumps(shapes)]
    try:
        done = subprocess.run(command, input=model, capture_output=True, timeout=60, check=False)
    except subprocess.TimeoutExpired:
        return "crashes"
    if done.returncode != 0:
        return "crashes" if done.returncode < 0 else "fails"
    return "answers nothing" if done.stdout.strip() == b"0" else "answers something"


class Served:
    """A loaded model. Tensors that are [rows] in the graph (`scalars`) are taken and given as [rows, 1].

    Raises Refused when the runtime does not load it.
    """

    def __init__(self, model: bytes) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        try:
            self._session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # the runtime's own errors share no public base class
            raise Refused(
                f"ONNX Runtime {VERSION} does not load the model: {str(error)[:500]}", code="does-not-load"
            ) from error
        tensors = (*self._session.get_inputs(), *self._session.get_outputs())
        self.scalars = frozenset(t.name for t in tensors if len(t.shape) == 1)
        self._outputs = [o.name for o in self._session.get_outputs()]

    def run(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """Answers by name for one batch."""
        given = {n: v.reshape(len(v)) if n in self.scalars else v for n, v in feeds.items()}
        answers = self._session.run(self._outputs, given)
        return {n: columns_of_rows(v) for n, v in zip(self._outputs, answers, strict=True)}
