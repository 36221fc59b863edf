"""Gate 2: all mistakes of a model repository at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from taxiway.core.contract import Contract
from taxiway.gates import agree, capacity, config, external, graph, layout, pickles, serving, step, torchscript
from taxiway.gates.config import Read
from taxiway.gates.mistake import Machine, Mistake, Promise, Target
from taxiway.gates.step import PARAMETER as STEP_PARAMETER

Files = Mapping[str, bytes]


def validate(
    files: Files,
    *,
    target: Target,
    machine: Machine,
    contract: Contract | None = None,
    timeout_ms: int | None = None,
    own: bool = False,
) -> tuple[Mistake, ...]:
    """Every mistake in `files` (path in the repository -> bytes), in the order of paths and lines.

    `contract` and `timeout_ms`, after which a request is given up, are what the models are held to where it is known.
    `own` says that a build made them: the pickle of a model's Python step is then what it should be.
    """
    promise = Promise(contract, timeout_ms)
    found = set(layout.repository(files))
    for model in layout.models(files) if "config.pbtxt" not in files else ():
        found |= set(_model(files, model, target, machine, promise))
    steps = {p for m in layout.models(files) for p in _step(files, m)} if own else set()
    for path, data in files.items():
        found |= set(pickles.scan(path, data)) if path not in steps else set()
    return tuple(sorted(found))


def _model(files: Files, model: str, target: Target, machine: Machine, promise: Promise) -> Iterator[Mistake]:
    path = f"{model}/config.pbtxt"
    read = _read(files, path)
    yield from read.mistakes
    known = read.config
    backend = (known.backend or known.platform) if known is not None else ""
    default = (known.default_model_filename if known is not None else "") or layout.FILES.get(backend)
    versions = layout.versions(files, model)
    graphs = _graphs(files, [f"{model}/{v}/{default or 'model.onnx'}" for v in versions])
    stepped = known is not None and STEP_PARAMETER in known.parameters
    used = _used(known, model, graphs) | (_step(files, model) if stepped else frozenset())
    if stepped:
        yield from step.check(files, model, versions, path)
    yield from layout.check(files, model, default, needs_file=backend != "ensemble", used=used)
    if known is not None:
        size = max((_size(files, f"{model}/{v}/") for v in versions), default=0)
        yield from serving.check(read, path, files, versions, promise)
        yield from capacity.check(read, path, machine, size)
        if promise.contract is not None:
            yield from agree.with_contract(read, path, promise.contract)
    for where, made in graphs.items():
        yield from _graph(files, where, made, read, path, target, step.gives(files, where) if stepped else None)
    if backend in ("pytorch", "pytorch_libtorch"):
        for where in (f"{model}/{v}/{default}" for v in versions):
            if _is_there(files, where):
                yield from torchscript.check(where, files[where])


def _read(files: Files, path: str) -> Read:
    if path not in files:
        return Read(None)
    try:
        return config.read(files[path].decode(), path)
    except UnicodeDecodeError as error:
        read = config.read(files[path].decode("utf-8", "replace"), path)
        before = files[path][: error.start]
        line, column = before.count(b"\n") + 1, error.start - before.rfind(b"\n")
        read.mistakes.append(Mistake(path, line, column, "error", "this is not UTF-8; save the file as UTF-8"))
        return read


def _graphs(files: Files, wanted: Sequence[str]) -> dict[str, Any | None]:
    """The ONNX models among the model files, by path; None for what is none. A model may be a folder."""
    found = {}
    for path in wanted:
        if not path.endswith(".onnx"):
            continue
        where = path if path in files else f"{path}/model.onnx"
        if _is_there(files, where):
            found[where] = graph.load(files[where])
    return found


def _is_there(files: Files, path: str) -> bool:
    """Whether there is a model; that it is empty, or lies elsewhere, is told of as such."""
    return bool(files.get(path)) and not files[path].startswith(layout.POINTER)


def _used(known: Any, model: str, graphs: Mapping[str, Any | None]) -> frozenset[str]:
    beside = {
        external.beside(where, weights.location) or ""
        for where, made in graphs.items()
        if made is not None
        for _, weights in external.outside(made)
    }
    return frozenset(beside) | (serving.used(known, model) if known is not None else frozenset())


def _step(files: Files, model: str) -> frozenset[str]:
    """The files of a model's Python steps."""
    wanted = (f"{model}/{v}/{step.FOLDER}/{name}" for v in layout.versions(files, model) for name in step.FILES)
    return frozenset(path for path in wanted if path in files)


def _graph(
    files: Files, where: str, made: Any | None, read: Read, path: str, target: Target, between: step.Tensors | None
) -> Iterator[Mistake]:
    """`between` are the tensors that a Python step gives to the model, when it has one."""
    if made is None:
        yield Mistake(where, 0, 0, "error", "this is no ONNX model")
        return
    known = read.config
    batched = known is not None and known.max_batch_size > 0
    inputs = between.keys() if between is not None else {e.name for e in (known.input if known is not None else ())}
    served = None if known is None else frozenset(inputs) | {e.name for e in known.output}
    if known is not None:
        yield from agree.check(read, path, made, kinds=("output",) if between is not None else agree.KINDS)
    if between is not None:
        yield from step.agree(where, between, made)
    yield from graph.check(made, where, files, target, batched=batched, served=served)


def _size(files: Files, prefix: str) -> int:
    return sum(len(data) for path, data in files.items() if path.startswith(prefix))
