"""YAML text to a value of JSON that knows where each part of it stands.

YAML means more than people who write configurations think it does: `no` is false, `010` is eight, `1:30` is ninety,
an alias can hold itself, and a tag can name any type. Here only what JSON has gets through (mappings, lists, text,
numbers, true, false, null); what YAML would have made something else of is a mistake with a place and a way to write
it. Names of keys and dates are text as they stand. Whether a value is a right one is not asked here: `explain.py` does
that, by the schema.

Two steps: `_compose` makes nodes and ends at the first thing that is no YAML; `_Walk` makes the value and goes on after
a mistake, so that all are found. Both count what they meet, since a few lines with aliases can stand for any size.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Final

import yaml

Where = tuple[str | int, ...]
"""The keys and indexes that lead to a value."""
At = tuple[int, int]
"""Line and column, both from 1."""

_DEEPEST: Final = 20
_MOST: Final = 50_000
_LONGEST: Final = 100
_PREFIX: Final = "tag:yaml.org,2002:"
_WHOLE: Final = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_NUMBER: Final = re.compile(r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
_TRUE: Final = frozenset({"y", "yes", "on", "true"})


@dataclass(frozen=True, slots=True, order=True)
class Mistake:
    """What is wrong at one place of the text; in order, those of a file are in its own order."""

    at: At
    said: str


@dataclass(frozen=True, slots=True)
class Document:
    """A value, where its keys and values stand, and what YAML itself got wrong.

    `lost` are the places whose value could not be told; null stands there instead.
    """

    value: Any
    keys: Mapping[Where, At]
    values: Mapping[Where, At]
    mistakes: Sequence[Mistake]
    lost: AbstractSet[Where]


class NotYaml(Exception):
    """The text has no YAML value at all; `mistake` says where it ends to be YAML."""

    def __init__(self, at: At, said: str) -> None:
        super().__init__(said)
        self.mistake = Mistake(at, said)


def parse(text: str) -> Document:
    """The document in `text`, which is an empty mapping for an empty text; raises `NotYaml`."""
    node = _compose(text)
    walk = _Walk()
    value = {} if node is None else walk.value(node, ())
    return Document({} if value is None else value, walk.keys, walk.values, walk.mistakes, walk.lost)


def name(where: Where) -> str:
    """A place as people write it: `contract.inputs.X.allowed[2]`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in where).lstrip(".")


def shown(text: str) -> str:
    """`text` in quotes, cut when it is long."""
    return repr(text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "...")


class _Loader(yaml.SafeLoader):
    """PyYAML's composer with an end to depth and number, which it lacks."""

    depth = 0
    count = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self.depth += 1
        self.count += 1
        if self.depth > _DEEPEST or self.count > _MOST:
            here = self.peek_event()  # type: ignore[no-untyped-call]
            raise NotYaml(_at(here.start_mark), _too("deep" if self.depth > _DEEPEST else "large"))
        node: yaml.Node | None = super().compose_node(parent, index)
        self.depth -= 1
        return node


def _compose(text: str) -> yaml.Node | None:
    loader = None
    try:
        loader = _Loader(text)
        return loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise NotYaml(_at(mark), f"this is no YAML: {_problem(error)}") from None
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        at = (before.count("\n") + 1, len(before) - before.rfind("\n"))
        raise NotYaml(at, f"this is no YAML: the character U+{_point(error):04X} is not allowed; remove it") from None
    except (ValueError, OverflowError):
        # An escape beyond Unicode, a version of YAML with thousands of digits.
        at = _at(loader.get_mark() if loader else None)
        raise NotYaml(at, "this is no YAML: the number of a character or version is too large") from None


def _problem(error: yaml.MarkedYAMLError) -> str:
    problem = str(error.problem or error.context)
    if "'\\t'" in problem:
        return f"{problem}; indent with spaces, not with tabs"
    if "another document" in problem:
        return f"{problem}; a configuration is one document, without a second '---'"
    return problem


def _point(error: Any) -> int:
    return error.character if isinstance(error.character, int) else ord(error.character)


def _at(mark: Any) -> At:
    return (mark.line + 1, mark.column + 1) if mark else (1, 1)


def _too(much: str) -> str:
    limit = f"{_DEEPEST} levels" if much == "deep" else f"{_MOST} values"
    return f"too {much} for a configuration, which has at most {limit} (does an alias hold itself, or many others?)"


