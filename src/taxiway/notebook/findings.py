"""Cheap findings: what a reader of the notebook should know before it becomes a service. They never block."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final

from taxiway.notebook.read import Cell, Notebook
from taxiway.notebook.source import tree

_ABSOLUTE: Final = re.compile(r"(/(home|Users|root|mnt|data|tmp|content|kaggle|opt|var|srv)/|~/|[A-Za-z]:[\\/])\S*")
_SEEDS: Final = frozenset({"np.random.seed", "numpy.random.seed", "random.seed", "torch.manual_seed"})
_PLOTS: Final = frozenset({"plot", "hist", "scatter", "bar", "barh", "imshow", "boxplot", "show", "savefig", "heatmap"})
_SHOWS: Final = frozenset({"print", "display", "pprint"})
# The names IPython gives to `%magic`, `%%magic`, `!command` and `x = !command` once rewritten.
_MAGICS: Final = frozenset({"run_line_magic", "run_cell_magic", "system", "getoutput"})


@dataclass(frozen=True, slots=True)
class Finding:
    """`kind` is one of print, plot, global-seed, absolute-path, magic, execution-order, or (found by running it, when
    float32 changes the model's own answers) rounding; `line` counts from 1.
    """

    kind: str
    cell: int
    line: int
    message: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def findings(notebook: Notebook) -> tuple[Finding, ...]:
    """All findings in the order of cells and lines."""
    found = [*_order(notebook)]
    for cell in notebook.cells:
        for node in ast.walk(tree(cell.source) or ast.Module([], [])):
            found += _at(cell, node)
    return tuple(sorted(set(found), key=lambda f: (f.cell, f.line, f.kind, f.message)))


def _at(cell: Cell, node: ast.AST) -> Iterator[Finding]:
    if isinstance(node, ast.Call):
        name = ast.unparse(node.func)
        kind_message = _call(name, node)
        if kind_message:
            yield Finding(kind_message[0], cell.number, node.lineno, kind_message[1])
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and _ABSOLUTE.match(node.value):
        path = node.value if len(node.value) <= 60 else node.value[:57] + "..."
        message = f"path {path!r} exists only on one machine; take it from a setting with a default"
        yield Finding("absolute-path", cell.number, node.lineno, message)


def _call(name: str, node: ast.Call) -> tuple[str, str] | None:
    last = name.rpartition(".")[2]
    if last in _MAGICS and name.startswith("get_ipython()"):
        words = [a.value.strip() for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        what = " ".join(words[:2]).split("\n")[0][:60]
        return "magic", f"`{what}` works in a notebook only; it is no part of the model"
    if name in _SEEDS:
        return "global-seed", f"{name}() changes the random state of the whole process; use a local generator"
    if name in _SHOWS:
        return "print", f"{name}() is for reading along; a service logs instead"
    if last in _PLOTS and "." in name:
        return "plot", f"{name}() draws; a service has nobody to look at it"
    return None


def _order(notebook: Notebook) -> Iterator[Finding]:
    highest = 0
    for cell in notebook.cells:
        if cell.count is None:
            continue
        if cell.count < highest:
            message = f"was last executed as [{cell.count}], before a cell above it ([{highest}]); built top to bottom"
            yield Finding("execution-order", cell.number, 1, message)
        highest = max(highest, cell.count)
