"""The second half of the parity proof: the same rows once more, through the engine that will serve them.

The build compared the export with the notebook's model in the exporting process. Here the rows it kept (some of the
notebook's, all that were made) go through the running engine over the network, one at a time, two, five, and in
batches as large as the contract allows; the answers must be those of the notebook's model.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from taxiway.catalog.store import Stored
from taxiway.core.errors import Refused
from taxiway.core.revision import Revision
from taxiway.core.sample import Golden, Tensor, Value
from taxiway.core.tensor import rounded
from taxiway.engine.client import EngineError, infer

SMALL: Final = (1, 2, 5)

Tensors = Mapping[str, Tensor]


@dataclass(slots=True)
class Figures:
    """How far the engine's answers are from the right ones, over all rows and batches asked so far."""

    rows: int = 0
    requests: int = 0
    max_abs_error: float = 0.0
    max_rel_error: float = 0.0
    flips: int = 0

    def add(self, expected: Tensors, got: Tensors, atol: float) -> None:
        """Count one answered request."""
        self.requests += 1
        self.rows += next(iter(expected.values())).shape[0]
        for name, tensor in expected.items():
            for want, have in zip(tensor.data, got[name].data, strict=True):
                self._value(rounded(tensor.dtype, want), rounded(tensor.dtype, have), atol)

    def _value(self, want: Value, have: Value, atol: float) -> None:
        if isinstance(want, float) and isinstance(have, float):
            error = 0.0 if want == have or (math.isnan(want) and math.isnan(have)) else abs(want - have)
            self.max_abs_error = max(self.max_abs_error, error)
            if abs(want) > atol:
                self.max_rel_error = max(self.max_rel_error, error / abs(want))
        elif want != have:
            self.flips += 1


def replay(stored: Stored, address: str) -> dict[str, Any]:
    """Ask the engine at `address` all kept rows; raises `Refused` with the first differences."""
    first, figures, wrong = stored.golden()[0], Figures(), []
    for number, case in enumerate(stored.evidence("replay"), 1):
        inputs, outputs = _tensors(case["inputs"]), _tensors(case["outputs"])
        for start, size in _batches(_rows(inputs), stored.contract().max_batch):
            asked, right = _slice(inputs, start, size), _slice(outputs, start, size)
            sample = Golden(f"case {number}, rows {start} to {start + size - 1}", asked, right, first.atol, first.rtol)
            try:
                got = infer(address, stored.revision.model, asked, timeout_s=30)
            except EngineError as error:
                wrong.append(f"{sample.name}: {error}")
                continue
            found = sample.differences(got)
            wrong += found
            if not found:
                figures.add(right, got, first.atol)
    if wrong:
        more = [f"… and {len(wrong) - 5} more"] if len(wrong) > 5 else []
        raise Refused(
            f"{stored.revision}: the serving engine does not answer what the notebook's model answers",
            *wrong[:5],
            *more,
            code="engine-parity",
        )
    return {
        "rows": figures.rows,
        "requests": figures.requests,
        "max_abs_error": figures.max_abs_error,
        "max_rel_error": figures.max_rel_error,
        "label_flips": figures.flips,
    }


def keep(folder: Path, stored: Stored, figures: Mapping[str, Any]) -> None:
    """Keep what was measured for `taxiway revision show` (written aside and renamed)."""
    folder.mkdir(parents=True, exist_ok=True)
    path = _file(folder, stored.revision)
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    aside.write_text(json.dumps({"digest": stored.digest, **figures}, indent=1, sort_keys=True) + "\n")
    aside.replace(path)


def kept(folder: Path, stored: Stored) -> dict[str, Any] | None:
    """What `keep` kept of these very bytes; None when they were never asked."""
    try:
        value: dict[str, Any] = json.loads(_file(folder, stored.revision).read_text())
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) and value.pop("digest", None) == stored.digest else None


def _file(folder: Path, revision: Revision) -> Path:
    return folder / f"{revision}.json"


def _tensors(value: Mapping[str, Any]) -> dict[str, Tensor]:
    return {name: Tensor.from_json(t) for name, t in value.items()}


def _rows(tensors: Tensors) -> int:
    return next(iter(tensors.values())).shape[0]


def _batches(rows: int, largest: int) -> Iterator[tuple[int, int]]:
    """(first row, rows): the first few rows in small batches, then all of them in large ones."""
    start = 0
    for size in SMALL:
        if start + size <= rows and size <= max(1, largest):
            yield start, size
            start += size
    step = min(max(1, largest), 64)
    for begin in range(0, rows, step):
        yield begin, min(step, rows - begin)


def _slice(tensors: Tensors, start: int, size: int) -> dict[str, Tensor]:
    found: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        width = math.prod(tensor.shape[1:])
        data: Sequence[Value] = tensor.data[start * width : (start + size) * width]
        found[name] = Tensor(tensor.dtype, (size, *tensor.shape[1:]), tuple(data))
    return found
