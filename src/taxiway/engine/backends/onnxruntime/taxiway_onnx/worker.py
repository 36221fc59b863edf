"""Runs the Python step of a revision: the tensors of a request in, those of the ONNX model out.

A process of its own, with the libraries that the notebook had: the server's stub has others, and an older numpy. It
lives as long as the connection to the stub does. A step is a folder with

    step.pkl          the fitted transformer, pickled by the build
    step.json         `table`: what the transformer takes, `gives`: the tensors that its answer becomes
    requirements.txt  everything it needs, with exact versions

This file and `frames.py` need numpy, and pandas where the transformer takes a table with names; nothing else.
"""

from __future__ import annotations

import builtins
import json
import pickle
import sys
import warnings
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from . import frames

# Calls in a notebook's own functions and classes go through a recorder while it runs: here, straight on.
_HOOK = "__taxiway_record__"
_NUMPY = {"FP32": np.float32, "INT64": np.int64, "BYTES": object}
_SAID = 300


class Step:
    """A fitted transformer between tensors.

    `spec["table"]` has `form` (`matrix`, `frame`, `texts`), and `columns` (name, dtype, tensor, place in it) or
    `dtype`; `spec["gives"]` lists name, protocol dtype, width and column (None: all of them) of each tensor.
    """

    def __init__(self, transformer: Any, spec: Mapping[str, Any]) -> None:
        self.transformer = transformer
        self.spec = spec

    def __call__(self, tensors: frames.Tensors) -> dict[str, np.ndarray]:
        """Raises whatever the transformer does, and ValueError when it drops or adds rows."""
        answer = self.transformer.transform(self.table(tensors))
        answer = answer.toarray() if hasattr(answer, "toarray") else answer
        rows = len(next(iter(tensors.values())))
        if len(answer) != rows:
            raise RuntimeError(f"the step gives {len(answer)} rows for {rows}")
        return {one["name"]: _tensor(one, answer) for one in self.spec["gives"]}

    def table(self, tensors: frames.Tensors) -> Any:
        """The rows in the form that the transformer was fitted on."""
        table = self.spec["table"]
        if table["form"] == "frame":
            import pandas

            return pandas.DataFrame({c["name"]: _column(c, tensors) for c in table["columns"]})
        (values,) = tensors.values()
        return values.reshape(-1) if table["form"] == "texts" else values.astype(table["dtype"])


def _column(column: Mapping[str, Any], tensors: frames.Tensors) -> Any:
    import pandas

    values = tensors[column["tensor"]]
    return pandas.Series(values[:, column["place"]], dtype=object if values.dtype == object else None).astype(
        column["dtype"]
    )


def _tensor(one: Mapping[str, Any], answer: Any) -> np.ndarray:
    values = np.asarray(answer if one["column"] is None else answer[one["column"]])
    return values.astype(_NUMPY[one["dtype"]]).reshape(len(values), one["width"])


def load(folder: Path) -> Step:
    """The step in `folder`; raises whatever unpickling does."""
    setattr(builtins, _HOOK, getattr)
    # They would go to the engine's log with every request.
    warnings.simplefilter("ignore")
    spec = json.loads((folder / "step.json").read_text())
    with (folder / "step.pkl").open("rb") as file:
        # Made by the build, and proved unaltered before every start of the engine.
        return Step(pickle.load(file), spec)  # noqa: S301


def serve(link: Connection, folder: Path) -> int:
    """Answer until the other side has gone; 0 then, 1 when the step cannot be loaded (which is said)."""
    try:
        step = load(folder)
    except Exception as error:
        frames.send(link, {}, error=_told(error), kind=type(error).__name__)
        return 1
    frames.send(link, {}, gives=step.spec["gives"])
    while True:
        try:
            tensors, asked = frames.receive(link)
        except (EOFError, OSError):
            return 0
        answer: dict[str, np.ndarray] = {}
        note: dict[str, Any] = {}
        try:
            if asked:
                note = {"modules": sorted({name.partition(".")[0] for name in sys.modules})}
            else:
                answer = step(tensors)
        except Exception as error:  # whatever a person's own code raises
            note = {"error": _told(error), "kind": type(error).__name__}
        try:
            frames.send(link, answer, **note)
        except OSError:
            return 0


def _told(error: Exception) -> str:
    """The error in one line, cut: it may hold what a caller sent."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:_SAID]


def main(arguments: Sequence[str]) -> int:
    """`FOLDER DESCRIPTOR`: the step, and the number of the open connection."""
    folder, descriptor = arguments
    return serve(Connection(int(descriptor)), Path(folder))


if __name__ == "__main__":
    sys.exit(main(sys.argv[-2:]))
