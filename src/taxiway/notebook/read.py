"""A notebook file as code cells. Formats 3 and 4 are read; the file is never written."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat

from taxiway.core import digest
from taxiway.core.errors import Refused


@dataclass(frozen=True, slots=True)
class Cell:
    """One code cell: `number` counts code cells from 1, `count` is the stored execution count."""

    number: int
    source: str
    count: int | None = None


@dataclass(frozen=True, slots=True)
class Notebook:
    """The code of a notebook in file order, and the digest of the file's bytes."""

    path: Path
    digest: str
    cells: tuple[Cell, ...]


def read(path: Path) -> Notebook:
    """Read `path`. Raises Refused when it is missing, no notebook, not Python, or has no code."""
    if not path.exists():
        raise Refused(f"{path}: there is no such file; give the path of a notebook (.ipynb)", code="no-notebook")
    if not path.is_file():
        raise Refused(f"{path} is not a file; give the path of a notebook (.ipynb)", code="no-notebook")
    data = path.read_bytes()
    nodes = _nodes(path, data)
    language = _language(nodes)
    if language not in ("", "python", "python3", "ipython"):
        raise Refused(f"{path}: the notebook is written in {language}; only Python can be built", code="not-python")
    code = [c for c in nodes.cells if c.cell_type == "code" and c.source.strip()]
    if not code:
        raise Refused(f"{path}: the notebook has no code, so there is no model to build", code="no-model")
    cells = tuple(Cell(i, c.source, c.get("execution_count")) for i, c in enumerate(code, 1))
    return Notebook(path.resolve(), digest.of_bytes(data), cells)


def _nodes(path: Path, data: bytes) -> Any:
    try:
        value = json.loads(data)
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise Refused(f"{path} is not a notebook: {_short(error)} (a notebook is JSON)", code="no-notebook") from error
    if not isinstance(value, dict) or not isinstance(value.get("nbformat"), int):
        raise Refused(f"{path} is JSON but not a notebook: it names no `nbformat`", code="no-notebook")
    try:
        with warnings.catch_warnings():
            # Old files lack cell ids and the like; that does not touch their code.
            warnings.simplefilter("ignore")
            nodes = nbformat.from_dict(value)  # type: ignore[no-untyped-call]
            nodes = nbformat.convert(nodes, 4)  # type: ignore[no-untyped-call]
            for cell in nodes.cells:
                if isinstance(cell.source, list):
                    cell.source = "".join(cell.source)
                _ = cell.cell_type, cell.source.strip
    except Exception as error:  # any shape of JSON may come, and nbformat answers with any kind of error
        raise Refused(f"{path} is not a notebook that can be read: {_short(error)}", code="no-notebook") from error
    return nodes


def _language(nodes: Any) -> str:
    metadata = nodes.get("metadata", {})
    for key, word in (("language_info", "name"), ("kernelspec", "language")):
        name = metadata.get(key, {}).get(word)
        if name:
            return str(name).lower()
    return ""


def _short(error: BaseException) -> str:
    return str(error).split("\n")[0][:200]
