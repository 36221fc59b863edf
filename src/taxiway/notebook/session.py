"""Runs a notebook's code cells top to bottom in this process, as Jupyter would, and records its models.

Meant for a process of its own: it takes over `__main__`, the working folder's import path and IPython's singleton.
Installing packages from within the notebook is not done (the environment is what is being proved); everything else
that works in Jupyter works here.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import io
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from IPython.core.displayhook import DisplayHook
from IPython.core.interactiveshell import InteractiveShell
from traitlets import Type
from traitlets.config import Config

from taxiway.core.errors import Refused
from taxiway.notebook.read import Cell, Notebook
from taxiway.notebook.record import HOOK, Call, Recorder, Rewriter, is_model_like
from taxiway.notebook.source import tree
from taxiway.notebook.torch_calls import METHOD, Watch, has_weights, is_module

# Of what a cell prints, this much is compared with what the notebook has stored.
_KEPT: Final = 1 << 16
_INSTALLERS: Final = ("pip ", "pip3 ", "conda ", "mamba ", "apt ", "apt-get ", "uv ", "python -m pip ")
_ADVICE: Final = {
    "ModuleNotFoundError": "install that library where the notebook runs (--python names another environment), "
    "or put its file next to the notebook",
    "FileNotFoundError": "put the file next to the notebook and name it by a relative path",
    "NameError": "run the notebook top to bottom in a fresh kernel to see the same",
    "EOFError": "a build has nobody to answer input(); write the value into the cell",
}


@dataclass(frozen=True, slots=True, eq=False)
class Binding:
    """A model-like object under a name, as seen at the end of a cell."""

    name: str
    cell: int
    thing: Any


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """What is left after a run: every binding of a model in the order of cells, every recorded call, and what each cell
    printed and showed.
    """

    bindings: tuple[Binding, ...]
    calls: tuple[Call, ...]
    outputs: Mapping[int, str] = field(default_factory=dict)


class _Shown(DisplayHook):
    """Shows a cell's value as a notebook stores it: without a number in front."""

    def write_output_prompt(self) -> None:
        """`Out[3]:` is no part of what was said."""


class _Tee(io.TextIOBase):
    """Writes on, and keeps the first KEPT characters."""

    def __init__(self, on: Any) -> None:
        self._on = on
        self._kept: list[str] = []
        self._size = 0

    def write(self, text: str) -> int:
        if self._size < _KEPT:
            self._kept.append(text[: _KEPT - self._size])
            self._size += len(text)
        return int(self._on.write(text))

    def flush(self) -> None:
        self._on.flush()

    def fileno(self) -> int:
        return int(self._on.fileno())

    def isatty(self) -> bool:
        return False

    @property
    def text(self) -> str:
        """What was written."""
        return "".join(self._kept)


class _Shell(InteractiveShell):
    """IPython without a terminal: no event loop, no history, no installing."""

    displayhook_class = Type(_Shown)

    def enable_gui(self, gui: str | None = None) -> None:
        """`%matplotlib inline` asks for an event loop; there is none."""

    def system(self, cmd: str) -> None:
        if cmd.strip().startswith(_INSTALLERS):
            print(f"not run while building: {cmd.strip()}", file=sys.stderr)
            return
        super().system(cmd)  # type: ignore[no-untyped-call]


def run(notebook: Notebook, progress: Callable[[Cell], None]) -> Run:
    """Run all cells; `progress` hears of each before it starts.

    Raises Refused with cell, line and error of the first cell that fails.
    """
    recorder = Recorder()

    def forward(module: Any, given: Any, result: Any, training: bool) -> None:
        rows = {"inputs": given, "training": training}
        recorder.calls.append(Call(recorder.cell, module, METHOD, None, rows, None, result))

    Watch(forward).start()
    shell = _shell(recorder)
    failures: list[BaseException] = []
    shell.events.register("post_run_cell", lambda result: _note(result, failures))
    seen: dict[str, int] = {}
    bindings: list[Binding] = []
    said: dict[int, str] = {}
    for cell in notebook.cells:
        progress(cell)
        recorder.cell = cell.number
        tee = _Tee(sys.stdout)
        with contextlib.redirect_stdout(tee):
            shell.run_cell(cell.source, store_history=True)
        said[cell.number] = tee.text
        if failures:
            raise _refused(notebook, cell, failures[0])
        bindings += _new_bindings(shell.user_ns, cell.number, seen)
    return Run(tuple(bindings), tuple(recorder.calls), said)


