"""What a gate says, and what it is told about the place where a model shall run."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Severity = Literal["error", "warning"]


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


@dataclass(frozen=True, slots=True)
class Target:
    """The oldest ONNX Runtime that shall load the model, by what it knows."""

    opset: int = 21
    ml_opset: int = 5
    ir: int = 10
    runtime: str = "1.19.2"


@dataclass(frozen=True, slots=True)
class Machine:
    """Where the engine runs: cores, bytes of memory that are free, and whether there is a GPU."""

    cores: int = 2
    memory: int = 4 << 30
    gpu: bool = False
