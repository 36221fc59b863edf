"""Weights that an ONNX model keeps in files beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import onnx

from taxiway.gates.mistake import Mistake


@dataclass(frozen=True, slots=True)
class Weights:
    """Where a tensor's bytes are: a file's path as it stands in the model, and the part of it (None: to its end)."""

    tensor: str
    location: str
    offset: int
    length: int | None


def outside(model: Any) -> list[tuple[Any, Weights]]:
    """The tensors of a model whose bytes are in another file."""
    found = []
    for tensor in model.graph.initializer:
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            said = {e.key: e.value for e in tensor.external_data}
            length = _number(said["length"]) if "length" in said else None
            found.append((tensor, Weights(tensor.name, said.get("location", ""), _number(said.get("offset")), length)))
    return found


def check(model: Any, path: str, files: Mapping[str, bytes]) -> Iterator[Mistake]:
    """Weights that are not where the model at `path` says they are."""
    for _, weights in outside(model):
        name = f"weights {weights.tensor!r}"
        where = beside(path, weights.location)
        if where is None:
            message = f"{name} are in {weights.location!r}, outside the version's folder; the engine refuses that"
            yield Mistake(path, 0, 0, "error", message)
        elif where not in files:
            yield Mistake(path, 0, 0, "error", f"{name} are in {where}, which is missing; put it beside the model")
        elif weights.offset + (weights.length or 0) > len(files[where]):
            message = f"{name} end at byte {weights.offset + (weights.length or 0)} of {where}, which is shorter"
            yield Mistake(path, 0, 0, "error", message)


def beside(path: str, location: str) -> str | None:
    """The path of a file that a model at `path` names; None when it lies outside the model's folder."""
    parts = location.replace("\\", "/").split("/")
    if not location or location.startswith("/") or ".." in parts:
        return None
    return "/".join([path.rpartition("/")[0], *(p for p in parts if p not in ("", "."))])


def inline(model: Any, path: str, files: Mapping[str, bytes]) -> None:
    """Put all weights into the model itself, so that it can be looked at without a disk; `check` must have passed."""
    for tensor, weights in outside(model):
        data = files[beside(path, weights.location) or ""]
        end = len(data) if weights.length is None else weights.offset + weights.length
        tensor.raw_data = data[weights.offset : end]
        tensor.data_location = onnx.TensorProto.DEFAULT
        del tensor.external_data[:]


def _number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdecimal() else 0