def _shell(recorder: Recorder) -> Any:
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    shell = _Shell.instance(config=config)
    for magic in ("pip", "conda", "mamba", "uv"):
        shell.register_magic_function(_nothing, "line", magic)  # type: ignore[arg-type]
    shell.ast_transformers.append(Rewriter())
    setattr(builtins, HOOK, recorder)
    folder = os.getcwd()  # noqa: PTH109 - the text as Python itself would put it on the path
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return shell


def _nothing(_line: str) -> None:
    """A magic that is not run while building."""


def _note(result: Any, failures: list[BaseException]) -> None:
    error = result.error_before_exec or result.error_in_exec
    # A cell inside a cell (`%%capture`) ends first: its error is the cause.
    if error is not None:
        failures.append(error)


def _new_bindings(names: dict[str, Any], cell: int, seen: dict[str, int]) -> list[Binding]:
    found = []
    for name, thing in list(names.items()):
        # `_`, `_12` and the like are IPython's memory of results, not names that a person gave.
        if name.startswith("_") or isinstance(thing, type) or not is_candidate_like(thing):
            continue
        if seen.get(name) != id(thing):
            seen[name] = id(thing)
            found.append(Binding(name, cell, thing))
    return found


def is_candidate_like(thing: Any) -> bool:
    """Estimators, ONNX sessions and models, and modules of PyTorch that have learned something."""
    if is_module(thing):
        return has_weights(thing)
    return is_model_like(thing) or (type(thing).__name__ == "ModelProto" and hasattr(thing, "SerializeToString"))


def _refused(notebook: Notebook, cell: Cell, error: BaseException) -> Refused:
    line = _line(cell, error)
    text = cell.source.splitlines()
    source = text[line - 1].strip() if 0 < line <= len(text) else ""
    name = type(error).__name__
    said = (str(error).strip() or "no message").split("\n")[0][:300]
    reasons = [f"{notebook.path.name}: cell {cell.number}, line {line}: {name}: {said}"]
    if source:
        reasons.append(f"    {source}")
    advice = _later(notebook, cell, error) or _ADVICE.get(name)
    if advice:
        reasons.append(f"What to do: {advice}.")
    return Refused(*reasons, code="cell-error")


def _line(cell: Cell, error: BaseException) -> int:
    """Where in the cell it happened: the outermost line of the cell's own code."""
    if isinstance(error, SyntaxError) and error.lineno:
        return error.lineno
    lines, trace = [], error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename.startswith(("<ipython-input-", "<timed ")):
            lines.append(trace.tb_lineno)
        trace = trace.tb_next
    if not cell.source.lstrip().startswith("%%"):
        return lines[0] if lines else 1
    # The body of a cell magic is run as a cell of its own, which begins at its first line that is not empty.
    text = cell.source.splitlines()
    begin = next((i for i, line in enumerate(text) if i > 0 and line.strip() and not line.startswith("%%")), 0)
    return min(begin + (lines[1] if len(lines) > 1 else (lines or [1])[0]), len(text))


def _later(notebook: Notebook, cell: Cell, error: BaseException) -> str | None:
    """Advice for a name that only a later cell defines."""
    if not isinstance(error, NameError) or not error.name:
        return None
    for other in notebook.cells[cell.number :]:
        for node in ast.walk(tree(other.source) or ast.Module([], [])):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == error.name:
                return f"{error.name!r} is defined only later, in cell {other.number}; move that cell up"
    return None
