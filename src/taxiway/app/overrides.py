"""What a person says of the contract, laid over what was inferred.

The `contract:` part of taxiway.yaml narrows or widens the inferred contract:

    contract:
      inputs:
        X:
          finite: true            # the whole tensor; a column that says `nullable` is an exception
          columns:
            age: {min: 0, max: 120}
            income: {nullable: true}
        item_ids: {max_length: 100, same_length_as: null}
        city: {allowed: [Bern, Oslo], max_bytes: 64}

What is said of a tensor holds for all its columns, what is said of a column goes before it, and null takes a rule
away. A person may say more than the rows show, but not against them: whatever would refuse a proved value is refused
here, since the golden samples would be refused at the first check. Nor can values be accepted that the model itself
does not know. All mistakes are told at once.

Three steps: `_said` checks the words, `_merged` makes the new field, `_against` asks the proved rows.
"""

from __future__ import annotations

import difflib
import math
import struct
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeGuard

from taxiway.core.contract import Column, Contract, Field
from taxiway.core.errors import Refused
from taxiway.core.sample import Tensor, Value
from taxiway.core.tensor import DTYPES, FLOATS

Rows = Sequence[Mapping[str, Tensor]]
Words = Mapping[str, Any]

_PACK: Final = {"FP16": "e", "FP32": "f", "FP64": "d"}


def apply(contract: Contract, overrides: Mapping[str, Any] | None, proved: Rows = ()) -> Contract:
    """`contract` with `overrides` (the `contract:` part of taxiway.yaml) laid over it.

    `proved` are inputs that must stay accepted, by tensor name; without them the ranges and missing values that the
    contract itself has observed are asked. Raises `Refused` with every mistake.
    """
    fields = {f.name: f for f in contract.inputs}
    wrong: list[str] = []
    said = _said(fields, overrides or {}, wrong)
    for name, words in said.items():
        before = fields[name]
        mistakes = list(_unfit(fields, before, words))
        wrong += mistakes
        if not mistakes:
            fields[name] = _merged(before, words)
            wrong += _against(before, fields[name], [rows[name] for rows in proved if name in rows])
            wrong += _apart(fields, fields[name], proved)
    if wrong:
        raise Refused(*dict.fromkeys(wrong), code="contract")
    return replace(contract, inputs=tuple(fields.values()))


# Words: keys, and the kind of value that each takes.


def _is_number(value: Any) -> TypeGuard[float]:
    return type(value) in (int, float) and abs(value) <= sys.float_info.max


def _is_count(value: Any) -> bool:
    return type(value) is int and value > 0


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) > 0


Kind = tuple[str, Callable[[Any], bool]]
_FLAG: Final[Kind] = ("true or false", lambda v: isinstance(v, bool))
_NUMBER: Final[Kind] = ("a number, or null for no bound", lambda v: v is None or _is_number(v))
_COUNT: Final[Kind] = ("a whole number above 0", _is_count)
_LIST: Final[Kind] = ("a list of at least one value, or null for no list", lambda v: v is None or _is_list(v))
_NAME: Final[Kind] = ("the name of an input, or null", lambda v: v is None or isinstance(v, str))
_MAPPING: Final[Kind] = ("a mapping", lambda v: isinstance(v, Mapping))

_COLUMN_KEYS: Final[Mapping[str, Kind]] = {"min": _NUMBER, "max": _NUMBER, "nullable": _FLAG, "allowed": _LIST}
_TENSOR_KEYS: Final[Mapping[str, Kind]] = {
    "finite": _FLAG,
    "infinite": _FLAG,
    **_COLUMN_KEYS,
    "max_length": _COUNT,
    "max_bytes": _COUNT,
    "same_length_as": _NAME,
    "columns": _MAPPING,
}


def _said(fields: Mapping[str, Field], overrides: Any, wrong: list[str]) -> dict[str, Words]:
    """What is said of each input, without the words that are mistakes, which are added to `wrong`."""
    inputs = _checked("contract", overrides, {"inputs": _MAPPING}, wrong).get("inputs", {})
    known = {str(name): words for name, words in inputs.items() if str(name) in fields}
    for name in inputs:
        if str(name) not in fields:
            wrong.append(f"contract.inputs.{name}: no such input; {_suggestion(str(name), fields)}")
    said = {n: _checked(f"contract.inputs.{n}", words, _TENSOR_KEYS, wrong) for n, words in known.items()}
    return {n: {**words, "columns": _said_of_columns(fields[n], words, wrong)} for n, words in said.items()}


