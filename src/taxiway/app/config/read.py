"""Read `taxiway.yaml`, and say everything that is wrong with it at once, with line and column.

Four steps, each of which only goes on with what the one before has let through: the bytes become text, the text a
value that knows where it stands (`nodes.py`), the schema and what no schema can say are asked about the value
(`explain.py`, `_crossed`), and what is left is a `Config`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from taxiway.app.config import explain, nodes
from taxiway.app.config.model import Config, Serving
from taxiway.app.config.nodes import Document, Mistake, NotYaml, Where
from taxiway.core.errors import Refused

NAME: Final = "taxiway.yaml"
_LARGEST: Final = 1 << 20
_MOST_TOLD: Final = 100
_SCHEMA: Final = Path(__file__).with_name("taxiway.schema.json")
_SERVING: Final = Serving()


def schema() -> dict[str, Any]:
    """The JSON Schema of `taxiway.yaml`."""
    value: dict[str, Any] = json.loads(_SCHEMA.read_text())
    return value


def find(notebook: Path) -> Path | None:
    """The configuration beside a notebook."""
    path = notebook.absolute().parent / NAME
    return path if path.is_file() else None


def read(path: Path) -> Config:
    """The configuration in `path`; raises `Refused` (code `bad-config`) with every mistake."""
    try:
        document = nodes.parse(_text(path))
    except NotYaml as error:
        raise _refused(path, [error.mistake]) from None
    if not isinstance(document.value, dict):
        raise _refused(path, [Mistake((1, 1), "expected keys with values, for instance model: risk")])
    found = explain.mistakes(document, schema())
    wrong = sorted({*found, *_crossed(document), *_late(document)})
    if wrong:
        raise _refused(path, wrong)
    places = {nodes.name(where): f"{path}:{line}:{column}" for where, (line, column) in document.keys.items()}
    return replace(Config.of(document.value), places=places)


def _refused(path: Path, mistakes: Sequence[Mistake]) -> Refused:
    said = [f"{path}:{m.at[0]}:{m.at[1]}: {m.said}" for m in mistakes[:_MOST_TOLD]]
    more = len(mistakes) - len(said)
    return Refused(*said, *([f"{path}: and {more} more mistakes"] if more else []), code="bad-config")


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError as error:
        raise _unread(f"{path} cannot be read: {error.strerror}; name another file with --config") from None
    if len(data) > _LARGEST:
        raise _unread(f"{path} is larger than 1 MB; this cannot be a configuration")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        at = f"{path}:{line}:{column}"
        raise _unread(f"{at}: byte 0x{data[error.start]:02x} is not UTF-8; save the file as UTF-8") from None


def _unread(reason: str) -> Refused:
    return Refused(reason, code="bad-config")


def _crossed(document: Document) -> Iterator[Mistake]:
    """Rules that leave nothing to accept, since their `min` is above their `max`: a schema cannot compare two keys."""
    for where, rules in _rules(document.value, ()):
        least, greatest = rules.get("min"), rules.get("max")
        if isinstance(least, int | float) and isinstance(greatest, int | float) and least > greatest:
            said = f"{nodes.name(where)}: min {least} is above max {greatest}; nothing would be accepted"
            yield Mistake(document.values[(*where, "min")], said)


def _late(document: Document) -> Iterator[Mistake]:
    """A wait for a batch that outlasts the request itself."""
    serving = document.value.get("serving")
    said = serving if isinstance(serving, dict) else {}
    delay, timeout = said.get("queue_delay_us"), said.get("timeout_ms", _SERVING.timeout_ms)
    if isinstance(delay, int) and isinstance(timeout, int) and delay >= timeout * 1000 > 0:
        where = ("serving", "queue_delay_us")
        lost = f"a lone request waits {delay / 1000:g} ms for others, but is given up after timeout_ms {timeout}"
        yield Mistake(document.values[where], f"{nodes.name(where)}: {lost}; nothing would be answered")


def _rules(value: Any, where: Where) -> Iterator[tuple[Where, Mapping[str, Any]]]:
    if isinstance(value, dict):
        yield where, value
        for key, inner in value.items():
            yield from _rules(inner, (*where, key))
