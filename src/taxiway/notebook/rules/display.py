"""What a person needs at a notebook and a service does not: output, plots, magics, debugging."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from taxiway.notebook.facts import Facts, Hit, dotted
from taxiway.notebook.rules.rule import Rule
from taxiway.notebook.rules.secrets import quoted

_SHOWS: Final = frozenset({"print", "display", "pprint", "pprint.pprint"})
_PLOTS: Final = frozenset(
    "plot hist scatter bar barh imshow boxplot show savefig heatmap pairplot distplot countplot violinplot lineplot "  # noqa: SIM905
    "scatterplot histplot kdeplot jointplot regplot catplot matshow pie fill_between".split()
)
_DEBUG: Final = frozenset({"breakpoint", "input", "pdb.set_trace", "ipdb.set_trace", "set_trace", "code.interact"})
_LINE: Final = frozenset({"run_line_magic", "run_cell_magic"})
_SHELL: Final = frozenset({"system", "getoutput", "getpass"})


def _print(facts: Facts) -> Iterator[Hit]:
    for cell, name, call in facts.calls():
        if name in _SHOWS:
            yield Hit(cell.number, call.lineno, f"{name}() is for reading along; a service logs instead")


def _plot(facts: Facts) -> Iterator[Hit]:
    for cell, name, call in facts.calls():
        if "." in name and name.rpartition(".")[2] in _PLOTS:
            yield Hit(cell.number, call.lineno, f"{name}() draws; a service has nobody to look at it")


def _debug(facts: Facts) -> Iterator[Hit]:
    for cell, name, call in facts.calls():
        if name in _DEBUG and name not in facts.defined:
            yield Hit(cell.number, call.lineno, f"{name}() waits for a person; a service has none")
        elif _magic_of(name, call) in ("debug", "pdb"):
            yield Hit(cell.number, call.lineno, f"%{_magic_of(name, call)} is for finding a mistake by hand")


def _magic(facts: Facts) -> Iterator[Hit]:
    for cell, name, call in facts.calls():
        magic = _magic_of(name, call)
        if magic and magic not in ("debug", "pdb", "bash", "sh", "run", "system", "sx"):
            words = [a.value.strip() for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            what = quoted(" ".join(words[:2]))
            yield Hit(cell.number, call.lineno, f"`%{what}` works in a notebook only; it is no part of the model")


def _shell(facts: Facts) -> Iterator[Hit]:
    for cell, name, call in facts.calls():
        last = name.rpartition(".")[2]
        first = call.args[0] if call.args else None
        said = first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else "…"
        if name == f"(…).{last}" and last in _SHELL and _on_ipython(call):
            yield Hit(cell.number, call.lineno, f"`!{quoted(said)}` asks this machine's shell; a service may have none")
        elif _magic_of(name, call) in ("bash", "sh", "run", "system", "sx"):
            yield Hit(cell.number, call.lineno, f"`%{_magic_of(name, call)}` runs something outside this notebook")
        elif facts.full(name) in ("os.system", "os.popen") or (
            facts.full(name).startswith("subprocess.") and _is_shell(call)
        ):
            yield Hit(cell.number, call.lineno, f"{name}() asks this machine's shell; a service may have none")


def _is_shell(call: ast.Call) -> bool:
    return any(k.arg == "shell" and isinstance(k.value, ast.Constant) and k.value.value is True for k in call.keywords)


def _on_ipython(call: ast.Call) -> bool:
    target = call.func.value if isinstance(call.func, ast.Attribute) else None
    return isinstance(target, ast.Call) and dotted(target.func) == "get_ipython"


def _magic_of(name: str, call: ast.Call) -> str | None:
    """The name of the magic that a call stands for."""
    if name.rpartition(".")[2] not in _LINE or not _on_ipython(call) or not call.args:
        return None
    first = call.args[0]
    return str(first.value) if isinstance(first, ast.Constant) else None


RULES: Final = (
    Rule(
        "print",
        "Prints for reading along",
        "note",
        "Standard output of a service goes nowhere, or fills a disk, and cannot be searched by request.",
        "Use logging.getLogger(__name__).info(...); `taxiway purify` does it.",
        ("print('rows', 3)",),
        ("import logging\nlogging.getLogger(__name__).info('rows %s', 3)",),
        _print,
    ),
    Rule(
        "plot",
        "Plots",
        "note",
        "Drawing takes time and memory and needs libraries that serving does not.",
        "Keep plots in the notebook; `taxiway purify` leaves them behind.",
        ("import matplotlib.pyplot as plt\nplt.hist([1, 2])\nplt.show()",),
        ("import numpy as np\ncounts = np.histogram([1, 2])",),
        _plot,
    ),
    Rule(
        "debug",
        "Debugging left in",
        "error",
        "A call that waits for a person stops a process that has none, for ever.",
        "Remove it; what was typed in belongs into a setting.",
        ("breakpoint()", "n = int(input('how many? '))"),
        ("n = 3",),
        _debug,
    ),
    Rule(
        "magic",
        "Magics",
        "note",
        "`%` and `%%` are IPython's, not Python's: the code cannot be imported.",
        "Write it in Python; timing and plotting set-up can go.",
        ("%matplotlib inline", "%%time\nx = 1"),
        ("x = 100 % 7",),
        _magic,
    ),
    Rule(
        "shell",
        "Shell commands",
        "warning",
        "What a shell command does depends on the machine: on its files, its tools and its network.",
        "Use Python (pathlib, shutil); list what must be installed in the requirements.",
        ("!pip install pandas", "names = !ls", "%run other.ipynb", "import os\nos.system('ls')"),
        ("from pathlib import Path\nnames = list(Path('.').iterdir())",),
        _shell,
    ),
)
