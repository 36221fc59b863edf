"""`taxiway purify`: study the notebook's run, take what the model depends on, write a package, prove it, keep it.

The least package is tried first: without the notebook's global seeds; then with a generator of its own in their place;
then with the seeds as they are, put back afterwards. The first that answers as the notebook does, on every row that
the notebook showed, is kept; when none does, nothing is written.
"""

from __future__ import annotations

import ast
import contextlib
import difflib
import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from taxiway.app.build import guarded
from taxiway.app.build.guarded import Progress, Task
from taxiway.app.build.interpreter import Interpreter
from taxiway.core.errors import Refused
from taxiway.notebook import findings, package, read, slices
from taxiway.notebook.effects import RANDOM
from taxiway.notebook.package import Randomness, Recipe
from taxiway.notebook.read import Notebook
from taxiway.notebook.slices import Statement

_MODULE: Final = "taxiway.app.purify.process"
_TIMEOUT_S: Final = 1800.0


@dataclass(frozen=True, slots=True)
class Purified:
    """The package's files by path, what was measured before and after, and the statements that were left out."""

    folder: Path
    recipe: Recipe
    files: Mapping[str, str]
    metrics: Mapping[str, tuple[float | None, float | None]]
    left: Sequence[Statement]
    diff: str


def purify(path: Path, out: Path, *, name: str, model: str | None, python: Interpreter, progress: Progress) -> Purified:
    """Write the package of `path` to `out`, which must not exist or be empty; raises `Refused` with the reasons."""
    notebook = read.read(path)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise Refused(f"{out} exists and is not empty; name another folder, or remove it", code="exists")
    all_of_them = slices.statements(notebook)
    with _writing(out):
        out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="taxiway-purify-") as folder:
        work = Path(folder)
        task = Task(_MODULE, path.absolute(), work, python, {"work": "study", "model": model})
        guarded.run(task, progress, _TIMEOUT_S)
        facts = json.loads((work / "facts.json").read_text())
        recipe, files, metrics = _first_right(notebook, all_of_them, facts, name, task, progress)
    with _writing(out):
        _put(out, files)
    left = [s for s in all_of_them if s not in recipe.taken]
    before_after = {"score": (facts["score"], metrics.get("score"))} if recipe.score else {}
    return Purified(out, recipe, files, before_after, left, difference(notebook, recipe, files))


