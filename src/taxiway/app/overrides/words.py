"""What can be said: keys, the kind of value that each takes, and the tensors and columns that there are."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeGuard

from taxiway.app.overrides.side import Side, Words
from taxiway.core.contract import Field

Kind = tuple[str, Callable[[Any], bool]]


def is_number(value: Any) -> TypeGuard[float]:
    """Whether `value` is a number that a float can hold, and no truth value."""
    return type(value) in (int, float) and abs(value) <= sys.float_info.max


def _is_count(value: Any) -> bool:
    return type(value) is int and value > 0


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) > 0


_FLAG: Final[Kind] = ("true or false", lambda v: isinstance(v, bool))
_NUMBER: Final[Kind] = ("a number, or null for no bound", lambda v: v is None or is_number(v))
_COUNT: Final[Kind] = ("a whole number above 0", _is_count)
_LIST: Final[Kind] = ("a list of at least one value, or null for no list", lambda v: v is None or _is_list(v))
_NAME: Final[Kind] = ("the name of an input, or null", lambda v: v is None or isinstance(v, str))
_MAPPING: Final[Kind] = ("a mapping", lambda v: isinstance(v, Mapping))

COLUMN_KEYS: Final[Mapping[str, Kind]] = {"min": _NUMBER, "max": _NUMBER, "nullable": _FLAG, "allowed": _LIST}
TENSOR_KEYS: Final[Mapping[str, Kind]] = {
    "finite": _FLAG,
    "infinite": _FLAG,
    **COLUMN_KEYS,
    "max_length": _COUNT,
    "max_bytes": _COUNT,
    "same_length_as": _NAME,
    "columns": _MAPPING,
}


def said(sides: Sequence[Side], overrides: Any, wrong: list[str]) -> dict[str, dict[str, Words]]:
    """What is said of each tensor by side and name, without the words that are mistakes, which are added to `wrong`."""
    given = _checked("contract", overrides, {side.kind: _MAPPING for side in sides}, wrong)
    return {side.kind: _said_of_tensors(side, given.get(side.kind, {}), wrong) for side in sides}


def rules(words: Words, column: int) -> Words:
    """What holds for `column`: what is said of it before what is said of the tensor."""
    return {k: v for k, v in words.items() if k in COLUMN_KEYS} | dict(words["columns"].get(column, {}))


def suggestion(name: str, known: Iterable[str]) -> str:
    """What was probably meant by `name`, or what there is."""
    names = list(known)
    near = difflib.get_close_matches(name, names, 1) or [n for n in names if n.lower() == name.lower()]
    if near:
        return f"did you mean {near[0]!r}?"
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return f"known are {', '.join(names[:10])}{more}"


def _said_of_tensors(side: Side, given: Mapping[Any, Any], wrong: list[str]) -> dict[str, Words]:
    known = {str(name): words for name, words in given.items() if str(name) in side.fields}
    for name in given:
        if str(name) not in side.fields:
            no_such = f"no such {side.kind.removesuffix('s')}; {suggestion(str(name), side.fields)}"
            wrong.append(f"{side.place(name)}: {no_such}")
    found = {n: _checked(side.place(n), words, TENSOR_KEYS, wrong) for n, words in known.items()}
    return {n: {**w, "columns": _said_of_columns(side.place(n), side.fields[n], w, wrong)} for n, w in found.items()}


def _said_of_columns(where: str, field: Field, words: Words, wrong: list[str]) -> dict[int, Words]:
    given = words.get("columns", {})
    if field.width is None:
        if given:
            wrong.append(f"{where}.columns: the last axis has any length; say it of the whole tensor, without columns")
        return {}
    numbers = dict(zip(field.columns or map(str, range(field.width)), range(field.width), strict=False))
    found: dict[int, Words] = {}
    for name, words_of_column in given.items():
        if str(name) in numbers:
            found[numbers[str(name)]] = _checked(f"{where}.columns.{name}", words_of_column, COLUMN_KEYS, wrong)
        else:
            wrong.append(f"{where}.columns.{name}: no such column; {suggestion(str(name), numbers)}")
    return found


def _checked(where: str, given: Any, keys: Mapping[str, Kind], wrong: list[str]) -> dict[str, Any]:
    """The entries of `given` that have a known key and a value of its kind."""
    if not isinstance(given, Mapping):
        wrong.append(f"{where}: expected a mapping, not {given!r}; its keys are {', '.join(keys)}")
        return {}
    found = {}
    for key, value in given.items():
        if key not in keys:
            wrong.append(f"{where}.{key}: no such key; {suggestion(str(key), keys)}")
        elif not keys[key][1](value):
            wrong.append(f"{where}.{key}: expected {keys[key][0]}, not {value!r}")
        else:
            found[key] = value
    return found