def _said_of_columns(field: Field, words: Words, wrong: list[str]) -> dict[int, Words]:
    where, given = f"contract.inputs.{field.name}", words.get("columns", {})
    if field.width is None:
        if given:
            wrong.append(f"{where}.columns: the last axis has any length; say it of the whole tensor, without columns")
        return {}
    numbers = dict(zip(field.columns or map(str, range(field.width)), range(field.width), strict=False))
    found: dict[int, Words] = {}
    for name, rules in given.items():
        if str(name) in numbers:
            found[numbers[str(name)]] = _checked(f"{where}.columns.{name}", rules, _COLUMN_KEYS, wrong)
        else:
            wrong.append(f"{where}.columns.{name}: no such column; {_suggestion(str(name), numbers)}")
    return found


def _checked(where: str, given: Any, keys: Mapping[str, Kind], wrong: list[str]) -> dict[str, Any]:
    """The entries of `given` that have a known key and a value of its kind."""
    if not isinstance(given, Mapping):
        wrong.append(f"{where}: expected a mapping, not {given!r}; its keys are {', '.join(keys)}")
        return {}
    found = {}
    for key, value in given.items():
        if key not in keys:
            wrong.append(f"{where}.{key}: no such key; {_suggestion(str(key), keys)}")
        elif not keys[key][1](value):
            wrong.append(f"{where}.{key}: expected {keys[key][0]}, not {value!r}")
        else:
            found[key] = value
    return found


def _suggestion(name: str, known: Iterable[str]) -> str:
    names = list(known)
    near = difflib.get_close_matches(name, names, 1) or [n for n in names if n.lower() == name.lower()]
    if near:
        return f"did you mean {near[0]!r}?"
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return f"known are {', '.join(names[:10])}{more}"


# Fit: what can be said of a tensor of this type and shape.


def _unfit(fields: Mapping[str, Field], field: Field, words: Words) -> Iterator[str]:
    where = f"contract.inputs.{field.name}"
    for key, reason in _misplaced(field, words):
        yield f"{where}.{key}: {reason}; leave it out"
    if words.get("finite") and words.get("infinite"):
        yield f"{where}: finite and infinite cannot both be true; leave one out"
    if words.get("same_length_as") is not None:
        yield from _unfit_partner(fields, field, words["same_length_as"])
    columns: Mapping[int, Words] = words["columns"]
    for place, rules in [(where, words), *((_place(field, i), rules) for i, rules in columns.items())]:
        yield from (f"{place}.{key}: {reason}; leave it out" for key, reason in _misplaced_rules(field, rules))
        yield from (f"{place}.allowed: {reason}" for reason in _unfit_members(field, rules.get("allowed") or ()))
    table = enumerate(_columns(field, words))
    yield from (
        f"{_place(field, i, words)}: {reason}" for i, c in table for reason in _unfit_column(field, c, words, i)
    )


def _place(field: Field, column: int, words: Words | None = None) -> str:
    """Where something is said of a column: under its own name, unless `words` only speak of the tensor."""
    name = field.columns[column] if column < len(field.columns) else str(column)
    own = words is None or column in words["columns"]
    return f"contract.inputs.{field.name}" + (f".columns.{name}" if own else "")


def _misplaced(field: Field, words: Words) -> Iterator[tuple[str, str]]:
    dtype = field.spec.dtype
    for key in ("finite", "infinite"):
        if key in words and dtype not in FLOATS:
            yield key, f"only floats can be infinite, this is {dtype}"
    if "max_bytes" in words and dtype != "BYTES":
        yield "max_bytes", f"only texts (BYTES) have a length in bytes, this is {dtype}"
    if "max_length" in words and -1 not in field.spec.dims:
        yield "max_length", f"no dim of {list(field.spec.dims)} varies in length"


def _misplaced_rules(field: Field, rules: Words) -> Iterator[tuple[str, str]]:
    dtype = field.spec.dtype
    if "nullable" in rules and dtype not in FLOATS:
        yield "nullable", f"only floats can be missing (NaN), this is {dtype}"
    for key in ("min", "max"):
        if key in rules and dtype in ("BYTES", "BOOL"):
            yield key, f"only numbers have bounds, this is {dtype}"


def _unfit_partner(fields: Mapping[str, Field], field: Field, other: str) -> Iterator[str]:
    where = f"contract.inputs.{field.name}.same_length_as"
    if other not in fields:
        yield f"{where}: no input {other!r}; {_suggestion(other, fields)}"
    elif other == field.name:
        yield f"{where}: a tensor is always as long as itself; name another one, or leave it out"
    else:
        for one in (field, fields[other]):
            if one.spec.dims.count(-1) != 1:
                yield f"{where}: {one.name!r} has dims {list(one.spec.dims)}, of which not exactly one varies in length"


