"""Folders and names: `<model>/config.pbtxt`, `<model>/<version>/model.onnx`, and nothing that Triton would misread."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from taxiway.gates.mistake import Mistake

FILES = {
    "onnxruntime": "model.onnx",
    "onnxruntime_onnx": "model.onnx",
    "pytorch": "model.pt",
    "pytorch_libtorch": "model.pt",
    "python": "model.py",
}
_POINTER = b"version https://git-lfs"


def models(files: Mapping[str, bytes]) -> list[str]:
    """The model folders of a repository."""
    return sorted({p.partition("/")[0] for p in files if "/" in p})


def versions(files: Mapping[str, bytes], model: str) -> list[int]:
    """The version folders of a model that Triton would serve."""
    found = {p.split("/")[1] for p in files if p.startswith(f"{model}/") and p.count("/") >= 2}
    return sorted(int(v) for v in found if re.fullmatch(r"[1-9]\d*", v))


def check(files: Mapping[str, bytes], model: str, default: str | None, *, needs_file: bool) -> Iterator[Mistake]:
    """Mistakes of one model's folder; `default` is the file's name that the configuration asks for."""
    inside = sorted(p for p in files if p.startswith(f"{model}/"))
    if f"{model}/config.pbtxt" not in files:
        near = [p for p in inside if p.endswith((".pbtxt", ".pbtext", "config.txt"))]
        hint = f"; {near[0]} is in its place or named otherwise" if near else ""
        yield Mistake(f"{model}/config.pbtxt", 0, 0, "error", f"there is no configuration{hint}")
    yield from _folders(inside, model)
    for path in inside:
        yield from _file(path, files[path])
    numbers = versions(files, model)
    if needs_file and not numbers:
        yield Mistake(model, 0, 0, "error", f"there is no version folder; put the model into {model}/1/")
    if needs_file and default is not None:
        for number in numbers:
            wanted = f"{model}/{number}/{default}"
            if wanted not in files and not any(p.startswith(f"{wanted}/") for p in inside):
                there = sorted(p.rpartition("/")[2] for p in inside if p.startswith(f"{model}/{number}/"))
                said = f"; there is {', '.join(there[:5])}" if there else ""
                yield Mistake(wanted, 0, 0, "error", f"the model file is missing{said}")


def _folders(inside: list[str], model: str) -> Iterator[Mistake]:
    for folder in sorted({p.split("/")[1] for p in inside if p.count("/") >= 2}):
        path = f"{model}/{folder}"
        if re.fullmatch(r"[1-9]\d*", folder) or folder.startswith("."):
            continue
        number = re.match(r"\d+", folder)
        if number and not folder.isdecimal():
            message = f"Triton reads this folder as version {int(number[0])}; a version is a whole number from 1"
        elif folder.isdecimal():
            message = "a version is a whole number from 1, without zeros in front"
        elif re.fullmatch(r"v(ersion)?[_-]?\d+", folder, re.I):
            message = f"a version folder is a number alone: {re.sub(r'[^0-9]', '', folder)}"
        else:
            continue
        yield Mistake(path, 0, 0, "error", message)


def _file(path: str, data: bytes) -> Iterator[Mistake]:
    name = path.rpartition("/")[2]
    if name == "triton_python_backend_stub":
        yield Mistake(path, 0, 0, "error", "Triton would run this program instead of its own")
    if name == "config.pbtxt" and path.count("/") > 1:
        yield Mistake(path, 0, 0, "error", "Triton does not read a configuration in a version folder; move it up")
    if name.endswith((".onnx", ".pt", ".pth")):
        if not data:
            yield Mistake(path, 0, 0, "error", "the file is empty")
        elif data.startswith(_POINTER):
            yield Mistake(path, 0, 0, "error", "this is a Git LFS pointer, not the model: git lfs pull")
