"""A package of plain modules from the statements that a model depends on (pure: facts in, {path: text} out).

    pyproject.toml, requirements.txt, taxiway.yaml, .pre-commit-config.yaml, README.md
    <package>/settings.py    where the data is: environment variables with the notebook's own paths as defaults
    <package>/features.py    the notebook's functions and classes
    <package>/train.py       train() -> (model, metrics), and what saves them
    <package>/inference.py   load() and predict()
    tests/                   that training gives the notebook's score, and that what was saved answers alike

What is changed on the way: paths come from settings, prints go to a log, global seeds become a generator of train()'s
own (or, where a library only knows the global one, are put back afterwards), a scaler and a model that were fitted one
by one are handed over as one Pipeline. What the model does not depend on stays behind.
"""

from __future__ import annotations

import ast
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from taxiway.notebook import templates
from taxiway.notebook.effects import SEEDS
from taxiway.notebook.slices import Statement

Randomness = Literal["none", "local", "confined"]

_ABSOLUTE: Final = re.compile(r"(/|~/|[A-Za-z]:[\\/])[^\s:]+\.\w{1,8}\Z")
_MARK: Final = "%s"
# Of what scikit-learn offers, these draw from the global random state when they are not given one.
_DRAWING: Final = re.compile(
    r"(train_test_split|(Stratified|Group)?ShuffleSplit|RandomForest\w+|ExtraTrees?\w+|GradientBoosting\w+|"
    r"DecisionTree\w+|SGD\w+|MLP\w+|KMeans|MiniBatchKMeans|Bagging\w+|AdaBoost\w+|RandomizedSearchCV|resample|shuffle|"
    r"make_(classification|regression|blobs|moons|circles))\Z"
)


@dataclass(frozen=True, slots=True)
class Recipe:
    """All that decides a package. `steps` are (step name, variable), the model last; `files` maps a path in the
    notebook to the name of its setting; `score` is the notebook's own expression for its score.
    """

    model: str
    notebook: str
    taken: Sequence[Statement]
    steps: Sequence[tuple[str, str]]
    score: str | None
    scored: float | None
    files: Mapping[str, str]
    pins: Mapping[str, str]
    randomness: Randomness
    is_torch: bool

    @property
    def package(self) -> str:
        """The model's name as that of a Python package."""
        return self.model.replace("-", "_")


def files(recipe: Recipe) -> dict[str, str]:
    """The package's files by path."""
    name = recipe.package
    defs = [s for s in recipe.taken if _is_definition(s) and _stands_alone(s, recipe.taken)]
    found = {
        "pyproject.toml": _project(recipe),
        "requirements.txt": "".join(f"{n}=={v}\n" for n, v in recipe.pins.items()),
        "taxiway.yaml": f"# What `taxiway ship` should know; every key has a default.\nmodel: {recipe.model}\n",
        ".pre-commit-config.yaml": templates.PRE_COMMIT,
        "README.md": _readme(recipe),
        f"{name}/__init__.py": f'"""`{recipe.model}`, taken from {recipe.notebook}."""\n',
        f"{name}/py.typed": "",
        f"{name}/settings.py": _settings(recipe),
        f"{name}/train.py": _train(recipe, defs),
        f"{name}/inference.py": templates.INFERENCE.format(model=recipe.model, package=name),
        "tests/test_train.py": _tests(recipe),
    }
    if defs:
        found[f"{name}/features.py"] = _features(recipe, defs)
    return found


def variable(path: str) -> str:
    """The name of the setting for the file at `path`."""
    stem = re.sub(r"[^A-Za-z0-9]+", "_", path.rpartition("/")[2]).strip("_").upper() or "FILE"
    return stem if not stem[0].isdigit() else f"FILE_{stem}"


def is_absolute(text: str) -> bool:
    """Whether a text looks like the path of a file on one machine."""
    return _ABSOLUTE.match(text) is not None


def _is_definition(statement: Statement) -> bool:
    return isinstance(statement.node, ast.FunctionDef | ast.ClassDef)


def _is_import(statement: Statement) -> bool:
    return isinstance(statement.node, ast.Import | ast.ImportFrom)


def _stands_alone(statement: Statement, taken: Sequence[Statement]) -> bool:
    """Whether a definition needs nothing but imports and other definitions that do."""
    sources: dict[str, list[Statement]] = {}
    for one in taken:
        for name in one.effects.defines:
            sources.setdefault(name, []).append(one)
    seen: set[str] = set()
    left = list(statement.effects.uses)
    while left:
        name = left.pop()
        if name in seen:
            continue
        seen.add(name)
        for one in sources.get(name, ()):
            if _is_definition(one):
                left += one.effects.uses
            elif not _is_import(one):
                return False
    return True


