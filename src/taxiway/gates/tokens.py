"""The words of a config.pbtxt, each with its place, and whether a word can be the value of a field.

A value is judged by its looks alone; ranges are left to protobuf's parser.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor

_TOKEN: Final = re.compile(
    r"""(?P<skip>\s+|\#[^\n]*)|(?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')"""
    r"""|(?P<word>[A-Za-z_][\w.\-/]*)|(?P<number>[-+]?(?:\d|\.\d)[\w.+-]*)|(?P<mark>[{}\[\]<>:,;\-])|(?P<bad>.)""",
    re.S,
)
_WHOLE: Final = frozenset(
    {
        FieldDescriptor.TYPE_INT32,
        FieldDescriptor.TYPE_INT64,
        FieldDescriptor.TYPE_UINT32,
        FieldDescriptor.TYPE_UINT64,
    }
)
_TEXT: Final = frozenset({FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES})
# What other libraries call Triton's types.
_OTHERWISE: Final = {
    "FLOAT": "FP32",
    "FLOAT32": "FP32",
    "DOUBLE": "FP64",
    "FLOAT64": "FP64",
    "HALF": "FP16",
    "FLOAT16": "FP16",
    "INT": "INT32",
    "LONG": "INT64",
    "BYTES": "STRING",
    "STR": "STRING",
    "BOOLEAN": "BOOL",
}


@dataclass(frozen=True, slots=True)
class Token:
    """`line` and `column` count from 1."""

    kind: str
    text: str
    line: int
    column: int


def tokens(text: str) -> Iterator[Token]:
    """Every word, string, number and mark of `text`; what is none of them is of kind `bad`."""
    line, begin = 1, 0
    for match in _TOKEN.finditer(text):
        kind, said = match.lastgroup or "bad", match.group()
        if kind != "skip":
            yield Token(kind, said, line, match.start() - begin + 1)
        newlines = said.count("\n")
        if newlines:
            line += newlines
            begin = match.start() + said.rindex("\n") + 1


def unfit(known: Any, token: Token) -> str | None:
    """What is wrong with a value by its looks; None when it fits, or when the parser must tell."""
    said = token.text[:30]
    if known.type == FieldDescriptor.TYPE_MESSAGE:
        return None if token.text in ("{", "<") else f"expected {{ … }}, got {said!r}"
    if known.type == FieldDescriptor.TYPE_ENUM:
        return _unknown_name(known, token)
    if known.type in _TEXT:
        return None if token.kind == "string" else f"expected text in quotes, got {said!r}"
    if known.type == FieldDescriptor.TYPE_BOOL:
        fits = token.text in ("true", "false", "True", "False", "t", "f", "0", "1")
        return None if fits else f"expected true or false, got {said!r}"
    if known.type in _WHOLE:
        fits = re.fullmatch(r"[-+]?(\d+|0[xX][0-9a-fA-F]+)", token.text) is not None
        return None if fits else f"expected a whole number, got {said!r}"
    return None if token.kind in ("number", "word") else f"expected a number, got {said!r}"


def _unknown_name(known: Any, token: Token) -> str | None:
    names = list(known.enum_type.values_by_name)
    if token.text in names or token.text.isdecimal():
        return None
    meant = _OTHERWISE.get(token.text.upper().removeprefix("TYPE_"))
    near = [f"TYPE_{meant}"] if meant else difflib.get_close_matches(token.text.upper(), names, 1, 0.5)
    hint = f"did you mean {near[0]}?" if near and near[0] in names else f"known are {', '.join(names)}"
    return f"unknown value {token.text[:30]!r}; {hint}"
