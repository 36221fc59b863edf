"""What every ONNX model must satisfy to be served, and the marks it carries."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any, Final

import onnx

from taxiway.core.errors import Refused

MAX_OPSET: Final = 21  # what ONNX Runtime 1.19.2 loads, the oldest one served by
MAX_IR: Final = 10
MAX_ML_OPSET: Final = 5
MIN_RUNTIME_KEY: Final = "taxiway.onnxruntime.min"
# The first ONNX Runtime that knows an opset; anything older is known to all that are in use.
_FIRST_RUNTIME: Final = ((21, "1.18.0"), (20, "1.17.0"), (19, "1.15.0"), (18, "1.14.0"), (17, "1.12.0"), (0, "1.11.0"))


def opset(model: Any) -> int:
    """The opset of the default domain."""
    return next((int(o.version) for o in model.opset_import if o.domain in ("", "ai.onnx")), 1)


def finish(model: Any, *, own: bool) -> bytes:
    """Check `model`, mark it with the least ONNX Runtime, and give its bytes (the same for the same model).

    `own` models (made by our export) also get our producer name. Raises Refused when the serving runtime could
    not load it.
    """
    _check(model)
    if own:
        model.producer_name, model.producer_version, model.domain, model.doc_string = "taxiway", "", "", ""
        model.graph.name, model.graph.doc_string = "model", ""
    least = next(version for number, version in _FIRST_RUNTIME if opset(model) >= number)
    marks = {p.key: p.value for p in model.metadata_props} | {MIN_RUNTIME_KEY: least}
    onnx.helper.set_model_props(model, dict(sorted(marks.items())))
    return bytes(model.SerializeToString(deterministic=True))


def _check(model: Any) -> None:
    versions = {o.domain: int(o.version) for o in model.opset_import}
    found = []
    if opset(model) > MAX_OPSET:
        found.append(f"it uses opset {opset(model)}, the serving engine knows up to {MAX_OPSET}")
    if versions.get("ai.onnx.ml", 0) > MAX_ML_OPSET:
        found.append(f"it uses ai.onnx.ml {versions['ai.onnx.ml']}, the serving engine knows up to {MAX_ML_OPSET}")
    if model.ir_version > MAX_IR:
        found.append(f"its IR version is {model.ir_version}, the serving engine reads up to {MAX_IR}")
    if found:
        raise Refused(
            f"the ONNX model is too new: {'; '.join(found)}.",
            "What to do: make it with opset_imports=[onnx.helper.make_opsetid('', 17)] and ir_version=8.",
            code="onnx-too-new",
        )
    # After the versions: the checker calls a model that is newer than itself invalid.
    try:
        onnx.checker.check_model(model, full_check=False)
    except onnx.checker.ValidationError as error:
        raise Refused(f"the ONNX model is not valid: {str(error)[:500]}", code="onnx-invalid") from error


def least_runtime(data: bytes) -> str:
    """The least ONNX Runtime version that `finish` marked a model with."""
    marks = {p.key: p.value for p in onnx.load_model_from_string(data).metadata_props}
    return str(marks[MIN_RUNTIME_KEY])


def rename_inputs(model: Any, names: Mapping[str, str]) -> None:
    """Rename graph inputs in place; an inner tensor that already has such a name gives way."""
    graph = model.graph
    inner = {t for node in graph.node for t in node.output} | {t.name for t in graph.initializer}
    moves = {old: new for old, new in names.items() if old != new}
    for new in list(moves.values()):
        if new in inner:
            moves[new] = next(n for i in count() if (n := f"{new}_inner{i or ''}") not in inner)
    for node in graph.node:
        node.input[:] = [moves.get(t, t) for t in node.input]
        node.output[:] = [moves.get(t, t) if t in inner else t for t in node.output]
    for value in (*graph.input, *graph.initializer, *graph.value_info):
        value.name = moves.get(value.name, value.name)


def rename_outputs(model: Any, names: Mapping[str, str]) -> None:
    """Rename graph outputs in place; an inner tensor that already has such a name gives way."""
    graph = model.graph
    taken = {t for node in graph.node for t in (*node.input, *node.output)} | {t.name for t in graph.initializer}
    moves = {old: new for old, new in names.items() if old != new}
    for new in list(moves.values()):
        if new in taken and new not in moves:
            moves[new] = next(n for i in count() if (n := f"{new}_inner{i or ''}") not in taken)
    for node in graph.node:
        node.input[:] = [moves.get(t, t) for t in node.input]
        node.output[:] = [moves.get(t, t) for t in node.output]
    for value in (*graph.output, *graph.initializer, *graph.value_info):
        value.name = moves.get(value.name, value.name)
