"""Triton's config.pbtxt, through the protobuf that Triton itself parses it with.

Written configurations are complete (nothing is left to the server's guesses) and fit NVIDIA's native
backend too: batches form without a queue policy (which stalls this engine for half a second) and, unless a person
says otherwise, without delay; one instance, unless more are asked for, on a GPU where there is one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2 as pb

from taxiway.core.contract import Column, Contract, Field, Member
from taxiway.core.errors import Refused
from taxiway.core.tensor import FLOATS

CONTRACT_PARAMETER: Final = "taxiway_contract"
STEP_PARAMETER: Final = "taxiway_step"
_PLATFORM: Final = "onnxruntime_onnx"


@dataclass(frozen=True, slots=True)
class Scheduling:
    """How many instances answer beside each other, and how long a request may wait for a batch."""

    instances: int = 1
    queue_delay_us: int = 0


PLAIN: Final = Scheduling()


def config_pbtxt(
    model: str,
    contract: Contract,
    *,
    scalars: frozenset[str] = frozenset(),
    warm_up: bool = False,
    scheduling: Scheduling = PLAIN,
    step: bool = False,
) -> str:
    """The text of config.pbtxt for an ONNX model.

    `scalars` names tensors that the graph has as [N] and the contract as [N, 1]. `warm_up` has the server send
    itself a row of zeros (empty strings) while loading: only for models that accept such a row, since the
    others would be refused. A golden sample, asked before traffic comes, warms every model. `step` says that a Python
    step stands in front of the graph (only this product's backend can run it). Nothing waits for a batch where the
    contract has none (`max_batch` 0).
    """
    config = pb.ModelConfig(name=model, platform=_PLATFORM, max_batch_size=contract.max_batch)
    for field in contract.inputs:
        _fill(config.input.add(), field, scalars)
    for field in contract.outputs:
        _fill(config.output.add(), field, scalars)
    config.instance_group.add(count=scheduling.instances, kind=pb.ModelInstanceGroup.KIND_AUTO)
    if contract.max_batch > 0:
        config.dynamic_batching.SetInParent()
        if scheduling.queue_delay_us:
            config.dynamic_batching.max_queue_delay_microseconds = scheduling.queue_delay_us
    if warm_up:
        _warm_up(config, contract)
    config.parameters[CONTRACT_PARAMETER].string_value = json.dumps(enforced(contract), sort_keys=True)
    if step:
        config.parameters[STEP_PARAMETER].string_value = "step"
    return str(text_format.MessageToString(config))


def enforced(contract: Contract) -> dict[str, Any]:
    """The part of the contract that the engine checks on every request, as it stands in the configuration.

    By input name; within one by column number, or "*" where all columns are alike. Keys beyond `finite`,
    `max_length` and `columns` are there only where they say something.
    """
    inputs = contract.inputs
    floats = [f for f in inputs if f.spec.dtype in FLOATS]
    rules: dict[str, dict[str, Any]] = {
        "nan": {f.name: _nan(f) for f in floats if not f.finite and not all(c.nullable for c in f.table)},
        "range": {f.name: found for f in inputs if (found := _by_column(f, _bounds))},
        "allowed": {f.name: found for f in inputs if (found := _by_column(f, _members))},
        "max_bytes": {f.name: f.max_bytes for f in inputs if f.max_bytes is not None and f.spec.dtype == "BYTES"},
        "same_length": {f.name: f.same_length_as for f in inputs if f.same_length_as is not None},
    }
    no_infinity = [f.name for f in floats if not f.finite and not f.infinite]
    finite = [f.name for f in floats if f.finite]
    told = {*finite, *no_infinity, *rules["nan"], *rules["range"], *rules["allowed"]}
    return {
        "finite": finite,
        "max_length": {f.name: f.max_length for f in inputs if f.max_length and -1 in f.spec.dims},
        "columns": {f.name: list(f.columns) for f in inputs if f.columns and f.name in told},
        **({"no_infinity": no_infinity} if no_infinity else {}),
        **{key: value for key, value in rules.items() if value},
    }


def _nan(field: Field) -> list[int]:
    """The numbers of the columns that accept NaN."""
    return [i for i, column in enumerate(field.table) if column.nullable]


def _by_column(field: Field, of: Callable[[Column], Any]) -> dict[str, Any]:
    """Column number -> what `of` says of it, without those it says nothing of."""
    found = [of(column) for column in field.table]
    if found and found[0] is not None and all(value == found[0] for value in found):
        return {"*": found[0]}
    return {str(i): value for i, value in enumerate(found) if value is not None}


def _bounds(column: Column) -> list[float | None] | None:
    bounds = [column.minimum, column.maximum]
    return None if bounds == [None, None] else bounds


def _members(column: Column) -> list[Member] | None:
    return None if column.allowed is None else list(column.allowed)


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