def _needed_imports(used: set[str], taken: Sequence[Statement]) -> Iterator[str]:
    for statement in taken:
        node = statement.node
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                if (alias.asname or alias.name.partition(".")[0]) in used or alias.name == "*":
                    one = ast.Import([alias]) if isinstance(node, ast.Import) else None
                    yield ast.unparse(one or ast.ImportFrom(getattr(node, "module", None), [alias], 0))


def _imports(used: set[str], taken: Sequence[Statement], also: Sequence[str] = ()) -> str:
    """Import lines for `used` and those in `also`: the standard library, then the rest; modules before names."""
    lines = sorted(_merged([*_needed_imports(used, taken), *also]), key=lambda x: (x.startswith("from"), x.lower()))
    own = [line for line in lines if line.split()[1].partition(".")[0] in sys.stdlib_module_names]
    others = [line for line in lines if line not in own]
    return "\n\n".join("\n".join(group) for group in (own, others) if group)


def _merged(lines: Sequence[str]) -> list[str]:
    """One line for each module, its names in the order that formatters like: constants, classes, functions."""
    names: dict[str, set[str]] = {}
    for line in lines:
        module, _, name = line.partition(" import ")
        names.setdefault(module if name else line, set()).update([name] if name else [])

    def order(name: str) -> tuple[int, str]:
        plain = name.partition(" ")[0]
        return (0 if plain.isupper() and len(plain) > 1 else 1 if plain[:1].isupper() else 2, plain.lower())

    return [f"{m} import {', '.join(sorted(given, key=order))}" if given else m for m, given in names.items()]


def _uses(statements: Sequence[Statement]) -> set[str]:
    return {n for s in statements for n in s.effects.uses | s.effects.defines}


def _features(recipe: Recipe, defs: Sequence[Statement]) -> str:
    body = "\n\n\n".join(_edited(s, recipe) for s in defs)
    logs = "logger." in body
    imports = _imports(_uses(defs), recipe.taken, ["import logging"] if logs else [])
    parts = [f'"""The functions and classes that `{recipe.model}` is made with."""', imports]
    parts += ["logger = logging.getLogger(__name__)"] if logs else []
    return "\n\n".join(p for p in parts if p) + f"\n\n\n{body}\n"


def _train(recipe: Recipe, defs: Sequence[Statement]) -> str:
    inner = [s for s in recipe.taken if not _is_import(s) and s not in defs]
    body: list[str] = []
    cell = 0
    for statement in inner:
        if statement.cell != cell:
            cell = statement.cell
            body.append(f"{'' if not body else chr(10)}# cell {cell}")
        body.append(_edited(statement, recipe))
    text = "\n".join(body)
    model = recipe.steps[-1][1]
    if len(recipe.steps) > 1:
        steps = ", ".join(f'("{label}", {name})' for label, name in recipe.steps)
        text += f"\n\n# one object from raw rows to answers\nmodel_ = Pipeline([{steps}])"
        model = "model_"
    if recipe.is_torch:
        text += f"\n{model}.eval()"
    metrics = f'{{"score": float({recipe.score})}}' if recipe.score else "{}"
    used = _uses(inner) | ({"np", "numpy"} if "np.random" in text else set())
    also = ["import hashlib", "import logging", "import joblib", "from typing import Any"]
    also += ["from sklearn.pipeline import Pipeline"] if len(recipe.steps) > 1 and "Pipeline" not in used else []
    imports = _imports(used, recipe.taken, also)
    own = [f"from {recipe.package}.features import {', '.join(sorted(_names(defs)))}\n"] if defs else []
    own += [f"from {recipe.package}.settings import MODEL_FILE{', path' if 'path(' in text else ''}\n"]
    return templates.TRAIN.format(
        model=recipe.model,
        notebook=recipe.notebook,
        imports=imports,
        own="".join(own),
        confined=templates.CONFINED if recipe.randomness == "confined" else "",
        decorator="@confined_randomness\n" if recipe.randomness == "confined" else "",
        body=textwrap.indent(text, "    "),
        result=model,
        metrics=metrics,
    )


def _names(defs: Sequence[Statement]) -> set[str]:
    return {name for s in defs for name in s.effects.defines}


