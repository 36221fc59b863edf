"""The text of config.pbtxt: every key that Triton does not know, every value of another kind, with its place.

Protobuf's own parser stops at the first mistake. This one walks the text along the message's description and goes on:
what it cannot understand it skips to the end of that value.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from google.protobuf import text_format
from google.protobuf.descriptor import FieldDescriptor
from tritonclient.grpc import model_config_pb2 as pb

from taxiway.gates.mistake import Mistake

_TOKEN: Final = re.compile(
    r"""(?P<skip>\s+|\#[^\n]*)|(?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')"""
    r"""|(?P<word>[A-Za-z_][\w.\-/]*)|(?P<number>[-+]?(?:\d|\.\d)[\w.+-]*)|(?P<mark>[{}\[\]<>:,;\-])|(?P<bad>.)""",
    re.S,
)
_OPEN: Final = {"{": "}", "<": ">", "[": "]"}
_WHOLE: Final = frozenset(
    {
        FieldDescriptor.TYPE_INT32,
        FieldDescriptor.TYPE_INT64,
        FieldDescriptor.TYPE_UINT32,
        FieldDescriptor.TYPE_UINT64,
    }
)
_REAL: Final = frozenset({FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE})

Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    line: int
    column: int


@dataclass(slots=True)
class Read:
    """What was understood: the configuration (None when it is none), mistakes, and where each key stands.

    `places` maps a path such as `input[0].dims` to (line, column).
    """

    config: Any
    mistakes: list[Mistake] = field(default_factory=list)
    places: dict[str, Place] = field(default_factory=dict)

    def at(self, path: str) -> Place:
        """The place of `path`, or of the nearest thing around it that was written."""
        while path and path not in self.places:
            path = path.rpartition(".")[0]
        return self.places.get(path, (1, 1))


def read(text: str, path: str) -> Read:
    """Read a config.pbtxt; never raises."""
    found = Read(None)
    walker = _Walker(list(_tokens(text)), path, found)
    walker.message(pb.ModelConfig.DESCRIPTOR, "", "")
    config = pb.ModelConfig()
    try:
        text_format.Parse(text, config)
        found.config = config
    except (text_format.ParseError, UnicodeError, RecursionError, ValueError) as error:
        if not found.mistakes:
            line = getattr(error, "GetLine", lambda: 1)() or 1
            column = getattr(error, "GetColumn", lambda: 1)() or 1
            said = str(error).split(" : ", 1)[-1][:300]
            found.mistakes.append(Mistake(path, line, column, "error", f"this is no configuration: {said}"))
    return found


def _tokens(text: str) -> Iterator[_Token]:
    line, begin = 1, 0
    for match in _TOKEN.finditer(text):
        kind, said = match.lastgroup or "bad", match.group()
        if kind != "skip":
            yield _Token(kind, said, line, match.start() - begin + 1)
        newlines = said.count("\n")
        if newlines:
            line += newlines
            begin = match.start() + said.rindex("\n") + 1


