"""What a keeper is told: which revision to serve, from where, and where to report."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from taxiway.core.errors import Refused

_PATHS = ("repository", "home", "status_file", "log_file", "canary")


@dataclass(frozen=True, slots=True)
class EngineSpec:
    """One server for one revision.

    `repository` is a Triton repository root with `<model>/config.pbtxt` and `<model>/<number>/model.onnx`;
    `home` an installed engine; `canary` a golden sample (JSON) asked every `canary_every_s` seconds.
    """

    model: str
    number: int
    repository: Path
    home: Path
    status_file: Path
    log_file: Path
    canary: Path | None = None
    start_deadline_s: float = 60.0
    exit_timeout_s: int = 5
    canary_every_s: float = 3.0
    canary_timeout_s: float = 5.0

    @property
    def version(self) -> Path:
        """The folder of the model's files."""
        return self.repository / self.model / str(self.number)

    def to_json(self) -> dict[str, Any]:
        return {k: str(v) if isinstance(v, Path) else v for k, v in asdict(self).items()}

    @staticmethod
    def from_json(value: dict[str, Any]) -> EngineSpec:
        paths = {k: Path(value[k]) for k in _PATHS if value.get(k) is not None}
        return EngineSpec(**{**value, **paths})

    @staticmethod
    def read(path: Path) -> EngineSpec:
        """The spec in a file; raises `Refused`."""
        try:
            return EngineSpec.from_json(json.loads(path.read_text()))
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise Refused(f"{path} does not describe an engine: {error}") from None
