"""Named arrays over a connection between two processes whose numpys need not be alike.

One message is a JSON note (`tensors` lists name, type and shape) and one block of bytes for each tensor: numbers as
they lie in memory, texts as a JSON list. Nothing is pickled.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

Tensors = Mapping[str, np.ndarray]


def send(link: Connection, tensors: Tensors, **note: Any) -> None:
    """Send `tensors`, and what else there is to say (JSON)."""
    listed = [(name, "text" if v.dtype.kind == "O" else v.dtype.str, v.shape) for name, v in tensors.items()]
    link.send_bytes(json.dumps({"tensors": listed, **note}).encode())
    for values in tensors.values():
        link.send_bytes(_bytes(values))


def receive(link: Connection) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The next message: tensors and note. Raises EOFError when the other side has gone."""
    note = json.loads(link.recv_bytes())
    found = {name: _array(link.recv_bytes(), kind, shape) for name, kind, shape in note.pop("tensors")}
    return found, note


def _bytes(values: np.ndarray) -> bytes | memoryview:
    if values.dtype.kind == "O":
        return json.dumps(values.reshape(-1).tolist()).encode()
    # An array without elements has no bytes that could be cast.
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8).data if values.size else b""


def _array(data: bytes, kind: str, shape: list[int]) -> np.ndarray:
    flat = np.array(json.loads(data), dtype=object) if kind == "text" else np.frombuffer(data, dtype=kind)
    return flat.reshape(shape)
