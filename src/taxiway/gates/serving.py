"""What a configuration says, on its own and for the machine that it shall run on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from tritonclient.grpc import model_config_pb2 as pb

from taxiway.gates.config import Read
from taxiway.gates.layout import FILES
from taxiway.gates.mistake import Machine, Mistake, Severity

_LONG_DELAY_US: Final = 10_000
# What a process of the engine needs beside the model.
_RESERVE: Final = 150 << 20


def check(
    found: Read, path: str, model: str, versions: Sequence[int], machine: Machine, size: int, traffic: int | None
) -> Iterator[Mistake]:
    """Mistakes in a configuration; `size` is that of the model's files, `traffic` the most rows callers may send."""
    config = found.config

    def say(where: str, message: str, severity: Severity = "error") -> Mistake:
        line, column = found.at(where)
        return Mistake(path, line, column, severity, message)

    if config.name and config.name != model:
        yield say("name", f"name is {config.name!r}, but the folder is {model!r}")
    backend = config.backend or config.platform
    if not backend:
        yield say("", "neither platform nor backend is set")
    elif backend not in FILES and backend != "ensemble":
        known = ", ".join([*FILES, "ensemble"])
        yield say("backend" if config.backend else "platform", f"unknown backend {backend!r}; known are {known}")
    yield from _tensors(config, say)
    yield from _batching(config, say, traffic)
    yield from _instances(config, say, machine, size)
    yield from _rest(config, say, versions)


def _tensors(config: Any, say: Any) -> Iterator[Mistake]:
    for kind in ("input", "output"):
        names: set[str] = set()
        for i, entry in enumerate(getattr(config, kind)):
            where = f"{kind}[{i}]"
            if not entry.name:
                yield say(where, f"{kind} {i + 1} has no name")
            if entry.name in names:
                yield say(f"{where}.name", f"{kind} {entry.name!r} stands here twice")
            names.add(entry.name)
            if entry.data_type == pb.TYPE_INVALID:
                yield say(where, f"{kind} {entry.name!r} has no data_type")
            if not entry.dims:
                yield say(where, f"{kind} {entry.name!r} has no dims; a single value is dims: [ 1 ]")
            if any(d == 0 or d < -1 for d in entry.dims):
                message = f"{kind} {entry.name!r}: dims {list(entry.dims)} must be positive, or -1 for any length"
                yield say(f"{where}.dims", message)
            if getattr(entry, "allow_ragged_batch", False):
                message = "allow_ragged_batch means something else to every backend; leave it out"
                yield say(f"{where}.allow_ragged_batch", message, "warning")


def _batching(config: Any, say: Any, traffic: int | None) -> Iterator[Mistake]:
    most = config.max_batch_size
    if most < 0:
        yield say("max_batch_size", f"max_batch_size is {most}; 0 means no batches, else a positive number")
    if not config.HasField("dynamic_batching"):
        return
    batching = config.dynamic_batching
    if most == 0:
        yield say("dynamic_batching", "dynamic_batching does nothing while max_batch_size is 0")
    for size in batching.preferred_batch_size:
        if most and size > most:
            message = f"preferred_batch_size {size} is above max_batch_size {most}"
            yield say("dynamic_batching.preferred_batch_size", message)
    delay = batching.max_queue_delay_microseconds
    if delay > _LONG_DELAY_US:
        message = f"every request may wait {delay / 1000:g} ms; under load batches form without any delay"
        yield say("dynamic_batching.max_queue_delay_microseconds", message, "warning")
    wanted = max([*batching.preferred_batch_size, 0])
    if traffic is not None and delay and wanted > traffic * 8:
        message = f"batches of {wanted} never form: callers send at most {traffic} rows, so all wait out the delay"
        yield say("dynamic_batching.preferred_batch_size", message, "warning")
    if batching.HasField("default_queue_policy"):
        message = "a queue policy stalls this engine for half a second; limit concurrency and time at the gateway"
        yield say("dynamic_batching.default_queue_policy", message, "warning")


def _instances(config: Any, say: Any, machine: Machine, size: int) -> Iterator[Mistake]:
    if not config.instance_group and (config.backend or config.platform) != "ensemble":
        message = "without instance_group Triton starts two copies on a CPU; say count: 1 kind: KIND_AUTO"
        yield say("", message, "warning")
    for i, group in enumerate(config.instance_group):
        where = f"instance_group[{i}]"
        kind = pb.ModelInstanceGroup.Kind.Name(group.kind)
        count = group.count or 1
        if kind == "KIND_GPU" and not machine.gpu:
            yield say(f"{where}.kind", "KIND_GPU fails to load where there is no GPU; KIND_AUTO fits both", "warning")
        if kind != "KIND_GPU" and count > machine.cores:
            message = f"{count} instances share {machine.cores} cores; more than one a core is slower, not faster"
            yield say(f"{where}.count", message, "warning")
        needed = count * (size + _RESERVE)
        if needed > machine.memory:
            message = f"{count} instances need about {needed >> 20} MB, {machine.memory >> 20} MB are free"
            yield say(f"{where}.count", message)


def _rest(config: Any, say: Any, versions: Sequence[int]) -> Iterator[Mistake]:
    if config.response_cache.enable:
        yield say("response_cache", "the response cache gives answers of an earlier model after a reload; leave it off")
    wanted = list(config.version_policy.specific.versions)
    missing = [v for v in wanted if v not in versions]
    if missing:
        there = ", ".join(map(str, versions)) or "none"
        yield say("version_policy", f"version_policy names {missing}, but the folders are {there}")
    inputs = {i.name: i for i in config.input}
    for i, warm in enumerate(config.model_warmup):
        for name, sample in warm.inputs.items():
            where = f"model_warmup[{i}]"
            if name not in inputs:
                yield say(where, f"warm-up sends {name!r}, which is no input; the inputs are {', '.join(inputs)}")
            elif sample.data_type != inputs[name].data_type:
                yield say(where, f"warm-up sends {name!r} in another type than the input's")
