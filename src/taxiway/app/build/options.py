"""What a person can say about a build, as it reaches the process that builds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Options:
    """`made_rows` are the rows made to break the export; `contract` is the part of taxiway.yaml of that name;
    `python_step` allows what has no right conversion to stay Python.

    `atol` and `rtol` are how far an answer may be from the notebook's; None leaves it to the proof. What only decides
    how a finished build is served is no option of it, so that another value needs no other build.
    """

    opset: int = 17
    ml_opset: int = 3
    made_rows: int = 200
    max_batch: int = 128
    python_step: bool = True
    atol: float | None = None
    rtol: float | None = None
    contract: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"contract": dict(self.contract)}

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Options:
        return Options(**value)


DEFAULTS: Final = Options()