class _Walk:
    """One walk over the nodes, each alias as often as it is used."""

    def __init__(self) -> None:
        self.keys: dict[Where, At] = {}
        self.values: dict[Where, At] = {(): (1, 1)}
        self.mistakes: list[Mistake] = []
        self.lost: set[Where] = set()
        self.count = 0

    def value(self, node: yaml.Node, where: Where) -> Any:
        at = _at(node.start_mark)
        self.values[where] = at
        self.count += 1
        if len(where) > _DEEPEST or self.count > _MOST:
            raise NotYaml(at, _too("deep" if len(where) > _DEEPEST else "large"))
        kind = node.tag.removeprefix(_PREFIX)
        if isinstance(node, yaml.MappingNode) and kind == "map":
            return self._mapping(node, where)
        if isinstance(node, yaml.SequenceNode) and kind == "seq":
            return [self.value(inner, (*where, i)) for i, inner in enumerate(node.value)]
        if isinstance(node, yaml.ScalarNode) and kind in _SCALARS:
            return self._scalar(str(node.value), kind, where, at)
        return self._lose(where, at, _odd(node, kind))

    def _mapping(self, node: yaml.MappingNode, where: Where) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, inner in node.value:
            at = _at(key.start_mark)
            if not isinstance(key, yaml.ScalarNode) or key.tag == f"{_PREFIX}merge":
                self._say(where, at, "merge keys and keys that are no text are not accepted; write each key out")
                continue
            try:
                word = _text(key.value)
            except ValueError as error:
                self._say(where, at, str(error))
                continue
            here = (*where, word)
            if word in found:
                first = self.keys[here][0]
                self._say(where, at, f"key {shown(word)} stands here twice, first on line {first}; leave one out")
            self.keys.setdefault(here, at)
            found[word] = self.value(inner, here)
        return found

    def _scalar(self, text: str, kind: str, where: Where, at: At) -> Any:
        try:
            return _SCALARS[kind](text)
        except ValueError as error:
            return self._lose(where, at, str(error))

    def _lose(self, where: Where, at: At, said: str) -> None:
        self.lost.add(where)
        self._say(where, at, said)

    def _say(self, where: Where, at: At, said: str) -> None:
        self.mistakes.append(Mistake(at, f"{name(where)}: {said}" if where else said))


def _odd(node: yaml.Node, kind: str) -> str:
    if isinstance(node, yaml.ScalarNode) and node.value == "=":
        return "YAML gives '=' a meaning of its own; quote it"
    return f"the tag {shown(kind)} is not accepted; leave it out, or quote the text"


# Scalars: each takes the text as it stands in the file, and raises ValueError with what to write instead.


def _text(text: str) -> str:
    try:
        # Two escapes that JSON needs for one character beyond 16 bits are that character.
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise ValueError(f"{shown(text)} holds half a character; write the character itself") from None


def _whole(text: str) -> int:
    if len(text) > _LONGEST:
        raise ValueError(f"a number of {len(text)} digits is not accepted; quote it if it is text")
    if _WHOLE.fullmatch(text):
        return int(text)
    if text.lstrip("+-").isdecimal():
        raise ValueError(f"YAML reads {text!r} as octal; leave out the leading zeros, or quote it if it is text")
    raise ValueError(f"write {shown(text)} as an ordinary whole number, or quote it if it is text")


def _number(text: str) -> float:
    if not _NUMBER.fullmatch(text):
        if text.lower().lstrip("+-") in (".inf", ".nan"):
            raise ValueError(f"{text} is no value for a configuration; write a finite number, or leave the key out")
        raise ValueError(f"write {shown(text)} as an ordinary number, or quote it if it is text")
    if not math.isfinite(float(text)):
        raise ValueError(f"{shown(text)} is larger than any number can be; leave the key out")
    return float(text)


def _truth(text: str) -> bool:
    word = "true" if text.lower() in _TRUE else "false"
    if text.lower() not in ("true", "false"):
        raise ValueError(f"YAML reads {shown(text)} as {word}; write {word}, or quote it if it is text")
    return text.lower() == "true"


def _nothing(_text: str) -> None:
    return None


_SCALARS: Final[Mapping[str, Callable[[str], Any]]] = {
    "str": _text,
    "timestamp": _text,
    "int": _whole,
    "float": _number,
    "bool": _truth,
    "null": _nothing,
}
