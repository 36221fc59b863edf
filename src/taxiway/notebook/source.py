"""The plain Python behind a cell: magics and shell escapes rewritten, lines kept."""

from __future__ import annotations

import ast

from IPython.core.inputtransformer2 import TransformerManager


def plain(source: str) -> str:
    """`source` as Python text; magics become calls of `get_ipython()`. Raises SyntaxError for broken ones."""
    return str(TransformerManager().transform_cell(source))  # type: ignore[no-untyped-call]


def tree(source: str) -> ast.Module | None:
    """The syntax tree of a cell, or None when it is no Python at all (running it tells where)."""
    try:
        return ast.parse(plain(source))
    except (SyntaxError, ValueError):
        return None
