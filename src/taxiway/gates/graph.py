"""An ONNX model on its own: valid, of versions and operators that the target knows, with ends that can be served.

Only the outputs that a configuration names are served; what else a model has may be as it likes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, Final

import onnx

from taxiway.gates import external
from taxiway.gates.mistake import Mistake, Say, Target, whole_file

_OWN: Final = frozenset({"ai.onnx", "ai.onnx.ml"})
_RUNTIME: Final = "com.microsoft"
_TREES: Final = frozenset({"TreeEnsembleClassifier", "TreeEnsembleRegressor"})
_EXACT: Final = frozenset({"nodes_values_as_tensor"})
MIN_RUNTIME_KEY: Final = "taxiway.onnxruntime.min"


def load(data: bytes) -> Any | None:
    """The model in `data`; None when there is none."""
    try:
        model = onnx.load_model_from_string(data)
    except Exception:  # protobuf answers garbage with errors of its own
        return None
    return model if model.graph.node or model.graph.output else None


def check(
    model: Any, path: str, files: Mapping[str, bytes], target: Target, *, batched: bool, served: Set[str] | None
) -> Iterator[Mistake]:
    """Mistakes in a model, whose weights are put into it.

    `batched` when the configuration lets requests be put together; `served` has the tensors that it names (None: not
    known, so all).
    """
    say = whole_file(path)
    versions = {o.domain or "ai.onnx": int(o.version) for o in model.opset_import}
    too_new = list(_too_new(model, versions, target, say))
    yield from too_new
    yield from _operators(model, versions, target, say)
    yield from _trees(model, say)
    yield from _ends(model, say, batched=batched, served=served)
    missing = list(external.check(model, path, files))
    yield from missing
    # The checker calls a model that is newer than itself invalid, and looks for weights on the disk.
    if not missing and not too_new:
        external.inline(model, path, files)
        yield from _valid(model, say)


def _too_new(model: Any, versions: Mapping[str, int], target: Target, say: Say) -> Iterator[Mistake]:
    for domain, most in (("ai.onnx", target.opset), ("ai.onnx.ml", target.ml_opset)):
        if versions.get(domain, 0) > most:
            yield say(f"it uses {domain} {versions[domain]}; ONNX Runtime {target.runtime} knows up to {most}")
    if model.ir_version > target.ir:
        yield say(f"its IR version is {model.ir_version}; ONNX Runtime {target.runtime} reads up to {target.ir}")
    least = next((p.value for p in model.metadata_props if p.key == MIN_RUNTIME_KEY), "0")
    if _numbers(least) > _numbers(target.runtime):
        yield say(f"it needs ONNX Runtime {least}; the target has {target.runtime}")


def _operators(model: Any, versions: Mapping[str, int], target: Target, say: Say) -> Iterator[Mistake]:
    own = {(f.domain or "ai.onnx", f.name) for f in model.functions}
    told: set[tuple[str, str]] = set()
    for node in _nodes([model.graph, *model.functions]):
        domain = node.domain or "ai.onnx"
        if (domain, node.op_type) in told | own:
            continue
        told.add((domain, node.op_type))
        name = f"{domain}.{node.op_type}" + (f" ({node.name})" if node.name else "")
        version = versions.get(domain, 1)
        if domain == _RUNTIME:
            yield say(f"operator {name} exists in ONNX Runtime only, in no other engine", "warning")
        elif domain not in _OWN:
            yield say(f"operator {name} is of a domain that the engine does not have")
        elif not onnx.defs.has(node.op_type, version, "" if domain == "ai.onnx" else domain):
            yield say(f"operator {name} does not exist in {domain} {version}")
        elif f"{domain}.{node.op_type}" in target.lacks:
            yield say(f"operator {name} is not in ONNX Runtime {target.runtime}; export with an older opset")


def _nodes(graphs: Sequence[Any]) -> Iterator[Any]:
    """All nodes of graphs, and of the graphs inside their nodes."""
    rest = list(graphs)
    while rest:
        for node in rest.pop().node:
            yield node
            for attribute in node.attribute:
                rest += [attribute.g] if attribute.HasField("g") else []
                rest += attribute.graphs


def _trees(model: Any, say: Say) -> Iterator[Mistake]:
    """Trees that get rows of float64 as they come."""
    double = {v.name for v in model.graph.input if v.type.tensor_type.elem_type == onnx.TensorProto.DOUBLE}
    for node in model.graph.node:
        exact = _EXACT & {a.name for a in node.attribute}
        if node.op_type in _TREES and set(node.input) & double and not exact:
            message = f"input {node.input[0]!r} is FP64 and goes straight into trees whose thresholds are FP32"
            yield say(f"{message}: a value next to a threshold can go the other way; make the input FP32", "warning")


def _valid(model: Any, say: Say) -> Iterator[Mistake]:
    try:
        onnx.checker.check_model(model, full_check=False)
    except Exception as error:
        yield say(f"it is not valid: {_short(error)}")
        return
    try:
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    except Exception as error:
        # ONNX Runtime lets a declared shape be wrong, but no two tensors that do not go together.
        lenient = "existing shape" in str(error)
        yield say(f"its shapes do not fit together: {_short(error)}", "warning" if lenient else "error")


def _ends(model: Any, say: Say, *, batched: bool, served: Set[str] | None) -> Iterator[Mistake]:
    stored = {t.name for t in model.graph.initializer}
    for value in (*(v for v in model.graph.input if v.name not in stored), *model.graph.output):
        if served is not None and value.name not in served:
            continue
        kind = value.type.WhichOneof("value")
        if kind != "tensor_type":
            yield say(f"{value.name!r} is {_described(kind)}, which the engine cannot carry")
            continue
        dims = value.type.tensor_type.shape.dim
        if batched and dims and dims[0].HasField("dim_value"):
            message = f"the first axis of {value.name!r} is fixed to {dims[0].dim_value}"
            yield say(f"{message}, so requests cannot be put together; give it a name, or set max_batch_size: 0")


def _described(kind: str | None) -> str:
    if kind in ("sequence_type", "map_type"):
        return "a sequence of maps (scikit-learn: export with zipmap=False)"
    return f"of {(kind or 'no type').replace('_', ' ')}"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isascii() and part.isdecimal())


def _short(error: BaseException) -> str:
    return " ".join(str(error)[:3000].split())[:300]
