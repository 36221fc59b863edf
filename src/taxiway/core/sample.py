"""Tensors and golden samples as JSON: real requests with the answers they must get.

A `Tensor` is data in row-major order with its shape, batch axis included; the JSON is the Open Inference
Protocol's own, so that a stored sample is a request body. NaN and infinities, which JSON cannot say, are
written as the strings "NaN", "Infinity" and "-Infinity".
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from taxiway.core.tensor import FLOATS, rounded

Value = float | int | bool | str


@dataclass(frozen=True, slots=True)
class Tensor:
    """Flat `data` of prod(shape) values of protocol type `dtype`."""

    dtype: str
    shape: tuple[int, ...]
    data: tuple[Value, ...]

    def __post_init__(self) -> None:
        if math.prod(self.shape) != len(self.data):
            raise ValueError(f"shape {list(self.shape)} holds {math.prod(self.shape)} values, not {len(self.data)}")

    def to_json(self) -> dict[str, Any]:
        return {"datatype": self.dtype, "shape": list(self.shape), "data": [_plain(v) for v in self.data]}

    @staticmethod
    def from_json(value: dict[str, Any]) -> Tensor:
        dtype = value["datatype"]
        data = tuple(float(v) if dtype in FLOATS else v for v in value["data"])
        return Tensor(dtype, tuple(value["shape"]), data)


def _plain(value: Value) -> Value:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    return value


@dataclass(frozen=True, slots=True)
class Golden:
    """A request whose answer is known. A float passes when |got - expected| <= atol + rtol * |expected|.

    Labels, and whole numbers of any kind, pass when they are the same: there is no half-right class.
    """

    name: str
    inputs: Mapping[str, Tensor]
    outputs: Mapping[str, Tensor]
    atol: float = 1e-5
    rtol: float = 1e-4

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "inputs": {k: v.to_json() for k, v in self.inputs.items()},
            "outputs": {k: v.to_json() for k, v in self.outputs.items()},
            "atol": self.atol,
            "rtol": self.rtol,
        }

    @staticmethod
    def from_json(value: dict[str, Any]) -> Golden:
        return Golden(
            name=value["name"],
            inputs={k: Tensor.from_json(v) for k, v in value["inputs"].items()},
            outputs={k: Tensor.from_json(v) for k, v in value["outputs"].items()},
            atol=value["atol"],
            rtol=value["rtol"],
        )

    def differences(self, answer: Mapping[str, Tensor]) -> list[str]:
        """What is wrong with `answer`, one sentence each; empty when it is right."""
        found: list[str] = []
        for name, expected in self.outputs.items():
            got = answer.get(name)
            if got is None:
                found.append(f"{self.name}: output {name!r} is missing")
            elif (got.dtype, got.shape) != (expected.dtype, expected.shape):
                found.append(
                    f"{self.name}: output {name!r} is {got.dtype} {list(got.shape)}, "
                    f"expected {expected.dtype} {list(expected.shape)}"
                )
            else:
                found += self._values(name, expected, got)
        return found

    def _values(self, name: str, expected: Tensor, got: Tensor) -> list[str]:
        dtype = expected.dtype
        for i, (want, have) in enumerate(zip(expected.data, got.data, strict=True)):
            if not self._close(dtype, rounded(dtype, want), rounded(dtype, have)):
                return [f"{self.name}: output {name!r}[{i}] is {have!r}, expected {want!r}"]
        return []

    def _close(self, dtype: str, want: Value, have: Value) -> bool:
        if dtype not in FLOATS or isinstance(want, str) or isinstance(have, str):
            return want == have
        if math.isnan(want):
            return math.isnan(have)
        # No number is near an infinity, though an infinite tolerance would say so.
        return want == have or (math.isfinite(want) and abs(have - want) <= self.atol + self.rtol * abs(want))