def _edited(statement: Statement, recipe: Recipe) -> str:
    """The text of a statement with its paths, prints and random numbers put right."""
    text = statement.text
    tree = ast.parse(text)
    if any(
        isinstance(n, ast.Constant) and isinstance(n.value, str) and n.lineno != n.end_lineno for n in ast.walk(tree)
    ):
        text = ast.unparse(tree)  # a string over several lines would be indented with the rest
        tree = ast.parse(text)
    edits = sorted(set(_edits(tree, recipe)), reverse=True)
    lines = text.encode().split(b"\n")
    for (line, column, end_line, end_column), new in edits:
        if line != end_line:
            lines[line - 1 : end_line] = [lines[line - 1][:column] + new.encode() + lines[end_line - 1][end_column:]]
        else:
            lines[line - 1] = lines[line - 1][:column] + new.encode() + lines[line - 1][end_column:]
    return b"\n".join(lines).decode()


def _is_long_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.lineno != node.end_lineno


_Edit = tuple[tuple[int, int, int, int], str]


def _edits(tree: ast.AST, recipe: Recipe) -> Iterator[_Edit]:
    inside = {id(v) for n in ast.walk(tree) if isinstance(n, ast.JoinedStr) for v in ast.walk(n)}
    for node in ast.walk(tree):
        if id(node) in inside:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in recipe.files:
            yield _span(node), f'str(path("{recipe.files[node.value]}"))'
        elif isinstance(node, ast.Expr) and _is_print(node.value):
            yield _span(node), _logged(node.value)
        elif recipe.randomness == "local":
            yield from _random_edits(node)


def _span(node: ast.expr | ast.stmt) -> tuple[int, int, int, int]:
    return node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or node.col_offset


def _is_print(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"


def _logged(node: ast.expr) -> str:
    assert isinstance(node, ast.Call)
    said = [ast.unparse(a) for a in node.args]
    marks = " ".join([_MARK] * len(said))
    return f'logger.info("{marks}", {", ".join(said)})' if said else "pass"


def _random_edits(node: ast.AST) -> Iterator[_Edit]:
    if not isinstance(node, ast.Call):
        return
    name = ast.unparse(node.func)
    if name in ("np.random.seed", "numpy.random.seed"):
        seed = ast.unparse(node.args[0]) if node.args else ""
        yield _span(node), f"rng = {name.partition('.')[0]}.random.RandomState({seed})"
    elif isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) in ("np.random", "numpy.random"):
        if node.func.attr not in ("default_rng", "RandomState", "Generator"):
            yield _span(node.func.value), "rng"
    elif _DRAWING.match(name.rpartition(".")[2]) and not any(k.arg == "random_state" for k in node.keywords):
        end = (node.end_lineno or node.lineno, (node.end_col_offset or 1) - 1)
        comma = ", " if node.args or node.keywords else ""
        yield (*end, *end), f"{comma}random_state=rng"


def seeds(statements: Sequence[Statement]) -> frozenset[str]:
    """The global seeds that are set at the top level."""
    return frozenset(
        name
        for s in statements
        for n in ast.walk(s.node)
        if isinstance(n, ast.Call) and (name := ast.unparse(n.func)) in SEEDS
    )


def _settings(recipe: Recipe) -> str:
    prefix = recipe.package.upper()
    defaults = "".join(f"    {name!r}: {path!r},\n" for path, name in recipe.files.items())
    return templates.SETTINGS.format(prefix=prefix, defaults=defaults)


def _project(recipe: Recipe) -> str:
    pins = "".join(f'  "{n}=={v}",\n' for n, v in recipe.pins.items())
    return templates.PROJECT.format(model=recipe.model, package=recipe.package, notebook=recipe.notebook, pins=pins)


def _readme(recipe: Recipe) -> str:
    prefix = recipe.package.upper()
    settings = [f"- `{prefix}_{name}`: default `{path}`\n" for path, name in recipe.files.items()]
    settings.append(f"- `{prefix}_MODEL_FILE`: where the model is saved, default `model.joblib`\n")
    return templates.README.format(
        model=recipe.model, package=recipe.package, notebook=recipe.notebook, settings="".join(settings)
    )


def _tests(recipe: Recipe) -> str:
    score = "" if recipe.scored is None else templates.TEST_SCORE.format(score=repr(recipe.scored))
    return templates.TESTS.format(package=recipe.package, score=score)
