"""The process that runs a notebook and writes what was proved: `python -m taxiway.app.build_process SPEC`.

Runs in the notebook's folder; what the notebook prints goes to the log, what this process has to say goes through a
pipe of its own. When the pipe called lifeline breaks, nobody waits for the result any more, and it ends.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from taxiway import __version__
from taxiway.core import digest
from taxiway.core.errors import Refused
from taxiway.notebook import candidates, findings, imports, read, rebuild, session
from taxiway.notebook.candidates import Candidate
from taxiway.notebook.read import Notebook
from taxiway.notebook.session import Run
from taxiway.proof import contract, export, golden, graph, ort, parity, profile, ready
from taxiway.proof.cases import Case, merged

_ALWAYS: Final = ("numpy", "onnxruntime")

Progress = Callable[[str], None]


def main(spec: dict[str, Any]) -> int:
    """Build; 0 done, 1 refused, 3 a bug."""
    events = os.fdopen(spec["events"], "w", buffering=1)

    def say(**what: Any) -> None:
        print(json.dumps(what), file=events, flush=True)

    threading.Thread(target=_watch, args=(spec["lifeline"],), daemon=True).start()
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


def _watch(lifeline: int) -> None:
    if os.read(lifeline, 1) == b"":
        os.killpg(0, signal.SIGKILL)


def _build(path: Path, wanted: str | None, out: Path, progress: Progress) -> None:
    notebook = read.read(path)
    opened = _record_opened(notebook.path.parent)
    total = len(notebook.cells)
    run = session.run(notebook, lambda cell: progress(f"cell {cell.number} of {total}"))
    candidate = candidates.choose(candidates.candidates(run), wanted, path.name)
    progress(f"model {candidate.label}: {candidate.class_name}")
    subject = _from_onnx(candidate, run) if candidate.is_onnx else _from_estimator(candidate, run)
    evidence = _proved(candidate, subject)
    errors = evidence["parity"]
    progress(f"parity: {errors['rows']} rows, largest error {errors['max_abs_error']:.2g}")
    pins = imports.pinned(notebook, _ALWAYS + (() if candidate.is_onnx else ("scikit-learn",)))
    (out / "model.onnx").write_bytes(subject.model)
    (out / "requirements.txt").write_text("".join(f"{n}=={v}\n" for n, v in pins.items()))
    files = {
        **evidence,
        "report": [f.to_json() for f in findings.findings(notebook)],
        "lineage": _lineage(notebook, candidate, subject, pins),
        "inputs": {p: digest.of_bytes(Path(p).read_bytes()) for p in sorted(opened) if Path(p).is_file()},
    }
    for name, value in files.items():
        text = json.dumps(value, sort_keys=True, indent=1, allow_nan=False)
        (out / f"{name}.json").write_text(text + "\n")


@dataclass(frozen=True, slots=True, eq=False)
class _Subject:
    """What is to be proved: the ONNX bytes, and rows with the answers of the notebook's own model."""

    model: bytes
    cases: tuple[Case, ...]
    columns: Mapping[str, tuple[str, ...]]
    dims: Mapping[str, tuple[int, ...]]
    training: str


def _from_estimator(candidate: Candidate, run: Run) -> _Subject:
    rebuilt = rebuild.rebuild(candidate, run.calls)
    # Requests carry float32, so that is what the original is asked as well.
    rows = rebuilt.rows.astype(np.float32).astype(np.float64)
    return _Subject(
        model=export.export(rebuilt.estimator, rows.shape[1]),
        cases=(export.case(rebuilt.estimator, rows, rebuilt.table(rows)),),
        columns={export.INPUT: rebuilt.names, "probabilities": export.shape(rebuilt.estimator).classes},
        dims={},
        training=digest.of_bytes(np.ascontiguousarray(rebuilt.train).tobytes()),
    )


def _from_onnx(candidate: Candidate, run: Run) -> _Subject:
    data = candidates.onnx_bytes(candidate.owner)
    assert data is not None
    model = ready.ready(data)
    mine = (c for c in run.calls if c.method == "run" and candidates.onnx_bytes(c.owner) == data)
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
        "build": {"candidate": candidate.label, "class": candidate.class_name, "score": candidate.score}
        | {"scalars": sorted(served.scalars)},
    }


def _lineage(notebook: Notebook, candidate: Candidate, subject: _Subject, pins: Mapping[str, str]) -> dict[str, Any]:
    return {
        "notebook": notebook.path.name,
        "notebook_digest": notebook.digest,
        "git_commit": _commit(notebook.path),
        "data_digest": subject.training,
        "model": candidate.label,
        "class": candidate.class_name,
        "score": candidate.score,
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


def _record_opened(folder: Path) -> set[str]:
    """Files under `folder` that are opened for reading from now on; what is installed is told by its version."""
    opened: set[str] = set()
    inside = str(folder) + os.sep

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event != "open" or not isinstance(args[0], str | os.PathLike):
            return
        mode = args[1] if isinstance(args[1], str) else "r"
        path = os.path.realpath(os.fspath(args[0]))
        if path.startswith(inside) and not set(mode) & set("wax") and not path.startswith(sys.prefix):
            opened.add(path)

    sys.addaudithook(hook)
    return opened


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
