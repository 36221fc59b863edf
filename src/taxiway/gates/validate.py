"""Gate 2: all mistakes of a model repository at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from taxiway.core.contract import Contract
from taxiway.gates import agree, config, graph, layout, pickles, serving
from taxiway.gates.config import Read
from taxiway.gates.mistake import Machine, Mistake, Target


def validate(
    files: Mapping[str, bytes], *, target: Target, machine: Machine, contract: Contract | None = None
) -> tuple[Mistake, ...]:
    """Every mistake in `files` (path in the repository -> bytes), in the order of paths and lines."""
    found: set[Mistake] = set()
    names = layout.models(files)
    if not names:
        found.add(Mistake(".", 0, 0, "error", "there is no model: a repository holds <model>/config.pbtxt"))
    for model in names:
        found |= set(_model(files, model, target, machine, contract))
    for path, data in files.items():
        found |= set(pickles.scan(path, data))
    return tuple(sorted(found))


def _model(
    files: Mapping[str, bytes], model: str, target: Target, machine: Machine, contract: Contract | None
) -> Iterator[Mistake]:
    path = f"{model}/config.pbtxt"
    read = config.read(_decoded(files[path]), path) if path in files else Read(None)
    yield from read.mistakes
    known = read.config
    backend = (known.backend or known.platform) if known is not None else ""
    default = (known.default_model_filename if known is not None else "") or layout.FILES.get(backend)
    yield from layout.check(files, model, default, needs_file=backend != "ensemble")
    versions = layout.versions(files, model)
    if known is not None:
        size = max((_size(files, f"{model}/{v}/") for v in versions), default=0)
        traffic = contract.max_batch if contract is not None else None
        yield from serving.check(read, path, model, versions, machine, size, traffic)
        if contract is not None:
            yield from agree.with_contract(read, path, contract)
    for version in versions:
        yield from _version(files, f"{model}/{version}/{default or 'model.onnx'}", read, path, target)


def _version(files: Mapping[str, bytes], where: str, read: Read, path: str, target: Target) -> Iterator[Mistake]:
    if not where.endswith(".onnx") or not files.get(where) or files[where].startswith(b"version https://git-lfs"):
        return
    model = graph.load(files[where])
    if model is None:
        yield Mistake(where, 0, 0, "error", "this is no ONNX model")
        return
    batched = read.config is not None and read.config.max_batch_size > 0
    yield from graph.check(model, where, target, batched=batched)
    if read.config is not None:
        yield from agree.check(read, path, model)


def _size(files: Mapping[str, bytes], prefix: str) -> int:
    return sum(len(data) for path, data in files.items() if path.startswith(prefix))


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "replace")
