"""The process that runs a notebook and writes what was proved: `python -m taxiway.app.build.process SPEC`.

Runs in the notebook's folder under a guard (`guard.py`), and ends when that does; what the notebook prints goes
to the log, what this process has to say goes through a pipe of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from taxiway import __version__
from taxiway.app.build.inputs import Reads
from taxiway.app.build.options import Options
from taxiway.app.build.prove import finite
from taxiway.app.build.speak import Progress, speak
from taxiway.app.build.subject import Subject
from taxiway.app.build.ways import settled
from taxiway.core.errors import Refused
from taxiway.notebook import candidates, findings, imports, outputs, read, session
from taxiway.notebook.candidates import Candidate
from taxiway.notebook.findings import Finding
from taxiway.notebook.read import Notebook
from taxiway.notebook.session import Run

_ALWAYS: Final = ("numpy", "onnxruntime")


def main(spec: dict[str, Any]) -> int:
    """Build; 0 done, 1 refused, 3 a bug."""
    return speak(spec, lambda progress: _build(spec, progress))


def _build(spec: dict[str, Any], progress: Progress) -> None:
    path, out, options = Path(spec["notebook"]), Path(spec["out"]), Options.from_json(spec["options"])
    notebook = read.read(path)
    reads = Reads(Path.cwd(), ignored=out)
    total = len(notebook.cells)
    run = session.run(notebook, lambda cell: progress(f"cell {cell.number} of {total}"))
    inputs = dict(reads.inputs)
    candidate = candidates.choose(candidates.candidates(run), spec["model"], path.name)
    progress(f"model {candidate.label}: {candidate.class_name}")
    what, evidence = settled(candidate, run, options, progress)
    errors = evidence["parity"]
    extra = sum(kind["rows"] for kind in errors["made"].values())
    progress(f"parity: {errors['rows']} rows and {extra} made ones, largest error {errors['max_abs_error']:.2g}")
    pins = imports.pinned(notebook, _ALWAYS + (() if candidate.is_onnx else ("scikit-learn",)))
    values = {
        **evidence,
        "report": [f.to_json() for f in _report(notebook, run, what)],
        "lineage": _lineage(notebook, candidate, what, pins),
        "inputs": inputs,
    }
    files = {
        "model.onnx": what.model,
        "requirements.txt": "".join(f"{n}=={v}\n" for n, v in pins.items()).encode(),
        **(what.step.files() if what.step else {}),
    }
    _write(out, files | {f"{name}.json": _text(value) for name, value in values.items()})


def _report(notebook: Notebook, run: Run, what: Subject) -> tuple[Finding, ...]:
    """The findings of a reader, of the run and of the export."""
    changed = (Finding("output-changed", c.cell, 1, c.message) for c in outputs.compare(notebook.cells, run.outputs))
    return findings.silenced(notebook, (*findings.raw(notebook), *changed, *what.remarks))


def _text(value: Any) -> bytes:
    return (json.dumps(value, sort_keys=True, indent=1, allow_nan=False) + "\n").encode()


def _write(out: Path, files: Mapping[str, bytes]) -> None:
    try:
        for name, data in files.items():
            (out / name).write_bytes(data)
    except OSError as error:
        raise Refused(f"the build cannot be written to {out.parent}: {error.strerror}", code="cannot-write") from error


def _lineage(notebook: Notebook, candidate: Candidate, what: Subject, pins: Mapping[str, str]) -> dict[str, Any]:
    return {
        "notebook": notebook.path.name,
        "notebook_digest": notebook.digest,
        "git_commit": _commit(notebook.path),
        "data_digest": what.training,
        "model": candidate.label,
        "class": candidate.class_name,
        "score": finite(candidate.score),
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
