"""The manifest: every file of a revision with its digest, and one digest over them all.

Triton's layout puts the revision number into a path (`risk/3/model.onnx`). The manifest writes that folder as
`{number}`, so that the digest says *what* answers, whatever number it was given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from taxiway.core import digest
from taxiway.core.errors import Refused

NUMBER = "{number}"


@dataclass(frozen=True, slots=True)
class FileEntry:
    """SHA-256 digest and size in bytes of one file."""

    digest: str
    size: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """Logical path -> file, for one model."""

    model: str
    files: Mapping[str, FileEntry]

    @property
    def digest(self) -> str:
        """The content address of the revision."""
        return digest.of_json(self._body())

    def to_json(self) -> dict[str, Any]:
        return {**self._body(), "digest": self.digest}

    def _body(self) -> dict[str, Any]:
        files = {path: {"digest": f.digest, "size": f.size} for path, f in self.files.items()}
        return {"format": 1, "model": self.model, "files": files}

    @staticmethod
    def of(model: str, contents: Mapping[str, bytes]) -> Manifest:
        """The manifest of `contents` (logical path -> bytes)."""
        return Manifest(model, {p: FileEntry(digest.of_bytes(b), len(b)) for p, b in sorted(contents.items())})

    @staticmethod
    def from_json(value: dict[str, Any]) -> Manifest:
        """Raises `Refused` when the manifest contradicts its own digest."""
        files = {p: FileEntry(f["digest"], f["size"]) for p, f in value["files"].items()}
        manifest = Manifest(value["model"], files)
        if manifest.digest != value["digest"]:
            raise Refused(f"the manifest of {manifest.model!r} does not match its own digest {value['digest']}")
        return manifest


def physical(path: str, number: int) -> str:
    """Where the logical `path` lies in revision `number`."""
    return path.replace(NUMBER, str(number))
