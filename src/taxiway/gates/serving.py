"""What a configuration says on its own, and what it leaves to a server's guesses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tritonclient.grpc import model_config_pb2 as pb

from taxiway.gates.config import Read
from taxiway.gates.layout import FILES
from taxiway.gates.mistake import Mistake, Promise, SayAt, at_key

# A wait for a batch is out of proportion beyond this, and beyond this part of the time that a request has.
_LONG_DELAY_US: Final = 10_000
_LONG_PART: Final = 0.1
_QUEUE_DELAY: Final = "dynamic_batching.max_queue_delay_microseconds"
# A platform is the name that a backend's model format had before there were backends.
_PLATFORMS: Final = {"onnxruntime_onnx": "onnxruntime", "pytorch_libtorch": "pytorch"}


def check(
    found: Read, path: str, files: Mapping[str, bytes], versions: Sequence[int], promise: Promise
) -> Iterator[Mistake]:
    """Mistakes in the configuration at `path`."""
    config = found.config
    say = at_key(path, found.at)
    model = path.partition("/")[0]
    if config.name and config.name != model:
        yield say("name", f"name is {config.name!r}, but the folder is {model!r}")
    yield from _backend(found, say)
    yield from _tensors(found, say)
    yield from _batching(found, say, promise)
    yield from _warm_up(config, say)
    yield from _steps(config, say, {p.partition("/")[0] for p in files})
    yield from _files(config, say, model, files)
    yield from _rest(found, say, versions)


def used(config: Any, model: str) -> frozenset[str]:
    """The paths of files that a configuration refers to, the model's own aside."""
    return frozenset(f"{model}/{o.label_filename}" for o in config.output if o.label_filename)


def _backend(found: Read, say: SayAt) -> Iterator[Mistake]:
    config = found.config
    backend = config.backend or config.platform
    key = "backend" if config.backend else "platform"
    if not backend and not found.is_lost("platform") and not found.is_lost("backend"):
        yield say("", 'neither platform nor backend is set; for an ONNX model: platform: "onnxruntime_onnx"')
    elif backend and backend not in FILES and backend != "ensemble":
        yield say(key, f"unknown backend {backend!r}; known are {', '.join([*FILES, 'ensemble'])}")
    elif config.backend and config.platform and _PLATFORMS.get(config.platform) != config.backend:
        yield say("platform", f"platform {config.platform!r} is not for backend {config.backend!r}; leave it out")


def _tensors(found: Read, say: SayAt) -> Iterator[Mistake]:
    for kind in ("input", "output"):
        names: set[str] = set()
        for i, entry in enumerate(getattr(found.config, kind)):
            where = f"{kind}[{i}]"
            if entry.name in names and entry.name:
                yield say(f"{where}.name", f"{kind} {entry.name!r} stands here twice")
            names.add(entry.name)
            yield from _tensor(found, say, where, entry)


def _tensor(found: Read, say: SayAt, where: str, entry: Any) -> Iterator[Mistake]:
    kind = where.partition("[")[0]
    if not entry.name and not found.is_lost(f"{where}.name"):
        yield say(where, f"this {kind} has no name")
    if entry.data_type == pb.TYPE_INVALID and not found.is_lost(f"{where}.data_type"):
        yield say(where, f"{kind} {entry.name!r} has no data_type")
    if not entry.dims and not found.is_lost(f"{where}.dims"):
        yield say(where, f"{kind} {entry.name!r} has no dims; a single value is dims: [ 1 ]")
    if any(d == 0 or d < -1 for d in entry.dims):
        message = f"{kind} {entry.name!r}: dims {list(entry.dims)} must be positive, or -1 for any length"
        yield say(f"{where}.dims", message)
    if getattr(entry, "allow_ragged_batch", False):
        message = "allow_ragged_batch means something else to every backend; leave it out"
        yield say(f"{where}.allow_ragged_batch", message, "warning")


def _batching(found: Read, say: SayAt, promise: Promise) -> Iterator[Mistake]:
    config, most = found.config, found.config.max_batch_size
    if most < 0:
        yield say("max_batch_size", f"max_batch_size is {most}; 0 means no batches, else a positive number")
    if not config.HasField("dynamic_batching"):
        return
    batching = config.dynamic_batching
    if most == 0 and not found.is_lost("max_batch_size"):
        yield say(
            "dynamic_batching", "dynamic_batching does nothing while max_batch_size is 0; set it, or leave it out"
        )
    preferred = "dynamic_batching.preferred_batch_size"
    for size in batching.preferred_batch_size:
        if most and size > most:
            yield say(preferred, f"preferred_batch_size {size} is above max_batch_size {most}")
        if size <= 0:
            yield say(preferred, f"preferred_batch_size {size} must be positive")
    yield from _delay(batching.max_queue_delay_microseconds, say, promise.timeout_ms)
    wanted = max([*batching.preferred_batch_size, 0])
    rows = promise.contract.max_batch if promise.contract is not None else None
    if rows is not None and batching.max_queue_delay_microseconds and wanted > rows * 8:
        message = f"batches of {wanted} never form: callers send at most {rows} rows, so all wait out the delay"
        yield say(preferred, message, "warning")
    yield from _queues(batching, say)


