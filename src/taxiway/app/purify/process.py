"""The two processes behind `taxiway purify`: `python -m taxiway.app.purify.process SPEC`.

Both run in the notebook's environment. `study` runs the notebook and notes what the package must have (names of the
model and of the transformers before it, the files that were read) and must give (answers and score). `check` trains
with the package, in a process that knows nothing of the notebook, and compares.
"""

from __future__ import annotations

import importlib
import json
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np

from taxiway.app.build.inputs import Reads
from taxiway.app.build.speak import Progress, speak
from taxiway.core.errors import Refused
from taxiway.notebook import candidates, imports, read, rebuild, session, torch_calls
from taxiway.notebook.candidates import Candidate
from taxiway.notebook.session import Run
from taxiway.proof import pytorch

_ANSWERS = ("predict", "predict_proba")


def main(spec: dict[str, Any]) -> int:
    """Study or check; 0 done, 1 refused, 3 a bug."""
    work = _study if spec["work"] == "study" else _check
    return speak(spec, lambda progress: work(spec, progress))


def _study(spec: dict[str, Any], progress: Progress) -> None:
    path, out = Path(spec["notebook"]), Path(spec["out"])
    notebook = read.read(path)
    reads = Reads(Path.cwd(), ignored=out)
    run = session.run(notebook, lambda cell: progress(f"cell {cell.number} of {len(notebook.cells)}"))
    inputs = sorted(n for n, digest in reads.inputs.items() if digest is not None and not n.endswith(("/", ".py")))
    candidate = candidates.choose(candidates.candidates(run), spec["model"], path.name)
    if candidate.is_onnx:
        raise Refused(
            f"{candidate.label} is an ONNX model already; there is no training to take out of the notebook",
            code="no-training",
        )
    progress(f"model {candidate.label}: {candidate.class_name}")
    parts, rows, answers = _torch(candidate, run) if candidate.is_torch else _estimator(candidate, run)
    facts = {
        "steps": [_named(part, run, candidate) for part in parts],
        "cell": candidate.cell,
        "label": candidate.label,
        "class": candidate.class_name,
        "score": candidate.score,
        "score_cell": _score_cell(candidate, run),
        "files": inputs,
        "torch": candidate.is_torch,
        "pins": imports.pinned(notebook, () if candidate.is_torch else ("scikit-learn", "joblib")),
    }
    (out / "facts.json").write_text(json.dumps(facts))
    # Rows and answers never leave this folder, which this user alone can write to.
    (out / "answers.pickle").write_bytes(pickle.dumps({"rows": rows, "answers": answers}))


def _estimator(candidate: Candidate, run: Run) -> tuple[list[Any], Any, dict[str, Any]]:
    rebuilt = rebuild.rebuild(candidate, run.calls)
    table = rebuilt.table(rebuilt.rows)
    answers = {m: getattr(rebuilt.estimator, m)(table) for m in _ANSWERS if hasattr(rebuilt.estimator, m)}
    parts = [step for _, step in rebuilt.estimator.steps] if len(rebuilt.steps) > 1 else [candidate.owner]
    return [*parts[:-1], candidate.owner], table, answers


def _torch(candidate: Candidate, run: Run) -> tuple[list[Any], Any, dict[str, Any]]:
    asked = [
        c.rows["inputs"]
        for c in run.calls
        if c.owner is candidate.owner and c.method == torch_calls.METHOD and c.rows["inputs"]
    ]
    if not asked:
        raise Refused(f"{candidate.label}: the module is never called on tensors alone", code="no-samples")
    return [candidate.owner], asked[-1], pytorch.answers(pytorch.frozen(candidate.owner), asked[-1])


def _named(part: Any, run: Run, candidate: Candidate) -> dict[str, Any]:
    """The variable that holds `part` and the cell from which on it holds something else (None: never)."""
    mine = [b for b in run.bindings if b.thing is part]
    if not mine:
        raise Refused(
            f"{candidate.label}: the {type(part).__name__} that was fitted before the model has no name of its own.",
            "What to do: give it one, for instance scaler = StandardScaler(), or put both in one Pipeline.",
            code="nameless",
        )
    first = mine[0]
    later = [b.cell for b in run.bindings if b.name == first.name and b.thing is not part and b.cell > first.cell]
    return {"name": first.name, "class": type(part).__name__, "until": min(later, default=None)}


def _score_cell(candidate: Candidate, run: Run) -> int | None:
    cells = [c.cell for c in run.calls if c.owner is candidate.owner and c.method == "score"]
    return cells[-1] if cells else None


def _check(spec: dict[str, Any], progress: Progress) -> None:
    sys.path.insert(0, spec["package_folder"])
    out = Path(spec["out"])
    progress("train with the package in a clean process")
    try:
        model, metrics = importlib.import_module(f"{spec['package']}.train").train()
    except Exception as error:
        raise Refused(
            f"the package does not train: {type(error).__name__}: {str(error)[:300]}", code="differs"
        ) from error
    kept = pickle.loads((out / "answers.pickle").read_bytes())  # noqa: S301 - written by `study` a moment ago
    wrong = _differences(model, kept["rows"], kept["answers"])
    if wrong:
        raise Refused(*wrong, code="differs")
    (out / "metrics.json").write_text(json.dumps(metrics))


def _differences(model: Any, rows: Any, answers: dict[str, Any]) -> list[str]:
    got = (
        pytorch.answers(model, rows) if torch_calls.is_module(model) else {m: getattr(model, m)(rows) for m in answers}
    )
    wrong = []
    for name, want in answers.items():
        have, right = np.asarray(got[name]), np.asarray(want)
        near = right.dtype.kind == "f" and have.shape == right.shape
        same = np.isclose(have, right, rtol=1e-6, atol=1e-8, equal_nan=True) if near else np.atleast_1d(have == right)
        if not same.all():
            wrong.append(
                f"{name}: {int((~same).sum())} of {same.size} answers of the package differ from the notebook's"
            )
    return wrong


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
