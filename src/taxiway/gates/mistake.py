"""What a gate says, and what it is told about the place where a model shall run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, Protocol

from taxiway.core.contract import Contract

Severity = Literal["error", "warning"]
# Operators that the standard has and the CPU builds of ONNX Runtime 1.19.2 have not (tried one by one).
_LACKS: Final = frozenset({"ai.onnx.DeformConv", "ai.onnx.ImageDecoder", "ai.onnx.ml.TreeEnsemble"})


@dataclass(frozen=True, slots=True, order=True)
class Mistake:
    """`line` and `column` count from 1; 0 means the file as a whole."""

    path: str
    line: int
    column: int
    severity: Severity
    message: str

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}:{self.column}" if self.line else self.path
        return f"{place}: {self.severity}: {self.message}"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class Say(Protocol):
    """Makes a mistake about a whole file."""

    def __call__(self, message: str, severity: Severity = "error") -> Mistake: ...


class SayAt(Protocol):
    """Makes a mistake about a key of a configuration, such as `input[0].dims`."""

    def __call__(self, where: str, message: str, severity: Severity = "error") -> Mistake: ...


def whole_file(path: str) -> Say:
    """For mistakes that have no line."""

    def say(message: str, severity: Severity = "error") -> Mistake:
        return Mistake(path, 0, 0, severity, message)

    return say


def at_key(path: str, place: Callable[[str], tuple[int, int]]) -> SayAt:
    """For mistakes in a configuration; `place` knows where a key stands."""

    def say(where: str, message: str, severity: Severity = "error") -> Mistake:
        return Mistake(path, *place(where), severity, message)

    return say


@dataclass(frozen=True, slots=True)
class Target:
    """The oldest ONNX Runtime that shall load the model, by what it knows."""

    opset: int = 21
    ml_opset: int = 5
    ir: int = 10
    runtime: str = "1.19.2"
    lacks: frozenset[str] = _LACKS


@dataclass(frozen=True, slots=True)
class Promise:
    """What callers are told: the contract, and after how long a request is given up; None: not known."""

    contract: Contract | None = None
    timeout_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Machine:
    """Where the engine runs: cores, bytes of memory that are free, and whether there is a GPU."""

    cores: int = 2
    memory: int = 4 << 30
    gpu: bool = False
