"""A PyTorch model file: what NVIDIA's backend loads is TorchScript, and most .pt files are not."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator

from taxiway.gates.mistake import Mistake
from taxiway.gates.pickles import is_torchscript


def check(path: str, data: bytes) -> Iterator[Mistake]:
    """The mistake when the file at `path` is no TorchScript archive."""
    if not is_torchscript(_members(data)):
        message = "this is no TorchScript model; save it with torch.jit.save(torch.jit.script(model), ...)"
        yield Mistake(path, 0, 0, "error", message)


def _members(data: bytes) -> list[str]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return archive.namelist()
    except Exception:  # garbage makes errors of every kind
        return []
