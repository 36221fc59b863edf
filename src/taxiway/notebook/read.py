"""A notebook file as code cells. Formats 3 and 4 are read; the file is never written."""

from __future__ import annotations

import json
import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import nbformat

from taxiway.core import digest
from taxiway.core.errors import Refused

_PINS: Final = re.compile(
    r"(requirements|constraints)[\w.-]*\.(txt|in)|environment[\w.-]*\.ya?ml|pyproject\.toml|Pipfile(\.lock)?"
)
# Of a requirements file, this much is read.
_LONGEST: Final = 1 << 18


@dataclass(frozen=True, slots=True)
class Output:
    """What a cell has left: `kind` is stream, result or error, `text` its plain text (of an error, its name)."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Cell:
    """One code cell: `number` counts code cells from 1, `count` is the stored execution count."""

    number: int
    source: str
    count: int | None = None
    outputs: tuple[Output, ...] = ()


@dataclass(frozen=True, slots=True)
class Notebook:
    """The code of a notebook in file order, the digest of the file's bytes, and the texts between the code.

    `python` is the version that it was saved with, "" when it does not say; `modules` are the names of the modules
    beside it, `pins` the text of the requirements files there.
    """

    path: Path
    digest: str
    cells: tuple[Cell, ...]
    texts: tuple[str, ...] = ()
    python: str = ""
    modules: frozenset[str] = frozenset()
    pins: str = ""


def read(path: Path) -> Notebook:
    """Read `path`. Raises Refused when it is missing, no notebook, not Python, or has no code."""
    if not path.exists():
        raise Refused(f"{path}: there is no such file; give the path of a notebook (.ipynb)", code="no-notebook")
    if not path.is_file():
        raise Refused(f"{path} is not a file; give the path of a notebook (.ipynb)", code="no-notebook")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise Refused(f"{path} cannot be read: {error.strerror}", code="no-notebook") from error
    nodes = _nodes(path, data)
    language = _language(nodes)
    if language not in ("", "python", "python3", "ipython"):
        raise Refused(f"{path}: the notebook is written in {language}; only Python can be built", code="not-python")
    code = [c for c in nodes.cells if c.cell_type == "code" and c.source.strip()]
    if not code:
        raise Refused(f"{path}: the notebook has no code, so there is no model to build", code="no-model")
    cells = tuple(Cell(i, c.source, _count(c), _outputs(c)) for i, c in enumerate(code, 1))
    texts = tuple(c.source for c in nodes.cells if c.cell_type in ("markdown", "raw", "heading"))
    modules, pins = _beside(path)
    python = _metadata(nodes, "language_info", "version")
    return Notebook(path.resolve(), digest.of_bytes(data), cells, texts, python, modules, pins)


def _beside(path: Path) -> tuple[frozenset[str], str]:
    """(modules, requirements) in the notebook's folder; what cannot be read is not there."""
    try:
        entries = list(path.absolute().parent.iterdir())
        modules = frozenset(e.stem for e in entries if e.suffix == ".py" or (e / "__init__.py").is_file())
        files = sorted(e for e in entries if _PINS.fullmatch(e.name) and e.is_file())
        return modules, "\n".join(f.read_bytes()[:_LONGEST].decode(errors="replace") for f in files)
    except OSError:
        return frozenset(), ""


def _count(cell: Any) -> int | None:
    count = cell.get("execution_count")
    return count if isinstance(count, int) and not isinstance(count, bool) else None


def _outputs(cell: Any) -> tuple[Output, ...]:
    found = []
    for output in cell.get("outputs") or ():
        kind = output.get("output_type") if isinstance(output, dict) else None
        if kind == "stream" and output.get("name") != "stderr":
            found.append(Output("stream", _joined(output.get("text"))))
        elif kind == "error":
            found.append(Output("error", _joined(output.get("ename"))))
        elif kind == "execute_result":
            data = output.get("data")
            text = _joined(data.get("text/plain") if isinstance(data, dict) else "")
            found.append(Output("result", text))
    return tuple(found)


def _joined(text: Any) -> str:
    return "".join(map(str, text)) if isinstance(text, list) else str(text or "")


def _nodes(path: Path, data: bytes) -> Any:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:  # also a number of more digits than Python takes
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
    name = _metadata(nodes, "language_info", "name") or _metadata(nodes, "kernelspec", "language")
    return name.lower()


def _metadata(nodes: Any, key: str, word: str) -> str:
    metadata = nodes.get("metadata")
    part = metadata.get(key) if isinstance(metadata, dict) else None
    return str(part.get(word) or "") if isinstance(part, dict) else ""


def _short(error: BaseException) -> str:
    return str(error).split("\n")[0][:200]
