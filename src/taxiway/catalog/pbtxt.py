"""Triton's config.pbtxt, through the protobuf that Triton itself parses it with.

Written configurations are complete (nothing is left to the server's guesses) and fit NVIDIA's native
backend too: batches form without delay and without a queue policy (which stalls this engine for half a
second), one instance, on a GPU where there is one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2 as pb

from taxiway.core.contract import Contract, Field
from taxiway.core.errors import Refused
from taxiway.core.tensor import FLOATS

CONTRACT_PARAMETER: Final = "taxiway_contract"
_PLATFORM: Final = "onnxruntime_onnx"


def config_pbtxt(
    model: str, contract: Contract, *, scalars: frozenset[str] = frozenset(), warm_up: bool = False
) -> str:
    """The text of config.pbtxt for an ONNX model.

    `scalars` names tensors that the graph has as [N] and the contract as [N, 1]. `warm_up` has the server send
    itself a row of zeros (empty strings) while loading: only for models that accept such a row, since the
    others would be refused. A golden sample, asked before traffic comes, warms every model.
    """
    config = pb.ModelConfig(name=model, platform=_PLATFORM, max_batch_size=contract.max_batch)
    for field in contract.inputs:
        _fill(config.input.add(), field, scalars)
    for field in contract.outputs:
        _fill(config.output.add(), field, scalars)
    config.instance_group.add(count=1, kind=pb.ModelInstanceGroup.KIND_AUTO)
    if contract.max_batch > 0:
        config.dynamic_batching.SetInParent()
    if warm_up:
        _warm_up(config, contract)
    config.parameters[CONTRACT_PARAMETER].string_value = json.dumps(enforced(contract), sort_keys=True)
    return str(text_format.MessageToString(config))


def enforced(contract: Contract) -> dict[str, Any]:
    """The part of the contract that the engine checks on every request, as it stands in the configuration."""
    finite = [f for f in contract.inputs if f.finite and f.spec.dtype in FLOATS]
    return {
        "finite": [f.name for f in finite],
        "max_length": {f.name: f.max_length for f in contract.inputs if f.max_length and -1 in f.spec.dims},
        "columns": {f.name: list(f.columns) for f in finite if f.columns},
    }


def parse(text: str, where: str) -> pb.ModelConfig:
    """The configuration in `text`; raises `Refused` with file, line, column and what was wrong there."""
    config = pb.ModelConfig()
    try:
        text_format.Parse(text, config)
    except text_format.ParseError as error:
        line, column = error.GetLine() or 1, error.GetColumn() or 1
        reason = str(error).removeprefix(f"{line}:{column} : ").replace(f"'{_line(text, line)}': ", "")
        raise Refused(f"{where}:{line}:{column}: {reason}") from None
    return config


def _line(text: str, number: int) -> str:
    lines = text.splitlines()
    return lines[number - 1] if number <= len(lines) else ""


def check(config: pb.ModelConfig, contract: Contract) -> list[str]:
    """Where `config` and `contract` disagree, one sentence each; empty when a request fits both or neither."""
    found = []
    if config.max_batch_size != contract.max_batch:
        found.append(f"max_batch_size is {config.max_batch_size}, the contract says {contract.max_batch}")
    found += _check_tensors("input", config.input, contract.inputs)
    found += _check_tensors("output", config.output, contract.outputs)
    if _parameter(config) != enforced(contract):
        found.append(
            f"parameter {CONTRACT_PARAMETER} is {config.parameters[CONTRACT_PARAMETER].string_value!r}, "
            f"the contract says {json.dumps(enforced(contract), sort_keys=True)!r}"
            if CONTRACT_PARAMETER in config.parameters
            else f"parameter {CONTRACT_PARAMETER} is missing"
        )
    return found


def _check_tensors(kind: str, entries: Iterable[Any], fields: tuple[Field, ...]) -> list[str]:
    have = {entry.name: (pb.DataType.Name(entry.data_type), list(entry.dims)) for entry in entries}
    want = {field.name: (_type(field.spec.dtype), list(field.spec.dims) or [1]) for field in fields}
    found = [f"{kind} {name!r} is missing" for name in want if name not in have]
    found += [
        f"{kind} {name!r} is not in the contract, which has {', '.join(want)}" for name in have if name not in want
    ]
    for name in want.keys() & have.keys():
        if have[name] != want[name]:
            (dtype, dims), (wanted, expected) = have[name], want[name]
            found.append(f"{kind} {name!r} is {dtype} {dims}, the contract says {wanted} {expected}")
    return sorted(found)


def _parameter(config: pb.ModelConfig) -> Any:
    if CONTRACT_PARAMETER not in config.parameters:
        return None
    try:
        return json.loads(config.parameters[CONTRACT_PARAMETER].string_value)
    except ValueError:
        return None


def _fill(entry: Any, field: Field, scalars: frozenset[str]) -> None:
    entry.name = field.name
    entry.data_type = pb.DataType.Value(_type(field.spec.dtype))
    # Triton has no dims of nothing: a value per row is [1] outside and reshaped to [] for the graph.
    entry.dims.extend(field.spec.dims or (1,))
    if field.name in scalars or not field.spec.dims:
        entry.reshape.SetInParent()


def _type(dtype: str) -> str:
    return "TYPE_STRING" if dtype == "BYTES" else f"TYPE_{dtype}"


def _warm_up(config: pb.ModelConfig, contract: Contract) -> None:
    """One request of zeros at load time: the first real one then takes as long as any other."""
    sample = config.model_warmup.add(name="zeros", batch_size=1 if contract.max_batch > 0 else 0, count=1)
    for field in contract.inputs:
        entry = sample.inputs[field.name]
        entry.data_type = pb.DataType.Value(_type(field.spec.dtype))
        entry.dims.extend(1 if d < 0 else d for d in field.spec.dims or (1,))
        entry.zero_data = True
