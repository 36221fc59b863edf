"""The plain Python behind a cell: magics and shell escapes rewritten, lines kept.

Magics whose body is ordinary code (`%%time`, `%%capture`, `%time x = f()`) are rewritten so that this code is there to
be read: it defines names, fits models and holds paths like any other. All other magics become one opaque call.
"""

from __future__ import annotations

import ast
import functools
import re
from typing import Final

from IPython.core.inputtransformer2 import TransformerManager

# A cell magic with ordinary code below it; `%%capture NAME` keeps the output under a name.
_AROUND: Final = re.compile(r"%%(time|capture|prun)\b[ \t]*([^\n]*)(?:\n|\Z)")
_BEFORE: Final = re.compile(r"^([ \t]*)%time[ \t]+(?=\S)", re.MULTILINE)
_BLANK: Final = re.compile(r"(?:[ \t]*\n)*")


def plain(source: str) -> str:
    """`source` as Python text; magics become calls of `get_ipython()`. Raises SyntaxError for broken ones."""
    # IPython drops empty first lines.
    blank = _BLANK.match(source)
    begin = blank.end() if blank else 0
    body, above = source[begin:], "\n" * source.count("\n", 0, begin)
    around = _AROUND.match(body)
    if around is None:
        return above + _rewritten(body)
    return above + _call(around[1], around[2].strip()) + "\n" + _rewritten(body[around.end() :], indented=True)


def tree(source: str) -> ast.Module | None:
    """The syntax tree of a cell, or None when it is no Python at all (running it tells where)."""
    try:
        return ast.parse(plain(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _rewritten(text: str, *, indented: bool = False) -> str:
    """`text` without magics; `indented` when it stands below a line that is kept, and so must not lose its own."""
    blank = _BLANK.match(text) if indented else None
    above = text[: blank.end()] if blank else ""
    text = text[len(above) :]
    if not text.strip():
        return above + text
    timed = _BEFORE.sub(r"\1get_ipython().run_line_magic('time', ''); ", text)
    return above + str(_manager().transform_cell(timed))


def _call(magic: str, words: str) -> str:
    name = next((word for word in words.split() if word.isidentifier()), None) if magic == "capture" else None
    return f"{f'{name} = ' if name else ''}get_ipython().run_cell_magic({magic!r}, {words!r}, '')"


@functools.cache
def _manager() -> TransformerManager:
    return TransformerManager()  # type: ignore[no-untyped-call]
