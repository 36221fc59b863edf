"""The text of config.pbtxt: every key that Triton does not know, every value of another kind, with its place.

Protobuf's own parser stops at the first mistake. This one walks the text along the message's description and goes on:
it reads a misspelt key as the one that was meant, leaves out what it cannot understand, and takes a bracket that is
missing for one that was there. So a text with a mistake still gives a configuration, which the other checks look at;
what they must not judge, since it was not understood, is in `lost`. A text without a mistake gives exactly what
protobuf's parser gives.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from typing import Any, Final

from google.protobuf import message_factory, text_format
from google.protobuf.descriptor import FieldDescriptor
from tritonclient.grpc import model_config_pb2 as pb

from taxiway.gates.mistake import Mistake
from taxiway.gates.tokens import Token, tokens, unfit

_CLOSE: Final = {"{": "}", "<": ">", "[": "]"}
_ENDS: Final = frozenset(_CLOSE.values())
# How alike a key must be to be named, and to be read as if it had been written.
_LIKE: Final = 0.6
_SURE: Final = 0.75

Place = tuple[int, int]


@dataclass(slots=True)
class Read:
    """What was understood: the configuration (None when there was no text), mistakes, and where each key stands.

    `places` maps a path such as `input[0].dims` to (line, column); `lost` has the paths whose value was not understood.
    """

    config: Any
    mistakes: list[Mistake] = field(default_factory=list)
    places: dict[str, Place] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)

    def at(self, path: str) -> Place:
        """The place of `path`, or of the nearest thing around it that was written."""
        while path and path not in self.places:
            path = path.rpartition(".")[0]
        return self.places.get(path, (1, 1))

    def is_lost(self, path: str) -> bool:
        """Whether `path`, or a part of it, was written but not understood."""
        return any(p == path or p.startswith((f"{path}.", f"{path}[")) for p in self.lost)


def read(text: str, path: str) -> Read:
    """Read a config.pbtxt; never raises."""
    text = text.removeprefix("\ufeff")
    found = Read(pb.ModelConfig())
    _Walker(list(tokens(text)), path, found).message(found.config, "", "")
    if found.mistakes:
        return found
    try:
        found.config = text_format.Parse(text, pb.ModelConfig())
    except (text_format.ParseError, UnicodeError, RecursionError, ValueError) as error:
        line = getattr(error, "GetLine", lambda: 1)() or 1
        column = getattr(error, "GetColumn", lambda: 1)() or 1
        said = str(error).split(" : ", 1)[-1][:300]
        found.mistakes.append(Mistake(path, line, column, "error", f"this is no configuration: {said}"))
    return found


class _Walker:
    """Fills a message from tokens; `_left` is set while a missing bracket makes it leave what it is in."""

    def __init__(self, tokens: list[Token], path: str, found: Read) -> None:
        self._tokens = tokens
        self._at = 0
        self._path = path
        self._found = found
        self._left = False

    def message(self, into: Any, where: str, end: str) -> None:
        """Fields of `into` until `end` (empty: the end of the text)."""
        counts: dict[str, int] = {}
        while (token := self._next()) is not None:
            if token.text == end:
                return
            if end and self._is_outside(token, into.DESCRIPTOR):
                self._wrong(token, f"{end!r} is missing before {token.text!r}")
                self._at -= 1
                self._left = token.kind == "word"
                return
            if token.kind == "word":
                self._field(into, token, where, counts)
            elif token.text not in (",", ";"):
                self._wrong(token, f"expected a key, got {token.text[:30]!r}")
            if self._left and end:
                return
            self._left = False
        if end:
            self._ended(end)

    def _is_outside(self, token: Token, kind: Any) -> bool:
        """Whether a token shows that the bracket around it was never closed."""
        if token.kind != "word":
            return token.text in _ENDS
        top = pb.ModelConfig.DESCRIPTOR.fields_by_name
        return token.column == 1 and token.text in top and token.text not in kind.fields_by_name

    def _field(self, into: Any, token: Token, where: str, counts: dict[str, int]) -> None:
        known = self._known(into.DESCRIPTOR, token, where)
        if known is None:
            self._skip_value()
            return
        inner = f"{where}.{known.name}" if where else known.name
        self._note(inner, token, known, counts)
        if not self._take(":") and known.type != FieldDescriptor.TYPE_MESSAGE:
            self._wrong(token, f"expected ':' after {token.text!r}")
        if not self._take("["):
            self._value(into, known, self._indexed(inner, known, counts))
            return
        if not known.is_repeated:
            self._wrong(token, f"{known.name} takes one value, not a list")
            self._found.lost.add(inner)
            self._skip_to("]")
            return
        self._list(into, known, inner, counts)

    def _known(self, kind: Any, token: Token, where: str) -> Any:
        """The field that a key names, or nearly names; None when there is none."""
        fields = kind.fields_by_name
        if token.text in fields:
            return fields[token.text]
        near = next(iter(difflib.get_close_matches(token.text, fields, 1, _LIKE)), None)
        hint = f"did you mean {near!r}?" if near else f"known are {', '.join(sorted(fields))[:300]}"
        self._wrong(token, f"unknown key {token.text!r} in {kind.name}; {hint}")
        if near is None:
            return None
        if difflib.SequenceMatcher(None, near, token.text).ratio() >= _SURE:
            return fields[near]
        self._found.lost.add(f"{where}.{near}" if where else near)
        return None

    def _list(self, into: Any, known: Any, inner: str, counts: dict[str, int]) -> None:
        while not self._take("]"):
            token = self._here()
            if token is None:
                self._ended("]")
                return
            if self._is_after(token):
                self._wrong(token, f"']' is missing before {token.text!r}")
                return
            if not self._take(","):
                self._value(into, known, self._indexed(inner, known, counts))
            if self._left:
                return

    def _is_after(self, token: Token) -> bool:
        """Whether a token shows that a list was never closed."""
        following = self._tokens[self._at + 1].text if self._at + 1 < len(self._tokens) else ""
        is_key = token.kind == "word" and (following in _CLOSE or following == ":")
        return token.text in ("}", ">") or is_key

    def _note(self, inner: str, token: Token, known: Any, counts: dict[str, int]) -> None:
        self._found.places.setdefault(inner, (token.line, token.column))
        if not known.is_repeated:
            if counts.get(known.name):
                self._wrong(token, f"key {token.text!r} stands here twice")
            counts[known.name] = 1

    def _indexed(self, inner: str, known: Any, counts: dict[str, int]) -> str:
        """The path of the value that comes next."""
        if not known.is_repeated:
            return inner
        number = counts.get(known.name, 0)
        counts[known.name] = number + 1
        path = f"{inner}[{number}]"
        if (token := self._here()) is not None:
            self._found.places[path] = (token.line, token.column)
        return path

    def _value(self, into: Any, known: Any, where: str) -> None:
        token = self._next()
        if token is None:
            self._wrong(self._tokens[-1], f"{known.name} has no value")
            return
        reason = unfit(known, token)
        if reason is None and known.type == FieldDescriptor.TYPE_MESSAGE:
            self._child(into, known, where, _CLOSE[token.text])
            return
        reason = reason or self._plain(into, known, token)
        if reason is None:
            return
        self._wrong(token, f"{known.name}: {reason}")
        self._found.lost.add(where)
        if token.text in _CLOSE:
            self._skip_to(_CLOSE[token.text])
        elif token.text in _ENDS:
            self._at -= 1

    def _child(self, into: Any, known: Any, where: str, end: str) -> None:
        if not known.message_type.GetOptions().map_entry:
            child = getattr(into, known.name).add() if known.is_repeated else getattr(into, known.name)
            child.SetInParent()
            self.message(child, where, end)
            return
        entry = message_factory.GetMessageClass(known.message_type)()
        self.message(entry, where, end)
        values = getattr(into, known.name)
        if known.message_type.fields_by_name["value"].type == FieldDescriptor.TYPE_MESSAGE:
            values[entry.key].CopyFrom(entry.value)
        else:
            values[entry.key] = entry.value

    def _plain(self, into: Any, known: Any, token: Token) -> str | None:
        """Put a plain value into the message; what is wrong with it, or None."""
        parts = [token.text]
        while token.kind == "string" and (after := self._here()) is not None and after.kind == "string":
            parts.append(after.text)
            self._at += 1
        try:
            text_format.Merge(f"{known.name}: {' '.join(parts)}", into)
        except (text_format.ParseError, UnicodeError, ValueError) as error:
            return str(error).split(" : ", 1)[-1].removeprefix(f"'{known.name}: {parts[0]}': ")[:200]
        return None

    def _skip_value(self) -> None:
        self._take(":")
        token = self._here()
        if token is None or token.text in _ENDS:
            return
        self._at += 1
        if token.text in _CLOSE:
            self._skip_to(_CLOSE[token.text])

    def _skip_to(self, end: str) -> None:
        closes = [end]
        while closes and (token := self._next()) is not None:
            if token.text in _CLOSE:
                closes.append(_CLOSE[token.text])
            elif token.text == closes[-1]:
                closes.pop()

    def _here(self) -> Token | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _next(self) -> Token | None:
        token = self._here()
        self._at += token is not None
        return token

    def _take(self, text: str) -> bool:
        token = self._here()
        if token is None or token.text != text:
            return False
        self._at += 1
        return True

    def _ended(self, end: str) -> None:
        self._wrong(self._tokens[-1], f"{end!r} is missing at the end")

    def _wrong(self, token: Token, message: str) -> None:
        self._found.mistakes.append(Mistake(self._path, token.line, token.column, "error", message))
