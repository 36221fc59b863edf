"""The process that runs a notebook and writes what was proved: `python -m taxiway.app.build.process SPEC`.

Runs in the notebook's folder under a guard (`guard.py`), and ends when that does; what the notebook prints goes
to the log, what this process has to say goes through a pipe of its own.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from taxiway import __version__
from taxiway.app.build.guard import die_with_parent
from taxiway.app.build.inputs import Reads
from taxiway.core import digest
from taxiway.core.errors import Refused
from taxiway.notebook import candidates, findings, imports, read, rebuild, session
from taxiway.notebook.candidates import Candidate
from taxiway.notebook.findings import Finding
from taxiway.notebook.read import Notebook
from taxiway.notebook.session import Run
from taxiway.proof import contract, export, golden, graph, ort, parity, profile, ready
from taxiway.proof.cases import Case, merged

_ALWAYS: Final = ("numpy", "onnxruntime")

Progress = Callable[[str], None]


def main(spec: dict[str, Any]) -> int:
    """Build; 0 done, 1 refused, 3 a bug."""
    die_with_parent()
    # What the notebook starts must not hold on to the pipe.
    os.set_inheritable(spec["events"], False)
    events = os.fdopen(spec["events"], "w", buffering=1)

    def say(**what: Any) -> None:
        print(json.dumps(what), file=events, flush=True)

    try:
        _build(Path(spec["notebook"]), spec["model"], Path(spec["out"]), lambda line: say(progress=line))
    except Refused as error:
        say(refused=list(error.reasons), code=error.code)
        return 1
    except Exception:
        traceback.print_exc()
        return 3
    say(done=True)
    return 0


def _build(path: Path, wanted: str | None, out: Path, progress: Progress) -> None:
    notebook = read.read(path)
    reads = Reads(Path.cwd(), ignored=out)
    total = len(notebook.cells)
    run = session.run(notebook, lambda cell: progress(f"cell {cell.number} of {total}"))
    inputs = dict(reads.inputs)
    candidate = candidates.choose(candidates.candidates(run), wanted, path.name)
    progress(f"model {candidate.label}: {candidate.class_name}")
    subject = _from_onnx(candidate, run) if candidate.is_onnx else _from_estimator(candidate, run)
    evidence = _proved(candidate, subject)
    errors = evidence["parity"]
    progress(f"parity: {errors['rows']} rows, largest error {errors['max_abs_error']:.2g}")
    pins = imports.pinned(notebook, _ALWAYS + (() if candidate.is_onnx else ("scikit-learn",)))
    values = {
        **evidence,
        "report": [f.to_json() for f in (*subject.remarks, *findings.findings(notebook))],
        "lineage": _lineage(notebook, candidate, subject, pins),
        "inputs": inputs,
    }
    files = {
        "model.onnx": subject.model,
        "requirements.txt": "".join(f"{n}=={v}\n" for n, v in pins.items()).encode(),
    }
    _write(out, files | {f"{name}.json": _text(value) for name, value in values.items()})


def _text(value: Any) -> bytes:
    return (json.dumps(value, sort_keys=True, indent=1, allow_nan=False) + "\n").encode()


def _write(out: Path, files: Mapping[str, bytes]) -> None:
    try:
        for name, data in files.items():
            (out / name).write_bytes(data)
    except OSError as error:
        raise Refused(f"the build cannot be written to {out.parent}: {error.strerror}", code="cannot-write") from error


@dataclass(frozen=True, slots=True, eq=False)
class _Subject:
    """What is to be proved: the ONNX bytes, and rows with the answers of the notebook's own model."""

    model: bytes
    cases: tuple[Case, ...]
    columns: Mapping[str, tuple[str, ...]]
    dims: Mapping[str, tuple[int, ...]]
    training: str
    remarks: tuple[Finding, ...] = ()


