"""Folders and names: `<model>/config.pbtxt`, `<model>/<version>/model.onnx`, and nothing that Triton would misread.

A file that nobody reads is a warning, since people keep notes beside their models; a name that Triton reads in another
way than it looks is an error. What a model file holds is looked at elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set
from typing import Final

from taxiway.gates.mistake import Mistake

FILES: Final = {
    "onnxruntime": "model.onnx",
    "onnxruntime_onnx": "model.onnx",
    "pytorch": "model.pt",
    "pytorch_libtorch": "model.pt",
    "python": "model.py",
}
POINTER: Final = b"version https://git-lfs"
_VERSION: Final = re.compile(r"[1-9][0-9]*")
# Triton keeps a version in 64 bits.
_LARGEST_VERSION: Final = (1 << 63) - 1
# Folders of a model that Triton reads beside its versions.
_READ: Final = frozenset({"configs", "initial_state", "warmup"})


def models(files: Mapping[str, bytes]) -> list[str]:
    """The model folders of a repository."""
    return sorted({m for p in files if "/" in p and not (m := p.partition("/")[0]).startswith(".")})


def versions(files: Mapping[str, bytes], model: str) -> list[int]:
    """The version folders of a model that Triton would serve."""
    found = {p.split("/")[1] for p in files if p.startswith(f"{model}/") and p.count("/") >= 2}
    return sorted(int(v) for v in found if _VERSION.fullmatch(v))


def repository(files: Mapping[str, bytes]) -> Iterator[Mistake]:
    """Mistakes of the folder as a whole."""
    if "config.pbtxt" in files:
        message = "this folder is a model, not a repository; give the folder that it lies in"
        yield Mistake("config.pbtxt", 0, 0, "error", message)
    elif not models(files):
        yield Mistake(".", 0, 0, "error", "there is no model: a repository holds <model>/config.pbtxt")
    for folder in sorted({p.partition("/")[0] for p in files if "/" in p and p.startswith(".")}):
        yield Mistake(folder, 0, 0, "error", "Triton takes this folder for a model; move it out of the repository")


def check(
    files: Mapping[str, bytes], model: str, default: str | None, *, needs_file: bool, used: Set[str]
) -> Iterator[Mistake]:
    """Mistakes of one model's folder.

    `default` is the file's name that the configuration asks for (None: not known), `used` has the paths that something
    else refers to.
    """
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
            yield from _missing(inside, f"{model}/{number}", default)
        if not default.endswith(".py"):
            yield from _strays(inside, model, default, used)


def _missing(inside: list[str], folder: str, default: str) -> Iterator[Mistake]:
    wanted = f"{folder}/{default}"
    if any(p == wanted or p.startswith(f"{wanted}/") for p in inside):
        return
    there = sorted(p.rpartition("/")[2] for p in inside if p.startswith(f"{folder}/"))
    said = f"; there is {', '.join(there[:5])}" if there else ""
    yield Mistake(wanted, 0, 0, "error", f"the model file is missing{said}")


def _strays(inside: list[str], model: str, default: str, used: Set[str]) -> Iterator[Mistake]:
    """Files that neither Triton nor the model reads; hidden ones are no one's business."""
    for path in inside:
        first, *rest = path.removeprefix(f"{model}/").split("/")
        # Folders that are no versions are told of as a whole.
        in_version = bool(rest) and _VERSION.fullmatch(first) is not None
        known = rest[0] == default if in_version else bool(rest) or first == "config.pbtxt"
        if not known and path not in used and not any(part.startswith(".") for part in (first, *rest)):
            yield Mistake(path, 0, 0, "warning", "nothing reads this file; keep it outside the repository")


def _folders(inside: list[str], model: str) -> Iterator[Mistake]:
    for folder in sorted({p.split("/")[1] for p in inside if p.count("/") >= 2}):
        reason = _not_a_version(folder)
        if reason:
            yield Mistake(f"{model}/{folder}", 0, 0, "error", reason)
        elif not _VERSION.fullmatch(folder) and folder not in _READ and not folder.startswith("."):
            yield Mistake(f"{model}/{folder}", 0, 0, "warning", "nothing reads this folder; a version is a number")


def _not_a_version(folder: str) -> str | None:
    """Why a folder that looks like a version is none; None when it is one, or does not look like one."""
    if _VERSION.fullmatch(folder):
        return None if int(folder) <= _LARGEST_VERSION else "a version is a whole number of at most 64 bits"
    number = re.match(r"[0-9]+", folder)
    if number and number[0] != folder:
        return f"Triton reads this folder as version {int(number[0])}; a version is a whole number from 1"
    if number:
        return "a version is a whole number from 1, without zeros in front"
    if re.fullmatch(r"v(ersion)?[_-]?[0-9]+", folder, re.I):
        return f"a version folder is a number alone: {re.sub(r'[^0-9]', '', folder)}"
    return None


def _file(path: str, data: bytes) -> Iterator[Mistake]:
    name = path.rpartition("/")[2]
    if name == "triton_python_backend_stub":
        yield Mistake(path, 0, 0, "error", "Triton would run this program instead of its own; remove it")
    if name == "config.pbtxt" and path.count("/") > 1:
        yield Mistake(path, 0, 0, "error", "Triton does not read a configuration in a version folder; move it up")
    if data.startswith(POINTER):
        yield Mistake(path, 0, 0, "error", "this is a Git LFS pointer, not the file: git lfs pull")
    if not data and name.endswith((".onnx", ".pt", ".pth")):
        yield Mistake(path, 0, 0, "error", "the file is empty")