def _delay(delay_us: int, say: SayAt, timeout_ms: int | None) -> Iterator[Mistake]:
    """A wait for a batch that is long in itself, or beside the time after which a request is given up."""
    wait = delay_us / 1000
    if timeout_ms is not None and wait >= timeout_ms:
        message = f"a lone request waits {wait:g} ms for others, but is given up after {timeout_ms} ms"
        yield say(_QUEUE_DELAY, f"{message}: lower the delay, or raise timeout_ms")
    elif timeout_ms is not None and wait > timeout_ms * _LONG_PART:
        message = f"every request may wait {wait:g} of the {timeout_ms} ms that it has"
        yield say(_QUEUE_DELAY, f"{message}; under load batches form without any delay", "warning")
    elif delay_us > _LONG_DELAY_US:
        message = f"every request may wait {wait:g} ms; under load batches form without any delay"
        yield say(_QUEUE_DELAY, message, "warning")


def _queues(batching: Any, say: SayAt) -> Iterator[Mistake]:
    stalls = "stalls this engine for half a second; limit concurrency and time at the gateway"
    if batching.HasField("default_queue_policy"):
        yield say("dynamic_batching.default_queue_policy", f"a queue policy {stalls}", "warning")
    if batching.priority_queue_policy:
        yield say("dynamic_batching.priority_queue_policy", f"a queue policy {stalls}", "warning")
    if batching.priority_levels:
        yield say("dynamic_batching.priority_levels", f"a queue of priorities {stalls}", "warning")


def _warm_up(config: Any, say: SayAt) -> Iterator[Mistake]:
    inputs = {i.name: i for i in config.input}
    for i, warm in enumerate(config.model_warmup):
        where = f"model_warmup[{i}]"
        if warm.batch_size > config.max_batch_size:
            yield say(where, f"warm-up sends {warm.batch_size} rows, above max_batch_size {config.max_batch_size}")
        for name in inputs:
            if name not in warm.inputs and not getattr(inputs[name], "optional", False):
                yield say(where, f"warm-up does not send input {name!r}, so the model fails to load")
        for name, sample in sorted(warm.inputs.items()):
            if name not in inputs:
                yield say(where, f"warm-up sends {name!r}, which is no input; the inputs are {', '.join(inputs)}")
            elif sample.data_type != inputs[name].data_type:
                have, want = pb.DataType.Name(sample.data_type), pb.DataType.Name(inputs[name].data_type)
                yield say(where, f"warm-up sends {name!r} as {have}, the input is {want}")
            elif not _of_shape(list(sample.dims), list(inputs[name].dims)):
                yield say(
                    where, f"warm-up sends {name!r} of {list(sample.dims)}, the input is {list(inputs[name].dims)}"
                )


def _of_shape(dims: list[int], wanted: list[int]) -> bool:
    return len(dims) == len(wanted) and all(d > 0 and w in (d, -1) for d, w in zip(dims, wanted, strict=True))


def _steps(config: Any, say: SayAt, models: set[str]) -> Iterator[Mistake]:
    """The models that an ensemble joins; Triton loads it only when they are in the same repository."""
    for i, step in enumerate(config.ensemble_scheduling.step):
        if step.model_name not in models:
            where = f"ensemble_scheduling.step[{i}].model_name"
            yield say(where, f"the ensemble's step {step.model_name!r} is no model of this repository")
    if config.platform == "ensemble" and not config.ensemble_scheduling.step:
        yield say("platform", "an ensemble needs ensemble_scheduling with a step for each model")


def _files(config: Any, say: SayAt, model: str, files: Mapping[str, bytes]) -> Iterator[Mistake]:
    if "/" in config.default_model_filename or config.default_model_filename == "..":
        message = f"default_model_filename {config.default_model_filename!r} must be a name in the version's folder"
        yield say("default_model_filename", message)
    for i, output in enumerate(config.output):
        if output.label_filename and f"{model}/{output.label_filename}" not in files:
            message = f"label_filename {output.label_filename!r} is not in the model's folder"
            yield say(f"output[{i}].label_filename", message)


def _rest(found: Read, say: SayAt, versions: Sequence[int]) -> Iterator[Mistake]:
    config = found.config
    if config.response_cache.enable:
        yield say("response_cache", "the response cache gives answers of an earlier model after a reload; leave it off")
    missing = [v for v in config.version_policy.specific.versions if v not in versions]
    if missing:
        there = ", ".join(map(str, versions)) or "none"
        yield say("version_policy", f"version_policy names {missing}, but the folders are {there}")
    if "EXECUTION_ENV_PATH" in config.parameters:
        message = "EXECUTION_ENV_PATH ties the model to a folder of one machine; leave it out"
        yield say("parameters", message, "warning")
