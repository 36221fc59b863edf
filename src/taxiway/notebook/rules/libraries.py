"""Libraries that have moved on since the notebook was written, and versions that are stated nowhere."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Final

from taxiway.notebook.facts import Facts, Hit, dotted
from taxiway.notebook.rules.drift import GONE, Gone
from taxiway.notebook.rules.rule import Rule

_ATTRIBUTES: Final = {g.name[1:]: g for g in GONE if g.name.startswith(".")}
_ARGUMENTS: Final = {tuple(g.name[:-2].split("(", 1)): g for g in GONE if "(" in g.name}
_NAMES: Final = {g.name: g for g in GONE if "(" not in g.name and not g.name.startswith(".")}
_MODULE: Final = {"scikit-learn": "sklearn"}
# `pandas 1.0.3`, `pandas==1.0.3`, `pandas: 1.0.3`, as watermarks and prints write it.
_VERSION: Final = re.compile(
    r"\b(scikit-learn|sklearn|pandas|numpy|scipy|xgboost|lightgbm|keras|tensorflow|torch|matplotlib|seaborn)"
    r"(?:\s*(?:==|[:=])\s*|\s+(?:version\s+)?v?)(\d+\.\d+(?:\.\d+)?)",
    re.I,
)


def stated_versions(facts: Facts) -> Mapping[str, str]:
    """Library -> the version that the notebook itself tells, in its code, its outputs or its texts."""
    texts = [c.cell.source for c in facts.cells]
    texts += [o.text for c in facts.cells for o in c.cell.outputs]
    texts += list(facts.notebook.texts)
    found: dict[str, str] = {}
    for text in texts:
        for name, version in _VERSION.findall(text):
            found.setdefault({"sklearn": "scikit-learn"}.get(name.lower(), name.lower()), version)
    return found


def _drift(facts: Facts) -> Iterator[Hit]:
    versions = stated_versions(facts)
    imported = {full.partition(".")[0] for full in facts.modules.values()}
    for cell in facts.cells:
        told: set[tuple[int, str]] = set()
        for node, gone in _found(facts, cell.nodes, imported):
            key = (node.lineno, gone.name)
            if key not in told:
                told.add(key)
                yield Hit(cell.number, node.lineno, _message(gone, versions), node.col_offset + 1)


def _found(facts: Facts, nodes: tuple[ast.AST, ...], imported: set[str]) -> Iterator[tuple[ast.expr | ast.stmt, Gone]]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((node, g) for a in node.names if (g := _of_name(a.name)))
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((node, g) for a in node.names if (g := _of_name(f"{node.module}.{a.name}")))
        elif isinstance(node, ast.Attribute):
            gone = _of_name(facts.full(dotted(node)))
            method = _ATTRIBUTES.get(node.attr)
            if gone:
                yield node, gone
            elif method and _MODULE.get(method.library, method.library) in imported:
                yield node, method
        elif isinstance(node, ast.Call):
            name = facts.full(dotted(node.func))
            yield from ((node, g) for k in node.keywords if k.arg and (g := _ARGUMENTS.get((name, k.arg))))


def _of_name(name: str) -> Gone | None:
    """What is known of `name` or of a module that it lies in."""
    parts = name.split(".")
    for length in range(len(parts), 1, -1):
        found = _NAMES.get(".".join(parts[:length]))
        if found:
            return found
    return None


def _message(gone: Gone, versions: Mapping[str, str]) -> str:
    written = versions.get(gone.library)
    when = f"; written for {gone.library} {written}" if written else ""
    return f"{gone.name} went with {gone.library} {gone.version}{when}; instead: {gone.instead}"


def _unpinned(facts: Facts) -> Iterator[Hit]:
    versions = stated_versions(facts)
    pinned = {_MODULE.get(name, name) for name in versions}
    loose: dict[str, tuple[int, int]] = {}
    for cell in facts.cells:
        for node in cell.nodes:
            names = []
            if isinstance(node, ast.Import):
                names = [a.name.partition(".")[0] for a in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module.partition(".")[0]]
            for name in names:
                if name not in sys.stdlib_module_names and name not in pinned:
                    loose.setdefault(name, (cell.number, getattr(node, "lineno", 1)))
    if loose:
        cell_number, line = min(loose.values())
        message = f"no version is stated of {', '.join(sorted(loose))}; `taxiway ship` pins what it was built with"
        yield Hit(cell_number, line, message)


RULES: Final = (
    Rule(
        "api-drift",
        "Names that libraries have removed",
        "error",
        "The first thing that fails when an old notebook is run again; some changes fail silently.",
        "Use what replaced it, or run the notebook with the version that it was written for (ship --python).",
        (
            "from sklearn.datasets import load_boston",
            "import numpy as np\nx = np.float(1)",
            "import pandas as pd\nx = pd.DataFrame().as_matrix()",
            "from sklearn.preprocessing import OneHotEncoder\ne = OneHotEncoder(sparse=False)",
        ),
        (
            "import numpy as np\nx = np.float64(1)",
            "from sklearn.preprocessing import OneHotEncoder\ne = OneHotEncoder()",
        ),
        _drift,
    ),
    Rule(
        "unpinned-import",
        "Versions stated nowhere",
        "note",
        "Nobody can tell which versions gave the stored results.",
        "Keep a requirements file beside the notebook; a revision pins the versions that it was built with.",
        ("import pandas as pd",),
        ("import json", "import pandas as pd  # pandas==2.2.3"),
        _unpinned,
    ),
)
