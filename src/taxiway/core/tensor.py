"""Tensor types in the words of the Open Inference Protocol v2."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import Any, Final

# protocol name -> (numpy name, bytes per element; 0 = variable)
DTYPES: Final[dict[str, tuple[str, int]]] = {
    "BOOL": ("bool", 1),
    "UINT8": ("uint8", 1),
    "UINT16": ("uint16", 2),
    "UINT32": ("uint32", 4),
    "UINT64": ("uint64", 8),
    "INT8": ("int8", 1),
    "INT16": ("int16", 2),
    "INT32": ("int32", 4),
    "INT64": ("int64", 8),
    "FP16": ("float16", 2),
    "FP32": ("float32", 4),
    "FP64": ("float64", 8),
    "BYTES": ("object", 0),
}

FLOATS: Final = frozenset({"FP16", "FP32", "FP64"})
_PACK: Final = {"FP16": "e", "FP32": "f", "FP64": "d"}


def rounded(dtype: str, value: Any) -> Any:
    """A number as a float tensor of this type holds it: 0.1 as FP32 is 0.10000000149; any other type's value as is."""
    if dtype not in _PACK:
        return value
    try:
        return struct.unpack(_PACK[dtype], struct.pack(_PACK[dtype], value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """Name, protocol dtype and dims of one row (the batch axis is not among them; -1 = any length)."""

    name: str
    dtype: str
    dims: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise ValueError(f"tensor {self.name!r}: dtype {self.dtype!r} is none of {', '.join(DTYPES)}")
        if any(d == 0 or d < -1 for d in self.dims):
            raise ValueError(f"tensor {self.name!r}: dims {list(self.dims)} must be positive, or -1 for any length")
