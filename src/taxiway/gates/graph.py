"""An ONNX model on its own: valid, of versions and operators that the target knows, with a batch axis."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import onnx

from taxiway.gates.mistake import Mistake, Severity, Target

_OWN: Final = frozenset({"", "ai.onnx", "ai.onnx.ml"})
_RUNTIME: Final = "com.microsoft"
MIN_RUNTIME_KEY: Final = "taxiway.onnxruntime.min"


def load(data: bytes) -> Any | None:
    """The model in `data`; None when there is none."""
    try:
        model = onnx.load_model_from_string(data)
    except Exception:  # protobuf answers garbage with errors of its own
        return None
    return model if model.graph.node or model.graph.output else None


def check(model: Any, path: str, target: Target, *, batched: bool) -> Iterator[Mistake]:
    """Mistakes in a model; `batched` when the configuration lets requests be put together."""

    def say(message: str, severity: Severity = "error") -> Mistake:
        return Mistake(path, 0, 0, severity, message)

    versions = {o.domain or "ai.onnx": int(o.version) for o in model.opset_import}
    for domain, most in (("ai.onnx", target.opset), ("ai.onnx.ml", target.ml_opset)):
        if versions.get(domain, 0) > most:
            yield say(f"it uses {domain} {versions[domain]}; ONNX Runtime {target.runtime} knows up to {most}")
    if model.ir_version > target.ir:
        yield say(f"its IR version is {model.ir_version}; ONNX Runtime {target.runtime} reads up to {target.ir}")
    least = next((p.value for p in model.metadata_props if p.key == MIN_RUNTIME_KEY), "0")
    if _numbers(least) > _numbers(target.runtime):
        yield say(f"it needs ONNX Runtime {least}; the target has {target.runtime}")
    yield from _operators(model, versions, say)
    yield from _valid(model, say)
    yield from _ends(model, say, batched=batched)


def _operators(model: Any, versions: dict[str, int], say: Any) -> Iterator[Mistake]:
    told: set[tuple[str, str]] = set()
    for node in model.graph.node:
        domain = node.domain or "ai.onnx"
        if (domain, node.op_type) in told:
            continue
        told.add((domain, node.op_type))
        name = f"{domain}.{node.op_type}" + (f" ({node.name})" if node.name else "")
        if domain == _RUNTIME:
            yield say(f"operator {name} exists in ONNX Runtime only, in no other engine", "warning")
        elif domain not in _OWN:
            yield say(f"operator {name} is of a domain that the engine does not have")
        elif not onnx.defs.has(node.op_type, versions.get(domain, 1), "" if domain == "ai.onnx" else domain):
            yield say(f"operator {name} does not exist in {domain} {versions.get(domain, 1)}")


def _valid(model: Any, say: Any) -> Iterator[Mistake]:
    try:
        onnx.checker.check_model(model, full_check=False)
    except Exception as error:
        yield say(f"it is not valid: {_short(error)}")
        return
    try:
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    except Exception as error:
        yield say(f"its shapes do not fit together: {_short(error)}", "warning")


def _ends(model: Any, say: Any, *, batched: bool) -> Iterator[Mistake]:
    stored = {t.name for t in model.graph.initializer}
    for value in (*(v for v in model.graph.input if v.name not in stored), *model.graph.output):
        kind = value.type.WhichOneof("value")
        if kind != "tensor_type":
            said = (
                "a sequence of maps (scikit-learn: export with zipmap=False)" if kind == "sequence_type" else str(kind)
            )
            yield say(f"{value.name!r} is {said}, which the engine cannot carry")
            continue
        dims = value.type.tensor_type.shape.dim
        if batched and dims and dims[0].HasField("dim_value"):
            message = (
                f"the first axis of {value.name!r} is fixed to {dims[0].dim_value}, so requests cannot be put together"
            )
            yield say(f"{message}; give it a name, or set max_batch_size: 0")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdecimal())


def _short(error: BaseException) -> str:
    return " ".join(str(error)[:3000].split())[:300]
