"""What a statement does to names: which it defines, which it uses, which it changes in place.

Scopes are those of Python's own `symtable`. Changes in place cannot be known for sure without running; what looks like
one counts (`X[:4] = 0`, `df["c"] += 1`, `scaler.fit(X)`, `rows.append(r)`, `f(df)` as a statement of its own), and a
change to one object counts for every object that it was made from, for it may be a view of it.
"""

from __future__ import annotations

import ast
import builtins
import symtable
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

# Methods that change what they are called on.
_CHANGING: Final = frozenset(
    [
        "fit",
        "fit_transform",
        "partial_fit",
        "fit_resample",
        "set_params",
        "append",
        "extend",
        "insert",
        "remove",
        "pop",
        "clear",
        "sort",
        "reverse",
        "update",
        "setdefault",
        "add",
        "discard",
        "popitem",
        "fill",
        "resize",
        "put",
        "itemset",
        "setflags",
        "load_state_dict",
        "step",
        "zero_grad",
        "backward",
        "train",
        "eval",
        "to",
        "cuda",
        "cpu",
        "half",
        "float",
        "double",
        "requires_grad_",
        "compile",
        "build",
        "fit_predict",
        "add_module",
        "register_buffer",
        "seed",
        "shuffle",
        "add_argument",
        "parse_args",
        "insert_row",
        "drop_duplicates_inplace",
        "write",
        "writelines",
        "close",
    ]
)
# Functions that show something and change nothing.
_SHOWING: Final = frozenset({"print", "display", "pprint", "help", "len", "type"})
_SHOWING_MODULES: Final = frozenset(
    {"plt", "sns", "matplotlib", "seaborn", "px", "go", "warnings", "logging", "logger"}
)
RANDOM: Final = "(the random state)"
_RANDOM_ROOTS: Final = ("np.random.", "numpy.random.", "random.", "torch.manual_seed", "torch.rand")
SEEDS: Final = frozenset({"np.random.seed", "numpy.random.seed", "random.seed", "torch.manual_seed"})
_BUILTINS: Final = frozenset(dir(builtins))


@dataclass(frozen=True, slots=True)
class Effects:
    """Names. `links` are those that a defined name may share its data with."""

    defines: frozenset[str]
    uses: frozenset[str]
    changes: frozenset[str]
    links: frozenset[str]


def effects(node: ast.stmt) -> Effects:
    """The effects of one top-level statement."""
    table = symtable.symtable(ast.unparse(node), "<cell>", "exec")
    defines = {s.get_name() for s in table.get_symbols() if s.is_assigned() or s.is_imported() or s.is_namespace()}
    uses = {s.get_name() for s in table.get_symbols() if s.is_referenced()} | set(_free(table))
    if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
        uses = {n for n in uses if n not in _BUILTINS} - defines
        return Effects(frozenset(defines), frozenset(uses), frozenset(), frozenset())
    changes = set(_changes(node))
    if any(_is_random(call) for call in ast.walk(node)):
        uses.add(RANDOM)
        changes.add(RANDOM)
    uses = {n for n in uses | changes if n not in _BUILTINS or n in defines}
    linked = uses if defines and not isinstance(node, ast.Import | ast.ImportFrom) else set()
    return Effects(frozenset(defines), frozenset(uses), frozenset(changes), frozenset(linked - {RANDOM}))


def kills(node: ast.stmt) -> frozenset[str]:
    """Names whose former value no longer matters after `node`, whatever happens."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
        return frozenset({node.name})
    if isinstance(node, ast.Import | ast.ImportFrom):
        return frozenset((a.asname or a.name.partition(".")[0]) for a in node.names)
    if isinstance(node, ast.Assign):
        return frozenset(name for target in node.targets for name in _plain_targets(target))
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        return frozenset(_plain_targets(node.target))
    return frozenset()


def _plain_targets(target: ast.expr) -> Iterator[str]:
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, ast.Tuple | ast.List):
        for part in target.elts:
            yield from _plain_targets(part)
    elif isinstance(target, ast.Starred):
        yield from _plain_targets(target.value)


def _free(table: symtable.SymbolTable) -> Iterator[str]:
    for child in table.get_children():
        yield from (s.get_name() for s in child.get_symbols() if s.is_global() and s.is_referenced())
        yield from _free(child)


def _changes(node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Delete):
            targets = part.targets if isinstance(part, ast.Assign | ast.Delete) else [part.target]
            yield from (n for t in targets for n in _stored_into(t))
            if isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name):
                yield part.target.id
        elif isinstance(part, ast.Call):
            yield from _called(part)
        elif isinstance(part, ast.Expr) and isinstance(part.value, ast.Call):
            yield from _handed_over(part.value)


def _stored_into(target: ast.expr) -> Iterator[str]:
    if isinstance(target, ast.Subscript | ast.Attribute):
        name = root(target)
        if name:
            yield name
    elif isinstance(target, ast.Tuple | ast.List):
        for part in target.elts:
            yield from _stored_into(part)


def _called(call: ast.Call) -> Iterator[str]:
    if not isinstance(call.func, ast.Attribute):
        return
    inplace = any(
        k.arg == "inplace" and isinstance(k.value, ast.Constant) and k.value.value is True for k in call.keywords
    )
    name = root(call.func)
    if name and (inplace or call.func.attr in _CHANGING) and name not in _SHOWING_MODULES:
        yield name
    if call.func.attr == "shuffle":
        yield from (a.id for a in call.args if isinstance(a, ast.Name))


def _handed_over(call: ast.Call) -> Iterator[str]:
    """Names given to a function whose result nobody takes: it was called for what it changes, or shows."""
    name = root(call.func)
    if name is None or name in _SHOWING or name in _SHOWING_MODULES or isinstance(call.func, ast.Attribute):
        return
    yield from (a.id for a in (*call.args, *(k.value for k in call.keywords)) if isinstance(a, ast.Name))


def root(node: ast.expr) -> str | None:
    """`df` of `df["a"].values[0]`; None when it does not begin with a name."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None


def _is_random(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and ast.unparse(node.func).startswith(_RANDOM_ROOTS)
        and node.func.attr not in ("default_rng", "RandomState", "Generator", "SeedSequence", "Random")
    )