def _unfit_members(field: Field, members: Sequence[Any]) -> Iterator[str]:
    what = _members_of(field.spec.dtype)
    for member in members:
        if not _is_member(field.spec.dtype, member):
            yield f"{field.spec.dtype} takes {what}, not {member!r}"


def _members_of(dtype: str) -> str:
    if dtype in FLOATS:
        return "whole numbers that it holds exactly (give min and max instead)"
    return {"BYTES": "texts (put them in quotes)", "BOOL": "true and false"}.get(dtype, "whole numbers of its size")


def _is_member(dtype: str, value: Any) -> bool:
    if dtype in ("BYTES", "BOOL"):
        return isinstance(value, str if dtype == "BYTES" else bool)
    if dtype in FLOATS:
        return _is_number(value) and value == int(value) == _rounded(dtype, value)
    least, greatest = _limits(dtype)
    return type(value) is int and least <= value <= greatest


def _limits(dtype: str) -> tuple[int, int]:
    bits = 8 * DTYPES[dtype][1]
    return (0, 2**bits - 1) if dtype.startswith("U") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _unfit_column(field: Field, before: Column, words: Words, column: int) -> Iterator[str]:
    rules = _rules(words, column)
    least, greatest = rules.get("min", before.minimum), rules.get("max", before.maximum)
    if least is not None and greatest is not None and least > greatest:
        yield f"min {least} is above max {greatest}; nothing would be accepted"
    elif field.spec.dtype not in (*FLOATS, "BYTES", "BOOL") and not _any_whole(field.spec.dtype, least, greatest):
        yield f"no {field.spec.dtype} lies between min {least} and max {greatest}; nothing would be accepted"
    if "allowed" in rules and before.allowed is not None:
        unknown = [repr(m) for m in rules["allowed"] or () if m not in before.allowed]
        if unknown or not rules["allowed"]:
            found = ", ".join(unknown[:5]) or "other values"
            yield f"the model does not know {found}; allowed can only be a part of what it knows"


def _any_whole(dtype: str, least: float | None, greatest: float | None) -> bool:
    low, high = _limits(dtype)
    return max(low, math.ceil(low if least is None else least)) <= min(
        high, math.floor(high if greatest is None else greatest)
    )


# Merge: the field that is meant.


def _rules(words: Words, column: int) -> Words:
    """What holds for `column`: what is said of it before what is said of the tensor."""
    return {k: v for k, v in words.items() if k in _COLUMN_KEYS} | dict(words["columns"].get(column, {}))


def _columns(field: Field, words: Words) -> tuple[Column, ...]:
    """The columns there were: one for each element when they are spoken of singly, else as few as will do."""
    table = field.table or (Column(nullable=not field.finite),)
    if not words["columns"] or field.width is None or len(table) == field.width:
        return table
    names = field.columns if len(field.columns) == field.width else ("",) * field.width
    return tuple(replace(table[0], name=name) for name in names)


def _merged(field: Field, words: Words) -> Field:
    table = tuple(_column(c, words, _rules(words, i)) for i, c in enumerate(_columns(field, words)))
    infinite = words.get("infinite", field.infinite and not words.get("finite", False))
    finite = field.spec.dtype not in FLOATS or not (infinite or any(c.nullable for c in table))
    return replace(
        field,
        table=() if table in ((Column(),), (Column(nullable=True),)) and (finite or table[0].nullable) else table,
        finite=finite,
        infinite=infinite,
        max_length=words.get("max_length", field.max_length),
        max_bytes=words.get("max_bytes", field.max_bytes),
        same_length_as=words.get("same_length_as", field.same_length_as),
    )


def _column(before: Column, words: Words, rules: Words) -> Column:
    allowed = rules.get("allowed", before.allowed)
    return replace(
        before,
        nullable=rules.get("nullable", not words["finite"] if "finite" in words else before.nullable),
        minimum=rules.get("min", before.minimum),
        maximum=rules.get("max", before.maximum),
        allowed=None if allowed is None else tuple(allowed),
    )


# Evidence: whether the proved rows keep the new rules.


