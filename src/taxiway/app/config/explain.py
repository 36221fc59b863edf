"""What a JSON Schema refuses, in words: what was expected, what was there, what was probably meant.

A generic translator: it knows the keywords of JSON Schema and nothing of any one configuration. What is expected is
read from the schema itself (type, bounds, pattern with its `examples`); a `not` is told by its `description`. Only
the two readings of JSON Schema that surprise people are narrower here: `5.0` is no whole number, and a pattern speaks
of all of a text, a line break at its end included.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import jsonschema

from taxiway.app.config.nodes import Document, Mistake, Where, name, shown

Schema = Mapping[str, Any]

_LONGEST: Final = 60
_EXACT: Final = 10**15
_WORDS: Final = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "object": "keys with values",
    "array": "a list",
}


def mistakes(document: Document, schema: Schema) -> list[Mistake]:
    """Every mistake of the document, those of YAML too, each once and in the order of the file."""
    errors = _VALIDATOR(schema).iter_errors(document.value)
    found = (one for e in errors if tuple(e.absolute_path) not in document.lost for one in _told(e, document, schema))
    return sorted({*document.mistakes, *found})


def _told(error: Any, document: Document, schema: Schema) -> Iterator[Mistake]:
    where: Where = tuple(error.absolute_path)
    before = f"{name(where)}: " if where else ""
    if error.validator == "additionalProperties":
        for key in error.instance.keys() - error.schema.get("properties", {}).keys():
            said = f"{before}unknown key {shown(key)}; {_meant(key, error.schema, schema)}"
            yield Mistake(document.keys[(*where, key)], said)
    else:
        yield Mistake(document.values[where], before + _sentence(error))


def _sentence(error: Any) -> str:
    if error.validator == "required":
        missing = [key for key in error.validator_value if key not in error.instance]
        return f"the key {', '.join(map(repr, missing))} is missing"
    if error.validator == "not":
        return str(error.validator_value["description"])
    return f"expected {_expected(error.schema)}, got {_got(error.instance)}{_hint(error.instance, error.schema)}"


def _expected(part: Schema) -> str:
    """What a part of a schema accepts, in words."""
    if "enum" in part:
        return f"one of {', '.join(map(_got, part['enum']))}"
    kinds = _kinds(part)
    words = " or ".join(_WORDS[kind] for kind in kinds if kind != "null") or "anything"
    return words + _bounds(part) + _like(part) + (", or null" if "null" in kinds else "")


def _kinds(part: Schema) -> list[str]:
    kinds = part.get("type", [])
    return [kinds] if isinstance(kinds, str) else list(kinds)


def _bounds(part: Schema) -> str:
    least, greatest = part.get("minimum"), part.get("maximum")
    if least is not None and greatest is not None:
        return f" from {least} to {greatest}"
    if "exclusiveMinimum" in part:
        return f" above {part['exclusiveMinimum']}"
    return f" of at least {least}" if least is not None else f" of at most {greatest}" if greatest is not None else ""


def _like(part: Schema) -> str:
    if "examples" in part:
        return f" such as {', '.join(map(_got, part['examples']))}"
    return " with something in it" if "minItems" in part or "minLength" in part else ""


def _got(value: Any) -> str:
    if value is None:
        return "nothing"
    text = repr(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _hint(value: Any, part: Schema) -> str:
    """What to write for a number that YAML takes for text (it is in quotes, or is `1e3`), and the other way round."""
    kinds = _kinds(part)
    if isinstance(value, int | float) and "string" in kinds and re.fullmatch(part.get("pattern", ".*"), str(value)):
        return "; put it in quotes"
    if not isinstance(value, str) or not {"integer", "number"} & set(kinds):
        return ""
    number = _finite(value)
    return "" if number is None else f"; write {_written(number)}, without quotes"


def _written(number: float) -> str:
    """A number as YAML reads one: it takes `1e-09`, without a point, for text."""
    text = repr(number)
    return text if "." in text else text.replace("e", ".0e")


def _finite(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    if number.is_integer() and abs(number) < _EXACT:
        return int(number)
    return number if math.isfinite(number) else None


# Unknown keys.


def _meant(key: str, part: Schema, schema: Schema) -> str:
    known = sorted(part.get("properties", {}))
    near = difflib.get_close_matches(key[:_LONGEST].lower(), known, 1)
    if near:
        return f"did you mean {near[0]!r}?"
    sections = [name(where) for where in _sections(schema, ()) if where[-1] == key and len(where) > 1]
    if sections:
        return f"write it under {sections[0].rpartition('.')[0]}, as {sections[0]}"
    return f"known are {', '.join(known)}"


def _sections(part: Schema, where: Where) -> Iterator[Where]:
    """The places of all keys with a fixed place."""
    for key, inner in part.get("properties", {}).items():
        yield (*where, key)
        yield from _sections(inner, (*where, key))


# The two narrower readings.


def _is_whole(_checker: Any, value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _pattern(_validator: Any, pattern: str, value: Any, _part: Any) -> Iterator[Any]:
    if isinstance(value, str) and not re.fullmatch(pattern, value):
        yield jsonschema.ValidationError("pattern")


_DRAFT: Final = jsonschema.Draft202012Validator
_VALIDATOR: Final = jsonschema.validators.extend(
    _DRAFT, {"pattern": _pattern}, type_checker=_DRAFT.TYPE_CHECKER.redefine("integer", _is_whole)
)
