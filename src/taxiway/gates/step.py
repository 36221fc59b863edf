"""A Python step in front of a graph: its files are all there, and what it gives is what the graph takes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from taxiway.gates.agree import TYPES
from taxiway.gates.mistake import Mistake

PARAMETER: Final = "taxiway_step"
FOLDER: Final = "step"
FILES: Final = ("step.pkl", "step.json", "requirements.txt")
_FORMATS: Final = frozenset({1})
_PIN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*==\S+")

Tensors = Mapping[str, tuple[str, int]]


def check(files: Mapping[str, bytes], model: str, versions: Sequence[int], config: str) -> Iterator[Mistake]:
    """Mistakes of the steps of all versions; `config` is where one is asked for."""
    for number in versions:
        folder = f"{model}/{number}/{FOLDER}"
        for name in FILES:
            if f"{folder}/{name}" not in files:
                message = f"{config} asks for a Python step (parameter {PARAMETER}), and this file of it is missing"
                yield Mistake(f"{folder}/{name}", 0, 0, "error", message)
        spec = files.get(f"{folder}/step.json")
        if spec is not None and _tensors(spec) is None:
            message = "this describes no Python step: table, gives, python and format 1 are expected"
            yield Mistake(f"{folder}/step.json", 0, 0, "error", message)
        lines = files.get(f"{folder}/requirements.txt", b"").decode("utf-8", "replace").splitlines()
        for row, line in enumerate(lines, 1):
            if line.strip() and not _PIN.fullmatch(line.strip()):
                message = f"{line.strip()!r} is no exact version (name==1.2.3): another would answer otherwise"
                yield Mistake(f"{folder}/requirements.txt", row, 1, "error", message)


def gives(files: Mapping[str, bytes], graph: str) -> Tensors | None:
    """Name -> type and width of the tensors that the step beside a graph gives; None when it does not say."""
    return _tensors(files.get(f"{graph.rpartition('/')[0]}/{FOLDER}/step.json", b""))


def agree(where: str, between: Tensors, model: Any) -> Iterator[Mistake]:
    """Where the step in front and the graph at `where` disagree."""
    stored = {t.name for t in model.graph.initializer}
    takes = {v.name: v.type.tensor_type for v in model.graph.input if v.name not in stored}
    for name in sorted(between.keys() ^ takes.keys()):
        side = "the Python step does not give" if name in takes else "the model has no"
        yield Mistake(where, 0, 0, "error", f"{side} input {name!r}")
    for name in sorted(between.keys() & takes.keys()):
        dtype, width = between[name]
        have = TYPES.get(takes[name].elem_type, "a type the engine cannot carry")
        if have != dtype:
            yield Mistake(where, 0, 0, "error", f"the Python step gives {name!r} as {dtype}, the model takes {have}")
        dims = [d.dim_value if d.HasField("dim_value") else -1 for d in takes[name].shape.dim]
        if len(dims) != 2 or dims[1] not in (-1, width):
            yield Mistake(
                where, 0, 0, "error", f"the Python step gives [-1, {width}] as {name!r}, the model has {dims}"
            )


def _tensors(data: bytes) -> Tensors | None:
    try:
        spec = json.loads(data)
        if spec["format"] not in _FORMATS or not isinstance(spec["table"]["form"], str) or "python" not in spec:
            return None
        kinds = {"BYTES": "TYPE_STRING"}
        return {g["name"]: (kinds.get(g["dtype"], f"TYPE_{g['dtype']}"), int(g["width"])) for g in spec["gives"]}
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