def _against(before: Field, after: Field, proved: Sequence[Tensor]) -> Iterator[str]:
    """Which new rules the proved values break, and how many of them do."""
    where = f"contract.inputs.{after.name}"
    table = after.table or (Column(nullable=not after.finite),)
    known = before.table if len(before.table) == len(table) else (before.table or (Column(),)) * len(table)
    for i, column in enumerate(table):
        seen = _seen(before, i, len(table), proved) if proved else _observed(before, known[i], len(table))
        place = _place(after, i) if len(table) > 1 else where
        yield from _told(place, _column_rules(after, column), seen, counted=bool(proved))
    every = [v for t in proved for v in t.data] if proved else [math.inf] * before.infinite
    yield from _told(where, _tensor_rules(after), every, counted=bool(proved))
    lengths = [n for t in proved for n, d in zip(t.shape[1:], after.spec.dims, strict=False) if d < 0]
    limit = after.max_length or math.inf
    yield from _told(where, [(f"max_length {limit}", lambda n: n > limit)], lengths, counted=True)


Rule = tuple[str, Callable[[Any], bool]]


def _column_rules(field: Field, column: Column) -> Iterator[Rule]:
    """How a rule is written, and whether it refuses a value."""
    dtype = field.spec.dtype
    if column.minimum is not None:
        least = _rounded(dtype, column.minimum)
        yield f"min {column.minimum}", lambda v: v < least
    if column.maximum is not None:
        greatest = _rounded(dtype, column.maximum)
        yield f"max {column.maximum}", lambda v: v > greatest
    if column.allowed is not None:
        members = frozenset(_rounded(dtype, m) if dtype in FLOATS else m for m in column.allowed)
        yield "allowed", lambda v: v == v and v not in members
    if dtype in FLOATS and not column.nullable:
        yield "not nullable: it", lambda v: v != v


def _tensor_rules(field: Field) -> Iterator[Rule]:
    if field.spec.dtype in FLOATS and not field.infinite:
        yield "not infinite: it", lambda v: v in (math.inf, -math.inf)
    if field.max_bytes is not None:
        limit = field.max_bytes
        yield f"max_bytes {limit}", lambda v: len(v.encode("utf-8", "replace")) > limit


def _seen(field: Field, column: int, columns: int, proved: Sequence[Tensor]) -> list[Value]:
    """The proved values of one column, as the tensor's type holds them."""
    values = [v for t in proved for v in (t.data[column::columns] if columns > 1 else t.data)]
    dtype = field.spec.dtype
    return [_rounded(dtype, v) if dtype in FLOATS and not isinstance(v, str) else v for v in values]


def _observed(field: Field, column: Column, columns: int) -> list[Value]:
    """What a contract remembers of the values of one column: the extremes, and whether others than numbers came."""
    extremes = column.observed or (field.observed if columns == 1 else None) or ()
    missing = column.nullable or not (field.finite or field.table or columns > 1)
    return [*extremes, *[math.nan] * missing]


def _apart(fields: Mapping[str, Field], field: Field, proved: Rows) -> Iterator[str]:
    """Whether lists that shall go together were proved apart."""
    other = fields.get(field.same_length_as or "")
    both = [rows for rows in proved if other and other.name in rows and field.name in rows]
    apart = sum(other is not None and _length(field, rows) != _length(other, rows) for rows in both)
    if apart:
        yield (
            f"contract.inputs.{field.name}: same_length_as {field.same_length_as!r} would refuse {apart} of the "
            f"{len(both)} proved requests, whose lengths differ; golden samples would be refused: leave it out"
        )


def _length(field: Field, rows: Mapping[str, Tensor]) -> int:
    """How long the one dim is that may have any length."""
    return rows[field.name].shape[1 + field.spec.dims.index(-1)]


def _told(where: str, rules: Iterable[Rule], seen: Sequence[Value], *, counted: bool) -> Iterator[str]:
    for rule, refuses in rules:
        refused = [v for v in seen if refuses(v)]
        if refused:
            count = f"{len(refused)} of the {len(seen)} proved values" if counted else "proved values"
            yield (
                f"{where}: {rule} would refuse {count}, such as {_shown(refused[0])}{_reach(seen)}; "
                "golden samples would be refused: widen the rule, or keep such rows out of the notebook's data"
            )


def _shown(value: Value) -> str:
    return repr(value[:40] + "…") if isinstance(value, str) and len(value) > 40 else repr(value)


def _reach(seen: Sequence[Value]) -> str:
    numbers = [v for v in seen if _is_number(v)]
    return f" (they reach from {min(numbers):.6g} to {max(numbers):.6g})" if numbers else ""


def _rounded(dtype: str, value: Any) -> Any:
    """A number as a float tensor of this type holds it; any other type's value as it is."""
    if dtype not in _PACK:
        return value
    try:
        return struct.unpack(_PACK[dtype], struct.pack(_PACK[dtype], value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
