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
    r"(?:\s{0,9}(?:==|[:=])\s{0,9}|\s{1,9}(?:version\s{1,9})?v?)(\d{1,9}\.\d{1,9}(?:\.\d{1,9})?)",
    re.I,
)
# `catboost==1.2`, of any library.
_PIN: Final = re.compile(r"\b([A-Za-z][\w.-]{0,60})\s{0,3}==\s{0,3}(\d[\w.]{0,20})")
# Modules whose distribution has another name.
_DISTRIBUTION: Final = {
    "sklearn": "scikit-learn",
    "cv2": "opencv-python",
    "PIL": "pillow",
    "yaml": "pyyaml",
    "bs4": "beautifulsoup4",
    "skimage": "scikit-image",
}
# They come with Jupyter and do not touch a model.
_SURROUNDINGS: Final = frozenset({"IPython", "ipywidgets", "google"})


def stated_versions(facts: Facts) -> Mapping[str, str]:
    """Library -> the version that the notebook itself tells, in its code, its outputs, its texts or beside it."""
    texts = [c.cell.source for c in facts.cells]
    texts += [o.text for c in facts.cells for o in c.cell.outputs]
    texts += [*facts.notebook.texts, facts.notebook.pins]
    found: dict[str, str] = {}
    for text in texts:
        for name, version in (*_VERSION.findall(text), *_PIN.findall(text)):
            plain = name.lower().replace("_", "-")
            found.setdefault({"sklearn": "scikit-learn"}.get(plain, plain), version)
    return found


def _drift(facts: Facts) -> Iterator[Hit]:
    versions, classes = stated_versions(facts), _classes(facts)
    imported = {full.partition(".")[0] for full in facts.modules.values()}
    for cell in facts.cells:
        told: set[tuple[int, str]] = set()
        for node, gone in _found(facts, cell.nodes, imported, classes):
            key = (node.lineno, gone.name)
            if key not in told and not _is_back(gone, versions):
                told.add(key)
                message = _message(gone, versions, facts.notebook.python)
                yield Hit(cell.number, node.lineno, message, node.col_offset + 1)


def _classes(facts: Facts) -> Mapping[str, str]:
    """Name -> the class, by its full name, of all that is bound to it at the top level."""
    found: dict[str, set[str]] = {}
    for cell in facts.cells:
        for statement in cell.body:
            if isinstance(statement, ast.Assign):
                kind = _class_of(facts, statement.value)
                for target in statement.targets:
                    if isinstance(target, ast.Name) and not _is_own_method(statement.value, target.id):
                        found.setdefault(target.id, set()).add(kind)
    return {name: kinds.pop() for name, kinds in found.items() if len(kinds) == 1}


def _class_of(facts: Facts, value: ast.expr) -> str:
    full = facts.full(dotted(value.func)) if isinstance(value, ast.Call) else ""
    return "pandas.DataFrame" if full.startswith(("pandas.read_", "pandas.concat", "pandas.merge")) else full


def _is_own_method(value: ast.expr, name: str) -> bool:
    """`df = df.append(row)` leaves `df` what it was."""
    return isinstance(value, ast.Call) and dotted(value.func).startswith(f"{name}.")


def _found(
    facts: Facts, nodes: tuple[ast.AST, ...], imported: set[str], classes: Mapping[str, str]
) -> Iterator[tuple[ast.expr | ast.stmt, Gone]]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((node, g) for a in node.names if (g := _of_name(a.name)))
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((node, g) for a in node.names if (g := _of_name(f"{node.module}.{a.name}")))
        elif isinstance(node, ast.Attribute):
            gone = _of_name(_full(facts, node, classes)) or _method(node.attr, imported)
            if gone:
                yield node, gone
        elif isinstance(node, ast.Call):
            name = _full(facts, node.func, classes)
            yield from ((node, g) for k in node.keywords if k.arg and (g := _ARGUMENTS.get((name, k.arg))))


def _full(facts: Facts, node: ast.expr, classes: Mapping[str, str]) -> str:
    """The full name of what is named, through the class of an object: `pandas.DataFrame.append` for `df.append`."""
    name = dotted(node)
    first, dot, rest = name.partition(".")
    return f"{classes[first]}.{rest}" if dot and classes.get(first) else facts.full(name)


def _method(attribute: str, imported: set[str]) -> Gone | None:
    gone = _ATTRIBUTES.get(attribute)
    if gone is None:
        return None
    modules = {"keras", "tensorflow"} if gone.library == "keras" else {_MODULE.get(gone.library, gone.library)}
    return gone if modules & imported else None


def _of_name(name: str) -> Gone | None:
    """What is known of `name` or of a module that it lies in."""
    parts = name.split(".")
    for length in range(min(len(parts), 8), 1, -1):
        found = _NAMES.get(".".join(parts[:length]))
        if found:
            return found
    return None


def _is_back(gone: Gone, versions: Mapping[str, str]) -> bool:
    """Whether the notebook is for a version that has the name again."""
    written = versions.get(gone.library)
    return bool(gone.back and written) and _key(written or "") >= _key(gone.back)


def _key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def _message(gone: Gone, versions: Mapping[str, str], python: str) -> str:
    written = versions.get(gone.library)
    when = f"; written for {gone.library} {written}" if written else f"; written with Python {python}" if python else ""
    return f"{gone.name} went with {gone.library} {gone.version}{when}; instead: {gone.instead}"


def _unpinned(facts: Facts) -> Iterator[Hit]:
    pinned = stated_versions(facts).keys()
    own = facts.notebook.modules | sys.stdlib_module_names | _SURROUNDINGS
    loose: dict[str, tuple[int, int]] = {}
    for cell in facts.cells:
        for node in cell.nodes:
            for name in _imported(node):
                known = _DISTRIBUTION.get(name, name).lower().replace("_", "-")
                if name not in own and known not in pinned:
                    loose.setdefault(name, (cell.number, getattr(node, "lineno", 1)))
    if loose:
        cell_number, line = min(loose.values())
        message = f"no version is stated of {', '.join(sorted(loose))}; `taxiway ship` pins what it was built with"
        yield Hit(cell_number, line, message)


def _imported(node: ast.AST) -> list[str]:
    """The top-level modules of an import."""
    if isinstance(node, ast.Import):
        return [a.name.partition(".")[0] for a in node.names]
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return [node.module.partition(".")[0]]
    return []


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
            "import pandas as pd\ndf = pd.read_csv('x.csv')\ndf = df.append({'a': 1}, ignore_index=True)",
        ),
        (
            "import numpy as np\nx = np.float64(1)",
            "import pandas as pd\nrows = []\nrows.append(pd.DataFrame())",
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