@contextlib.contextmanager
def _writing(out: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Refused(
            f"the package cannot be written to {out}: {error.strerror or error}", code="cannot-write"
        ) from error


def _put(out: Path, files: Mapping[str, str]) -> None:
    """Write the package aside and rename it, so that it is there as a whole or not at all."""
    aside = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    try:
        _write(aside, files)
        aside.chmod(0o755)
        if out.exists():
            out.rmdir()
        aside.rename(out)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise


def _first_right(
    notebook: Notebook,
    all_of_them: Sequence[Statement],
    facts: dict[str, Any],
    name: str,
    task: Task,
    progress: Progress,
) -> tuple[Recipe, dict[str, str], dict[str, float]]:
    wrong: list[str] = []
    for randomness in _ways(all_of_them):
        recipe = _recipe(notebook, all_of_them, facts, name, randomness)
        if randomness == "none" and package.seeds(recipe.taken):
            continue  # the model itself draws from the global state
        files = package.files(recipe)
        _compiles(files)
        made = task.out / "package"
        shutil.rmtree(made, ignore_errors=True)
        with _writing(made):
            _write(made, files)
        more = {"work": "check", "package": recipe.package, "package_folder": str(made)}
        try:
            guarded.run(replace(task, more=more), progress, _TIMEOUT_S)
        except Refused as error:
            if error.code != "differs":
                raise
            wrong = [f"{_RANDOM_WORDS[randomness]}: {reason}" for reason in error.reasons]
            continue
        return recipe, files, json.loads((task.out / "metrics.json").read_text())
    raise Refused(
        f"{notebook.path.name}: no package gives what the notebook gives",
        *wrong,
        "What to do: give every step that draws random numbers a random_state of its own, and let no cell depend on "
        "what another one has changed in passing.",
        code="differs",
    )


_RANDOM_WORDS: Final[dict[Randomness, str]] = {
    "none": "without global seeds",
    "local": "with a generator of its own",
    "confined": "with the notebook's global seeds",
}


def _ways(all_of_them: Sequence[Statement]) -> tuple[Randomness, ...]:
    seeds = package.seeds(all_of_them)
    if not seeds:
        return ("none",)
    numpy_only = all(name in ("np.random.seed", "numpy.random.seed") for name in seeds)
    return ("none", "local", "confined") if numpy_only else ("none", "confined")


def _recipe(
    notebook: Notebook, all_of_them: Sequence[Statement], facts: dict[str, Any], name: str, randomness: Randomness
) -> Recipe:
    steps, cut = _steps(notebook, facts)
    known = [s for s in all_of_them if cut is None or s.cell < cut]
    score = _score(known, steps[-1][1], facts["score_cell"])
    wanted = {variable for _, variable in steps} | (_names_in(score) if score else set())
    if randomness != "none":
        wanted |= {RANDOM}
    taken = slices.sliced(known, wanted)
    missing = slices.undefined(taken)
    if missing:
        raise Refused(
            *(
                f"{notebook.path.name}: cell {s.cell}, line {s.line}: {variable!r} is never defined"
                for variable, s in missing
            ),
            code="undefined-name",
        )
    return Recipe(
        model=name,
        notebook=notebook.path.name,
        taken=taken,
        steps=steps,
        score=score,
        scored=facts["score"] if score else None,
        files=_files(taken, facts["files"]),
        pins=facts["pins"],
        randomness=randomness,
        is_torch=facts["torch"],
    )


def _steps(notebook: Notebook, facts: dict[str, Any]) -> tuple[list[tuple[str, str]], int | None]:
    """(step name, variable) from the raw rows to the model, and the cell from which one of them is another object."""
    ends = [s["until"] for s in facts["steps"] if s["until"] is not None]
    cut = min(ends, default=None)
    if cut is not None and cut <= facts["cell"]:
        rebound = next(s["name"] for s in facts["steps"] if s["until"] == cut)
        raise Refused(
            f"{notebook.path.name}: cell {cut} gives the name {rebound!r}, which the model needs, to another object.",
            "What to do: give each its own name.",
            code="rebound",
        )
    found: list[tuple[str, str]] = []
    for step in facts["steps"]:
        label = step["class"].lower()
        taken = sum(1 for other, _ in found if other.rstrip("0123456789") == label)
        found.append((f"{label}{taken + 1}" if taken else label, step["name"]))
    return found, cut


def _score(known: Sequence[Statement], model: str, cell: int | None) -> str | None:
    """The notebook's own expression for the model's last score."""
    calls = [
        node
        for s in known
        if s.cell == cell and not s.is_magic
        for node in ast.walk(s.node)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == f"{model}.score"
    ]
    return ast.unparse(calls[-1]) if calls else None


def _names_in(expression: str) -> set[str]:
    return {n.id for n in ast.walk(ast.parse(expression)) if isinstance(n, ast.Name)}


def _files(taken: Sequence[Statement], read_files: Sequence[str]) -> dict[str, str]:
    """The texts in the taken statements that name a file which was read, with the names of their settings."""
    known = {name.removeprefix("./") for name in read_files}
    texts = [
        n.value for s in taken for n in ast.walk(s.node) if isinstance(n, ast.Constant) and isinstance(n.value, str)
    ]
    found: dict[str, str] = {}
    for text in texts:
        if text in found or not (package.is_absolute(text) or _names_one_of(text, known)):
            continue
        name = package.variable(text)
        while name in found.values():
            name += "_"
        found[text] = name
    return found


def _names_one_of(text: str, known: set[str]) -> bool:
    plain = text.removeprefix("./")
    return bool(plain.strip()) and (plain in known or any(k.endswith(f"/{plain.lstrip('/~')}") for k in known))


def _compiles(files: Mapping[str, str]) -> None:
    for path, text in files.items():
        if path.endswith(".py"):
            compile(text, path, "exec")


def _write(folder: Path, files: Mapping[str, str]) -> None:
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


def difference(notebook: Notebook, recipe: Recipe, files: Mapping[str, str]) -> str:
    """What became of the notebook's code: a unified diff of all of it against train.py and features.py, and why."""
    before = [line for cell in notebook.cells for line in (f"# cell {cell.number}", *cell.source.splitlines())]
    train = files[f"{recipe.package}/train.py"].splitlines()
    begin = next(i for i, line in enumerate(train) if line.startswith("def train("))
    body = train[begin : train.index("def save(model: Any) -> None:")]
    features = files.get(f"{recipe.package}/features.py", "").splitlines()
    imports = [line for line in train if line.startswith(("import ", "from "))]
    after = [*imports, *features, *(line.removeprefix("    ") for line in body)]
    lines = difflib.unified_diff(before, after, recipe.notebook, f"{recipe.package}/train.py", lineterm="", n=2)
    taken = {(s.cell, s.line) for s in recipe.taken}
    why = [
        f"# cell {f.cell}, line {f.line}: {f.message}"
        for f in findings.findings(notebook)
        if (f.cell, f.line) not in taken or f.kind in ("absolute-path", "global-seed", "print")
    ]
    return "\n".join([*lines, "", "# why", *why, "# what is not there: the model does not depend on it"]) + "\n"
