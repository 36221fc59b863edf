"""The contract parameter of a model, read into rules.

Written into config.pbtxt as
`parameters { key: "taxiway_contract" value { string_value: '{"finite": ["X"], "max_length": {"ids": 512}}' } }`.
Every key may be absent, and is about inputs by name:

    finite       list: floats without NaN and infinities
    no_infinity  list: floats without infinities
    nan          {input: [column, ...]}: floats with NaN in these columns only
    range        {input: {column: [least, greatest]}}: inclusive, null where there is no bound
    allowed      {input: {column: [value, ...]}}: all that is accepted
    max_bytes    {input: limit}: of every text, in UTF-8
    max_length   {input: limit}: of the dims that the configuration leaves open (-1)
    same_length  {input: other}: the open dim of both must be equally long
    columns      {input: [name, ...]}: to name what is wrong

Columns count from 0 along the last axis; "*" is all of them. Whatever else is written fails the load: a rule that
nobody enforces is worse than none.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

import numpy as np

from . import rules, words

PARAMETER = "taxiway_contract"
KEYS = ("finite", "no_infinity", "nan", "range", "allowed", "max_bytes", "max_length", "same_length", "columns")
_EVERY = "*"
_FLOATS = ("TYPE_FP16", "TYPE_FP32", "TYPE_FP64")
_NUMPY = {
    "TYPE_FP16": "float16",
    "TYPE_FP32": "float32",
    "TYPE_FP64": "float64",
    "TYPE_INT8": "int8",
    "TYPE_INT16": "int16",
    "TYPE_INT32": "int32",
    "TYPE_INT64": "int64",
    "TYPE_UINT8": "uint8",
    "TYPE_UINT16": "uint16",
    "TYPE_UINT32": "uint32",
    "TYPE_UINT64": "uint64",
    "TYPE_BOOL": "bool",
}


@dataclass(frozen=True)
class Input:
    """What the configuration says of one input; `dims` without the batch axis, which `batched` tells."""

    name: str
    kind: str
    dims: tuple[int, ...]
    batched: bool

    @property
    def open_dims(self) -> tuple[int, ...]:
        """Axes of any length, batch axis counted."""
        return tuple(k + self.batched for k, d in enumerate(self.dims) if d < 0)

    @property
    def width(self) -> int | None:
        """Elements of the last axis; None when any number is accepted."""
        last = self.dims[-1] if self.dims else 1
        return last if last > 0 else None

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(_NUMPY[self.kind])


Inputs = Mapping[str, Input]
Bounds: TypeAlias = "tuple[float | None, float | None]"


def read(config: Mapping[str, Any]) -> rules.Rules:
    """The rules in a model configuration (as the server hands it over, in JSON); raises ValueError."""
    value = _value(config.get("parameters", {}).get(PARAMETER, {}).get("string_value", "{}"))
    batched = int(config.get("max_batch_size", 0)) > 0
    inputs = {
        i["name"]: Input(i["name"], i["data_type"], tuple(int(d) for d in i["dims"]), batched) for i in config["input"]
    }
    found = {key: value.get(key, {}) for key in KEYS}
    columns = _columns(found["columns"], inputs)
    return rules.Rules(
        values=(
            *map(rules.Finite, _floats("finite", value.get("finite", []), inputs)),
            *_nan(found["nan"], inputs, columns),
            *map(rules.NoInfinity, _floats("no_infinity", value.get("no_infinity", []), inputs)),
            *_ranges(found["range"], inputs),
            *_max_bytes(found["max_bytes"], inputs),
            *_allowed(found["allowed"], inputs),
        ),
        max_length=_limits("max_length", found["max_length"], inputs),
        same_length=_same_length(found["same_length"], inputs),
        columns=columns,
        open_dims={i.name: i.open_dims for i in inputs.values()},
    )


def _wrong(reason: str) -> NoReturn:
    raise ValueError(f"parameter {PARAMETER}{reason}")


def _value(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        _wrong(f" is not JSON: {error}")
    if not isinstance(value, dict):
        _wrong(f" must be a JSON object, not {text[:80]!r}")
    unknown = sorted(set(value) - set(KEYS))
    if unknown:
        _wrong(f": unknown key {unknown[0]!r}; known are {', '.join(KEYS)}")
    return value


def _known(key: str, names: Collection[Any], inputs: Inputs) -> None:
    for name in names:
        if not isinstance(name, str) or name not in inputs:
            _wrong(f": {key} names {name!r}; the inputs are {', '.join(inputs)}")


def _mapping(key: str, value: Any, inputs: Inputs, what: str, fits: Callable[[Any], bool]) -> dict[str, Any]:
    if not isinstance(value, dict) or not all(fits(v) for v in value.values()):
        _wrong(f": {key} must map input names to {what}")
    _known(key, value, inputs)
    return value


def _floats(key: str, value: Any, inputs: Inputs) -> tuple[str, ...]:
    if not isinstance(value, list):
        _wrong(f": {key} must be a list of input names")
    _known(key, value, inputs)
    for name in value:
        _of_kind(key, inputs[name], _FLOATS, "floats")
    return tuple(value)


def _of_kind(key: str, given: Input, kinds: Collection[str], what: str) -> None:
    if given.kind not in kinds:
        _wrong(f": {key} names {given.name!r}, which is {given.kind}, not {what}")


def _limits(key: str, value: Any, inputs: Inputs) -> dict[str, int]:
    return _mapping(key, value, inputs, "whole numbers above 0", lambda v: type(v) is int and v > 0)


def _columns(value: Any, inputs: Inputs) -> dict[str, list[str]]:
    found = _mapping("columns", value, inputs, "lists of names", lambda v: isinstance(v, list))
    return {name: [str(c) for c in names] for name, names in found.items()}


def _same_length(value: Any, inputs: Inputs) -> dict[str, str]:
    found = _mapping("same_length", value, inputs, "names of other inputs", lambda v: isinstance(v, str))
    _known("same_length", found.values(), inputs)
    for name in (*found, *found.values()):
        if len(inputs[name].open_dims) != 1:
            _wrong(f": same_length names {name!r}, which has not one open dim but {len(inputs[name].open_dims)}")
    return found


def _max_bytes(value: Any, inputs: Inputs) -> Iterator[rules.Rule]:
    for name, limit in _limits("max_bytes", value, inputs).items():
        _of_kind("max_bytes", inputs[name], ("TYPE_STRING",), "text")
        yield rules.MaxBytes(name, (f"texts of at most {limit} bytes are accepted",), limit)


def _nan(value: Any, inputs: Inputs, columns: Mapping[str, list[str]]) -> Iterator[rules.Rule]:
    found = _mapping("nan", value, inputs, "lists of column numbers", lambda v: isinstance(v, list))
    for name, numbers in found.items():
        _of_kind("nan", inputs[name], _FLOATS, "floats")
        nullable = np.zeros(inputs[name].width or 1, bool)
        for number in numbers:
            nullable[_column("nan", inputs[name], number)] = True
        yield rules.NanOnly(name, (words.nan_only(np.flatnonzero(nullable), columns.get(name, [])),), nullable)


def _column(key: str, given: Input, number: Any) -> int:
    """The column that `number` (whole, or in digits) means."""
    text = str(number) if type(number) is int else number
    if given.width is None or not isinstance(text, str) or not text.isdecimal() or int(text) >= given.width:
        has = "no fixed number of them; '*' names all" if given.width is None else f"columns 0 to {given.width - 1}"
        _wrong(f": {key} names column {number!r} of {given.name!r}, which has {has}")
    return int(text)


def _by_column(key: str, value: Any, inputs: Inputs) -> Iterator[tuple[Input, dict[int | None, Any]]]:
    """The entries of each input by column number, or None for all columns."""
    found = _mapping(key, value, inputs, "lists by column number", _is_by_column)
    for name, entries in found.items():
        given = inputs[name]
        # A single column may have lost its axis on the way to the graph.
        every = _EVERY in entries or given.width == 1
        if every and len(entries) > 1:
            _wrong(f": {key} names all columns of {name!r} and single ones as well")
        for column in entries:
            if column != _EVERY:
                _column(key, given, column)
        yield given, {None if every else int(column): entry for column, entry in entries.items()}


def _is_by_column(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(entry, list) and entry for entry in value.values())


def _ranges(value: Any, inputs: Inputs) -> Iterator[rules.Rule]:
    for given, entries in _by_column("range", value, inputs):
        _of_kind("range", given, _NUMPY.keys() - {"TYPE_BOOL"}, "numbers")
        found = {column: _bounds(given, entry) for column, entry in entries.items()}
        columns = [None] if None in found else list(range(given.width or 1))
        every = [found.get(column, (None, None)) for column in columns]
        yield rules.Range(
            given.name,
            [words.range_of(least, greatest) for least, greatest in every],
            least=np.array([_least(given.dtype, least) for least, _ in every], given.dtype),
            greatest=np.array([_greatest(given.dtype, greatest) for _, greatest in every], given.dtype),
        )


def _bounds(given: Input, entry: list[Any]) -> Bounds:
    if len(entry) != 2 or not all(b is None or _is_number(b) for b in entry) or entry == [None, None]:
        _wrong(f": range of {given.name!r} must be [least, greatest] (numbers, one of them may be null), not {entry}")
    least, greatest = entry
    if _least(given.dtype, least) > _greatest(given.dtype, greatest):
        _wrong(f": range of {given.name!r} accepts nothing: no {given.kind} lies in {entry}")
    return least, greatest


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) <= sys.float_info.max


# Bounds are compared in the tensor's own type, so that what a caller writes as 0.1 lies within a bound of 0.1.
def _least(dtype: np.dtype, bound: float | None) -> Any:
    if dtype.kind == "f":
        return _float(dtype, -math.inf if bound is None else bound)
    lowest = int(np.iinfo(dtype).min)
    return lowest if bound is None else max(lowest, math.ceil(bound))


def _greatest(dtype: np.dtype, bound: float | None) -> Any:
    if dtype.kind == "f":
        return _float(dtype, math.inf if bound is None else bound)
    highest = int(np.iinfo(dtype).max)
    return highest if bound is None else min(highest, math.floor(bound))


def _float(dtype: np.dtype, number: float) -> Any:
    with np.errstate(over="ignore"):
        return dtype.type(number)


def _allowed(value: Any, inputs: Inputs) -> Iterator[rules.Rule]:
    for given, entries in _by_column("allowed", value, inputs):
        for column, members in entries.items():
            accepted = (f"accepted are {words.listed(map(words.value, members))}",)
            if given.kind == "TYPE_STRING":
                _all("texts", given, members, lambda m: isinstance(m, str))
                yield rules.Texts(given.name, accepted, column, frozenset(members))
            else:
                yield rules.Numbers(given.name, accepted, column, _numbers(given, members))


def _numbers(given: Input, members: list[Any]) -> np.ndarray:
    dtype = given.dtype
    if dtype.kind == "f":
        _all("finite numbers", given, members, _is_number)
        return np.array([_float(dtype, m) for m in members], dtype)
    if dtype.kind == "b":
        _all("true and false", given, members, lambda m: isinstance(m, bool))
        return np.array(members, dtype)
    limits = np.iinfo(dtype)
    _all(f"{given.kind} numbers", given, members, lambda m: type(m) is int and limits.min <= m <= limits.max)
    return np.array(members, dtype)


def _all(what: str, given: Input, members: list[Any], fits: Callable[[Any], bool]) -> None:
    for member in members:
        if not fits(member):
            _wrong(f": allowed of {given.name!r} must be {what}, not {member!r}")