def _from_estimator(candidate: Candidate, run: Run) -> _Subject:
    rebuilt = rebuild.rebuild(candidate, run.calls)
    # Requests carry float32, so that is what the original is asked as well.
    with np.errstate(over="ignore"):
        rows = rebuilt.rows.astype(np.float32).astype(np.float64)
    if (np.isinf(rows) & np.isfinite(rebuilt.rows)).any():
        raise Refused(
            f"{candidate.label}: the rows hold numbers beyond what a request can carry (float32, up to 3.4e38).",
            "What to do: scale such a column in the data itself, before the model and its pipeline see it.",
            code="beyond-float32",
        )
    model = export.export(rebuilt.estimator, rows.shape[1])
    case = export.case(rebuilt.estimator, rows, rebuilt.table(rows))
    exact = export.case(rebuilt.estimator, rebuilt.rows, rebuilt.table(rebuilt.rows))
    return _Subject(
        model=model,
        cases=(case,),
        columns={export.INPUT: rebuilt.names, "probabilities": export.shape(rebuilt.estimator).classes},
        dims={},
        training=digest.of_bytes(np.ascontiguousarray(rebuilt.train).tobytes()),
        remarks=_rounding(candidate, exact, case),
    )


def _rounding(candidate: Candidate, exact: Case, rounded: Case) -> tuple[Finding, ...]:
    """What a reader should know when the notebook's model itself tells float64 rows from the same in float32."""
    found = parity.compare([exact], [rounded.expected], parity.tolerance([exact]))
    if not found.offences:
        return ()
    largest = max(e.absolute for e in found.outputs.values())
    message = (
        f"{candidate.class_name} answers {found.offending_rows} of {found.rows} rows otherwise (by up to "
        f"{largest:.2g}, {found.flips} labels) once they are float32, as requests are; cast the data to float32 "
        "before fitting"
    )
    return (Finding("rounding", candidate.cell, 1, message),)


def _from_onnx(candidate: Candidate, run: Run) -> _Subject:
    data = candidates.onnx_bytes(candidate.owner)
    assert data is not None
    model = ready.ready(data)
    sessions = {id(c.owner): c.owner for c in run.calls if c.method == "run"}
    same = {key for key, owner in sessions.items() if candidates.onnx_bytes(owner) == data}
    mine = (c for c in run.calls if id(c.owner) in same)
    runs = [(c.rows["feeds"], c.rows["outputs"], c.result) for c in mine]
    return _Subject(model.model, merged(ready.cases(model, runs)), {}, model.dims, digest.of_bytes(data))


def _proved(candidate: Candidate, subject: _Subject) -> dict[str, Any]:
    """Evidence by name; raises Refused with the offending rows when the export answers otherwise."""
    served = ort.Served(subject.model)
    limits = parity.tolerance(subject.cases)
    found = parity.compare(subject.cases, [served.run(c.feeds) for c in subject.cases], limits)
    if found.offences:
        raise Refused(
            f"{candidate.label}: the exported model does not answer what {candidate.class_name} answers "
            f"({found.offending_rows} of {found.rows} rows)",
            *map(str, found.offences),
            "What to do: for trees on float64 data, cast it to float32 before fitting; for missing values, impute "
            "them first; otherwise choose an estimator that converts exactly.",
            code="parity",
        )
    if not all(parity.same_in_batches(c, served.run, limits) for c in subject.cases):
        raise Refused(
            f"{candidate.label}: the answer to a row depends on the rows that are asked with it",
            "What to do: make the first axis of every input and output the row, and let rows not influence each other.",
            code="batch-dependent",
        )
    least = graph.least_runtime(subject.model)
    return {
        "contract": contract.contract(subject.cases, subject.columns, subject.dims).to_json(),
        "golden": [g.to_json() for g in golden.golden(subject.cases, found.good, limits)],
        "parity": {**found.to_json(), "onnxruntime": ort.VERSION, "onnxruntime_least": least},
        "profile": profile.profile(subject.cases, subject.columns),
        "build": {"candidate": candidate.label, "class": candidate.class_name, "score": _finite(candidate.score)}
        | {"scalars": sorted(served.scalars)},
    }


def _finite(score: float | None) -> float | None:
    return score if score is not None and math.isfinite(score) else None


def _lineage(notebook: Notebook, candidate: Candidate, subject: _Subject, pins: Mapping[str, str]) -> dict[str, Any]:
    return {
        "notebook": notebook.path.name,
        "notebook_digest": notebook.digest,
        "git_commit": _commit(notebook.path),
        "data_digest": subject.training,
        "model": candidate.label,
        "class": candidate.class_name,
        "score": _finite(candidate.score),
        "python": ".".join(map(str, sys.version_info[:3])),
        "taxiway": __version__,
        "libraries": dict(pins),
    }


def _commit(path: Path) -> str | None:
    try:
        done = subprocess.run(
            ["git", "rev-parse", "HEAD"],  # noqa: S607 - whatever git the person uses
            cwd=path.parent,
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