class _Walker:
    def __init__(self, tokens: list[_Token], path: str, found: Read) -> None:
        self._tokens = tokens
        self._at = 0
        self._path = path
        self._found = found

    def message(self, kind: Any, where: str, end: str) -> None:
        """Fields of a message until `end` (empty: the end of the text)."""
        counts: dict[str, int] = {}
        while (token := self._next()) is not None:
            if token.text == end and end:
                return
            if token.kind != "word":
                if token.text not in ",;":
                    self._wrong(token, f"expected a key, got {token.text[:30]!r}")
                continue
            self._field(kind, token, where, counts)
        if end:
            last = self._tokens[-1]
            self._wrong(last, f"{end!r} is missing at the end")

    def _field(self, kind: Any, token: _Token, where: str, counts: dict[str, int]) -> None:
        known = kind.fields_by_name.get(token.text)
        if known is None:
            near = difflib.get_close_matches(token.text, kind.fields_by_name, 1, 0.6)
            hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(sorted(kind.fields_by_name))[:300]}"
            self._wrong(token, f"unknown key {token.text!r} in {kind.name}; {hint}")
            self._skip_value()
            return
        inner = f"{where}.{token.text}" if where else token.text
        self._note(inner, token, known, counts)
        self._take(":")
        if self._peek() == "[":
            self._next()
            while (following := self._peek()) not in ("]", None):
                if following == ",":
                    self._next()
                    continue
                self._value(known, self._indexed(inner, known, counts))
            self._take("]")
        else:
            self._value(known, self._indexed(inner, known, counts))

    def _note(self, inner: str, token: _Token, known: Any, counts: dict[str, int]) -> None:
        self._found.places.setdefault(inner, (token.line, token.column))
        if not _is_repeated(known) and counts.get(token.text):
            self._wrong(token, f"key {token.text!r} stands here twice")
        if not _is_repeated(known):
            counts[token.text] = 1

    def _indexed(self, inner: str, known: Any, counts: dict[str, int]) -> str:
        if not _is_repeated(known):
            return inner
        number = counts.get(known.name, 0)
        counts[known.name] = number + 1
        path = f"{inner}[{number}]"
        if self._at < len(self._tokens):
            token = self._tokens[self._at]
            self._found.places[path] = (token.line, token.column)
        return path

    def _value(self, known: Any, where: str) -> None:
        token = self._next()
        if token is None:
            if self._tokens:
                self._wrong(self._tokens[-1], f"{known.name} has no value")
            return
        if known.type == FieldDescriptor.TYPE_MESSAGE:
            if token.text in ("{", "<"):
                self.message(known.message_type, where, _OPEN[token.text])
            else:
                self._wrong(token, f"{known.name}: expected {{ … }}, got {token.text[:30]!r}")
            return
        reason = _unfit(known, token)
        if reason:
            self._wrong(token, f"{known.name}: {reason}")
            if token.text in _OPEN:
                self._skip_to(_OPEN[token.text])

    def _skip_value(self) -> None:
        self._take(":")
        token = self._next()
        if token is not None and token.text in _OPEN:
            self._skip_to(_OPEN[token.text])

    def _skip_to(self, end: str) -> None:
        closes = [end]
        while closes and (token := self._next()) is not None:
            if token.text in _OPEN and token.kind == "mark":
                closes.append(_OPEN[token.text])
            elif token.text == closes[-1]:
                closes.pop()

    def _peek(self) -> str | None:
        return self._tokens[self._at].text if self._at < len(self._tokens) else None

    def _next(self) -> _Token | None:
        if self._at >= len(self._tokens):
            return None
        self._at += 1
        return self._tokens[self._at - 1]

    def _take(self, text: str) -> None:
        if self._peek() == text:
            self._at += 1

    def _wrong(self, token: _Token, message: str) -> None:
        self._found.mistakes.append(Mistake(self._path, token.line, token.column, "error", message))


def _is_repeated(known: Any) -> bool:
    return bool(known.is_repeated)


def _unfit(known: Any, token: _Token) -> str | None:
    """What is wrong with a plain value; None when it fits."""
    if known.type == FieldDescriptor.TYPE_ENUM:
        names = list(known.enum_type.values_by_name)
        if token.text in names or token.text.isdecimal():
            return None
        near = difflib.get_close_matches(token.text.upper(), names, 1, 0.5)
        hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(names)}"
        return f"unknown value {token.text[:30]!r}; {hint}"
    if known.type in (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES):
        return None if token.kind == "string" else f"expected text in quotes, got {token.text[:30]!r}"
    if known.type == FieldDescriptor.TYPE_BOOL:
        fits = token.text in ("true", "false", "True", "False", "t", "f", "0", "1")
        return None if fits else f"expected true or false, got {token.text[:30]!r}"
    if known.type in _WHOLE:
        fits = re.fullmatch(r"[-+]?(\d+|0[xX][0-9a-fA-F]+)", token.text) is not None
        return None if fits else f"expected a whole number, got {token.text[:30]!r}"
    fits = known.type not in _REAL or token.kind in ("number", "word")
    return None if fits else f"expected a number, got {token.text[:30]!r}"
