"""A configuration and its model, looked at both ways: every tensor of one is in the other, alike."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import onnx
from tritonclient.grpc import model_config_pb2 as pb

from taxiway.core.contract import Contract
from taxiway.gates.config import Read
from taxiway.gates.mistake import Mistake, Severity

_TYPES = {
    onnx.TensorProto.FLOAT: "TYPE_FP32",
    onnx.TensorProto.DOUBLE: "TYPE_FP64",
    onnx.TensorProto.FLOAT16: "TYPE_FP16",
    onnx.TensorProto.INT8: "TYPE_INT8",
    onnx.TensorProto.INT16: "TYPE_INT16",
    onnx.TensorProto.INT32: "TYPE_INT32",
    onnx.TensorProto.INT64: "TYPE_INT64",
    onnx.TensorProto.UINT8: "TYPE_UINT8",
    onnx.TensorProto.UINT16: "TYPE_UINT16",
    onnx.TensorProto.UINT32: "TYPE_UINT32",
    onnx.TensorProto.UINT64: "TYPE_UINT64",
    onnx.TensorProto.BOOL: "TYPE_BOOL",
    onnx.TensorProto.STRING: "TYPE_STRING",
}


def check(found: Read, path: str, model: Any) -> Iterator[Mistake]:
    """Where a configuration and an ONNX model disagree."""
    stored = {t.name for t in model.graph.initializer}
    ends = {
        "input": {v.name: v for v in model.graph.input if v.name not in stored},
        "output": {v.name: v for v in model.graph.output},
    }
    for kind, values in ends.items():
        entries = list(getattr(found.config, kind))
        for i, entry in enumerate(entries):
            yield from _entry(found, path, (kind, i), entry, values)
        named = {e.name for e in entries}
        for name in values if kind == "input" else ():
            if name not in named:
                line, column = found.at("input")
                message = f"the model's input {name!r} is not in the configuration"
                yield Mistake(path, line, column, "error", message)


def _entry(found: Read, path: str, where: tuple[str, int], entry: Any, values: dict[str, Any]) -> Iterator[Mistake]:
    kind, number = where

    def say(key: str, message: str, severity: Severity = "error") -> Mistake:
        line, column = found.at(f"{kind}[{number}].{key}")
        return Mistake(path, line, column, severity, message)

    value = values.get(entry.name)
    if value is None:
        yield say("name", f"the model has no {kind} {entry.name!r}; its {kind}s are {', '.join(values) or 'none'}")
        return
    declared = pb.DataType.Name(entry.data_type)
    have = _TYPES.get(value.type.tensor_type.elem_type, "a type the engine cannot carry")
    if declared != have:
        yield say("data_type", f"{kind} {entry.name!r} is {have} in the model, not {declared}")
    if declared == "TYPE_FP16":
        yield say("data_type", f"{kind} {entry.name!r}: FP16 cannot be sent as JSON, only in binary form", "warning")
    want = [d.dim_value if d.HasField("dim_value") else -1 for d in value.type.tensor_type.shape.dim]
    dims = list(entry.reshape.shape) if entry.HasField("reshape") else list(entry.dims)
    full = ([-1] if found.config.max_batch_size > 0 else []) + dims
    if value.type.tensor_type.HasField("shape") and not _fits(full, want):
        batch = " (the batch axis does not belong into dims)" if len(full) == len(want) + 1 else ""
        yield say("dims", f"{kind} {entry.name!r} is {want} in the model, but {full} as configured{batch}")


def _fits(have: list[int], want: list[int]) -> bool:
    return len(have) == len(want) and all(-1 in (a, b) or a == b for a, b in zip(have, want, strict=True))


def with_contract(found: Read, path: str, contract: Contract) -> Iterator[Mistake]:
    """Where a configuration and a contract disagree about tensors and the largest batch."""
    config = found.config
    if config.max_batch_size != contract.max_batch:
        line, column = found.at("max_batch_size")
        message = f"max_batch_size is {config.max_batch_size}, the contract says {contract.max_batch}"
        yield Mistake(path, line, column, "error", message)
    for kind, fields in (("input", contract.inputs), ("output", contract.outputs)):
        have = {e.name for e in getattr(config, kind)}
        want = {f.name for f in fields}
        for name in sorted(have ^ want):
            line, column = found.at(kind)
            where = "in the contract, not in the configuration" if name in want else "not in the contract"
            yield Mistake(path, line, column, "error", f"{kind} {name!r} is {where}")
