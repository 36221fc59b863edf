"""Read `taxiway.yaml`, and say everything that is wrong with it at once, with line and column.

The file is composed into nodes first, so that every value knows where it stands; values are those of JSON (no dates,
no octal numbers). What the schema refuses is told in words: what was expected, what was there, what was probably meant.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import jsonschema
import yaml

from taxiway.app.config.model import Config
from taxiway.core.errors import Refused

NAME: Final = "taxiway.yaml"
_LARGEST: Final = 1 << 20
_SCHEMA: Final = Path(__file__).with_name("taxiway.schema.json")
_TAGS: Final = {
    "tag:yaml.org,2002:str",
    "tag:yaml.org,2002:int",
    "tag:yaml.org,2002:float",
    "tag:yaml.org,2002:bool",
    "tag:yaml.org,2002:null",
}
_WORDS: Final = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "object": "keys with values",
    "array": "a list",
    "null": "nothing",
}

Where = tuple[Any, ...]
Places = dict[Where, tuple[int, int]]


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
    text = _text(path)
    places: Places = {(): (1, 1)}
    mistakes: list[str] = []
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        value = {} if node is None else _value(node, (), places, mistakes, path, 0)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else str(path)
        raise _refused([f"{where}: this is no YAML: {error.problem or error.context}"]) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise _refused([f"{path}: this is no YAML: {str(error).splitlines()[0][:200]}"]) from None
    if value is None:
        value = {}
    if not isinstance(value, dict):
        raise _refused([f"{path}:1:1: expected keys with values, for instance model: risk"])
    # What YAML itself got wrong there is told already.
    told = {mistake.split(": ", 1)[0] for mistake in mistakes}
    found = [(f"{path}:{line}:{column}", said) for line, column, said in _wrong(value, places)]
    mistakes += [f"{at}: {said}" for at, said in found if at not in told]
    if mistakes:
        raise _refused(mistakes)
    return Config.of(value)


def _refused(mistakes: Sequence[str]) -> Refused:
    return Refused(*mistakes, code="bad-config")


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise _refused([f"{path} cannot be read: {error.strerror}"]) from None
    if len(data) > _LARGEST:
        raise _refused([f"{path} is larger than 1 MB; this cannot be a configuration"])
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _refused([f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8"]) from None


def _value(node: yaml.Node, where: Where, places: Places, mistakes: list[str], path: Path, depth: int) -> Any:
    """The plain value of a node; notes where it stands, and what YAML has made of it that nobody meant."""
    at = (node.start_mark.line + 1, node.start_mark.column + 1)
    places.setdefault(where, at)
    if depth > 20 or len(places) > 10_000:
        raise ValueError("too deep or too large for a configuration (an alias that holds itself?)")
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, where, places, mistakes, path, depth)
    if isinstance(node, yaml.SequenceNode):
        return [_value(n, (*where, i), places, mistakes, path, depth + 1) for i, n in enumerate(node.value)]
    if node.tag not in _TAGS:
        if node.tag == "tag:yaml.org,2002:timestamp":
            return str(node.value)
        mistakes.append(f"{path}:{at[0]}:{at[1]}: {node.tag.rpartition(':')[2]!r} values are not accepted")
        return None
    return _scalar(node, at, mistakes, path)


def _scalar(node: yaml.Node, at: tuple[int, int], mistakes: list[str], path: Path) -> Any:
    text = str(node.value)
    if node.tag.endswith(":int") and not text.lstrip("+-").isdecimal():
        mistakes.append(f"{path}:{at[0]}:{at[1]}: write {text!r} as an ordinary whole number, or quote it")
        return None
    if node.tag.endswith(":int") and len(text.lstrip("+-")) > 1 and text.lstrip("+-").startswith("0"):
        mistakes.append(f"{path}:{at[0]}:{at[1]}: {text!r} would be read as octal; leave out the zeros, or quote it")
        return None
    if node.tag.endswith(":bool") and text.lower() not in ("true", "false"):
        mistakes.append(f"{path}:{at[0]}:{at[1]}: YAML takes {text!r} for true or false; quote it, or write that")
        return None
    return yaml.SafeLoader("").construct_object(node)


def _mapping(
    node: yaml.MappingNode, where: Where, places: Places, mistakes: list[str], path: Path, depth: int
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, inner in node.value:
        name = str(key.value)
        line, column = key.start_mark.line + 1, key.start_mark.column + 1
        if key.tag == "tag:yaml.org,2002:merge" or not isinstance(key, yaml.ScalarNode):
            mistakes.append(f"{path}:{line}:{column}: merge keys and keys that are no text are not accepted")
            continue
        if name in found:
            mistakes.append(f"{path}:{line}:{column}: key {name!r} stands here twice")
        places[(*where, name)] = (line, column)
        found[name] = _value(inner, (*where, name), places, mistakes, path, depth + 1)
        places[(*where, name, "value")] = (inner.start_mark.line + 1, inner.start_mark.column + 1)
    return found


def _wrong(value: Mapping[str, Any], places: Places) -> Iterator[tuple[int, int, str]]:
    """(line, column, sentence) of every mistake, in the order of the file."""
    errors = jsonschema.Draft202012Validator(schema()).iter_errors(value)
    found = [one for error in errors for one in _sentences(error, places)]
    yield from sorted(set(found))


def _sentences(error: Any, places: Places) -> Iterator[tuple[int, int, str]]:
    where = tuple(error.absolute_path)
    name = ".".join(map(str, where))
    if error.validator == "additionalProperties":
        known = sorted(error.schema.get("properties", {}))
        for key in sorted(set(error.instance) - set(known)):
            near = difflib.get_close_matches(key, known, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"
            line, column = places.get((*where, key), (1, 1))
            yield line, column, f"{f'{name}: ' if name else ''}unknown key {key!r}; {hint}"
        return
    line, column = places.get((*where, "value"), places.get(where, (1, 1)))
    yield line, column, f"{name}: expected {_expected(error.schema)}, got {_shown(error.instance)}"


def _expected(part: Mapping[str, Any]) -> str:
    kinds = part.get("type", "anything")
    words = " or ".join(_WORDS.get(k, k) for k in ([kinds] if isinstance(kinds, str) else kinds))
    if "minimum" in part and "maximum" in part:
        words += f" from {part['minimum']} to {part['maximum']}"
    elif "minimum" in part:
        words += f" of at least {part['minimum']}"
    if "examples" in part:
        words += f" such as {', '.join(map(repr, part['examples']))}"
    elif "minItems" in part:
        words += " with something in it"
    return words


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else text[:57] + "..."
