"""A configuration and its model, looked at both ways: every tensor of one is in the other, alike.

A contract, when there is one, is held against the configuration alone; what follows for the model follows from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import onnx
from tritonclient.grpc import model_config_pb2 as pb

from taxiway.core.contract import Contract, Field
from taxiway.gates.config import Read
from taxiway.gates.mistake import Mistake, SayAt, at_key

KINDS: Final = ("input", "output")
TYPES: Final = {
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


def check(found: Read, path: str, model: Any, kinds: Sequence[str] = KINDS) -> Iterator[Mistake]:
    """Where a configuration and an ONNX model disagree, in their tensors of these `kinds`."""
    say = at_key(path, found.at)
    stored = {t.name for t in model.graph.initializer}
    ends = {
        "input": {v.name: v for v in model.graph.input if v.name not in stored},
        "output": {v.name: v for v in model.graph.output},
    }
    for kind in kinds:
        values = ends[kind]
        entries = list(getattr(found.config, kind))
        for i, entry in enumerate(entries):
            where = f"{kind}[{i}]"
            if entry.name in values:
                yield from _entry(found, say, where, entry, values[entry.name])
            elif entry.name and entry.name in stored:
                yield say(f"{where}.name", f"{entry.name!r} is a weight that the model has stored, not an {kind}")
            elif entry.name:
                there = ", ".join(values) or "none"
                yield say(f"{where}.name", f"the model has no {kind} {entry.name!r}; its {kind}s are {there}")
        yield from _unnamed(found, say, kind, values)


def _unnamed(found: Read, say: SayAt, kind: str, values: Mapping[str, Any]) -> Iterator[Mistake]:
    """Inputs that the model needs and no one would give it; outputs may be left out, but not all of them."""
    entries = getattr(found.config, kind)
    if _names_lost(found, kind):
        return
    if kind == "output" and not entries and values:
        yield say(kind, f"no output is in the configuration; the model has {', '.join(values)}")
    named = {e.name for e in entries}
    for name in values if kind == "input" else ():
        if name not in named:
            yield say(kind, f"the model's input {name!r} is not in the configuration")


def _entry(found: Read, say: SayAt, where: str, entry: Any, value: Any) -> Iterator[Mistake]:
    kind = where.partition("[")[0]
    declared = pb.DataType.Name(entry.data_type)
    have = TYPES.get(value.type.tensor_type.elem_type, "a type the engine cannot carry")
    # What was not written at all is told of elsewhere.
    if entry.data_type != pb.TYPE_INVALID and declared != have:
        yield say(f"{where}.data_type", f"{kind} {entry.name!r} is {have} in the model, not {declared}")
    if declared == "TYPE_FP16":
        message = f"{kind} {entry.name!r}: FP16 cannot be sent as JSON, only in binary form"
        yield say(f"{where}.data_type", message, "warning")
    if any(found.is_lost(p) for p in ("max_batch_size", f"{where}.dims", f"{where}.reshape")):
        return
    want = [d.dim_value if d.HasField("dim_value") else -1 for d in value.type.tensor_type.shape.dim]
    reshaped = entry.HasField("reshape")
    full = ([-1] if found.config.max_batch_size > 0 else []) + list(entry.reshape.shape if reshaped else entry.dims)
    if value.type.tensor_type.HasField("shape") and not _fits(full, want):
        batch = " (the batch axis does not belong into dims)" if len(full) == len(want) + 1 else ""
        key = "reshape" if reshaped else "dims"
        yield say(f"{where}.{key}", f"{kind} {entry.name!r} is {want} in the model, but {full} as configured{batch}")


def _names_lost(found: Read, kind: str) -> bool:
    """Whether an entry may be there whose name was not understood."""
    count = len(getattr(found.config, kind))
    return kind in found.lost or any(found.is_lost(f"{kind}[{i}].name") for i in range(count))


def _fits(have: list[int], want: list[int]) -> bool:
    return len(have) == len(want) and all(-1 in (a, b) or a == b for a, b in zip(have, want, strict=True))


def with_contract(found: Read, path: str, contract: Contract) -> Iterator[Mistake]:
    """Where a configuration and a contract disagree about tensors and the largest batch."""
    say = at_key(path, found.at)
    config = found.config
    if config.max_batch_size != contract.max_batch and not found.is_lost("max_batch_size"):
        message = f"max_batch_size is {config.max_batch_size}, the contract says {contract.max_batch}"
        yield say("max_batch_size", message)
    for kind, fields in (("input", contract.inputs), ("output", contract.outputs)):
        wanted = {f.name: f for f in fields}
        entries = getattr(config, kind)
        missing = set() if _names_lost(found, kind) else wanted.keys() - {e.name for e in entries}
        for name in sorted(missing):
            yield say(kind, f"{kind} {name!r} is in the contract, not in the configuration")
        for i, entry in enumerate(entries):
            if entry.name in wanted:
                yield from _as_promised(found, say, f"{kind}[{i}]", entry, wanted[entry.name])
            elif entry.name:
                yield say(f"{kind}[{i}].name", f"{kind} {entry.name!r} is not in the contract")


def _as_promised(found: Read, say: SayAt, where: str, entry: Any, field: Field) -> Iterator[Mistake]:
    name = f"{where.partition('[')[0]} {entry.name!r}"
    declared = pb.DataType.Name(entry.data_type)
    promised = "TYPE_STRING" if field.spec.dtype == "BYTES" else f"TYPE_{field.spec.dtype}"
    if declared != promised and entry.data_type != pb.TYPE_INVALID:
        yield say(f"{where}.data_type", f"{name} is {declared}, the contract says {promised}")
    # A value a row is [1] outside, since Triton has no dims of nothing.
    dims = list(field.spec.dims) or [1]
    if list(entry.dims) != dims and not found.is_lost(f"{where}.dims"):
        yield say(f"{where}.dims", f"{name} has dims {list(entry.dims)}, the contract says {dims}")
