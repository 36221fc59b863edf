"""The schemas that are published, by the name of the file they describe.

`taxiway.yaml` is described by the file beside this one. `platform.json` is described by the settings themselves: the
fields of the dataclass are its keys, and the sentence under each field is its description.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import Any, Final

from taxiway.app.config import read
from taxiway.app.settings import Settings

_PORT: Final = {"type": "integer", "minimum": 1, "maximum": 65535}
_TEXT: Final = {"type": "string"}


def platform() -> dict[str, Any]:
    """The JSON Schema of `platform.json` in the state folder."""
    said = dict(_sentences(inspect.getsource(Settings)))
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "platform.json",
        "description": "The settings that a platform was last started with; `taxiway up` keeps them.",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            # Every whole number among the settings is a port.
            name: {"description": said[name], **(_PORT if isinstance(default, int) else _TEXT), "default": default}
            for name, default in asdict(Settings()).items()
        },
    }


PUBLISHED: Final[Mapping[str, Callable[[], dict[str, Any]]]] = {read.NAME: read.schema, "platform.json": platform}
"""How each schema is made, by the name of the file it describes."""


def text(name: str) -> str:
    """The schema of a file as JSON, its keys in the order in which they were written; `name` is one of `PUBLISHED`."""
    return json.dumps(PUBLISHED[name](), indent=2)


def _sentences(source: str) -> Iterator[tuple[str, str]]:
    """The sentence under each field of a dataclass, by the field's name."""
    (made,) = ast.parse(source).body
    body = made.body if isinstance(made, ast.ClassDef) else []
    for field, below in itertools.pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(below, ast.Expr):
            yield field.target.id, str(ast.literal_eval(below.value))
