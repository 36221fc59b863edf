"""Which installed libraries a notebook imports, pinned to the versions it is built with."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable
from importlib import metadata

from taxiway.notebook.read import Notebook
from taxiway.notebook.source import tree


def modules(notebook: Notebook) -> frozenset[str]:
    """Top-level module names imported anywhere in the notebook, the standard library left out."""
    found: set[str] = set()
    for cell in notebook.cells:
        for node in ast.walk(tree(cell.source) or ast.Module([], [])):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.partition(".")[0])
    return frozenset(found - sys.stdlib_module_names)


def pinned(notebook: Notebook, also: Iterable[str] = ()) -> dict[str, str]:
    """Distribution name -> version for the notebook's imports and the distributions `also`, sorted.

    Modules that belong to no installed distribution (files next to the notebook) are left out.
    """
    owners = metadata.packages_distributions()
    names = {_canonical(d) for module in modules(notebook) for d in owners.get(module, ())}
    names |= {_canonical(name) for name in also}
    return {name: version for name in sorted(names) if (version := _version(name)) is not None}


def _canonical(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
