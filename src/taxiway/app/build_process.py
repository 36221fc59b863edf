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
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from taxiway import __version__
from taxiway.core import digest
from taxiway.core.contract import Contract
from taxiway.core.errors import Refused
from taxiway.core.sample import Golden
from taxiway.core.tensor import TensorSpec
from taxiway.notebook import candidates, findings, imports, read, rebuild, session
from taxiway.notebook.candidates import Candidate
from taxiway.notebook.read import Notebook
from taxiway.notebook.session import Run
from taxiway.proof import export, golden, graph, parity, profile, shapes
from taxiway.proof.runtime import VERSION, Session

_BATCHES: Final = (1, 2, 5)
_BATCH_ROWS: Final = 200
_ALWAYS: Final = ("numpy", "onnxruntime")


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


def _build(path: Path, wanted: str | None, out: Path, progress: Any) -> None:
    notebook = read.read(path)
    opened = _record_opened(path)
    total = len(notebook.cells)
    run = session.run(notebook, lambda cell: progress(f"      cell {cell.number}/{total}"))
    candidate = candidates.choose(candidates.candidates(run), wanted, path.name)
    progress(f"      model {candidate.label}: {candidate.class_name}")
    proved = _prove_onnx(candidate, run) if candidate.is_onnx else _prove_estimator(candidate, run)
    progress(f"      parity: {proved['parity']['rows']} rows, largest error {proved['parity']['max_abs_error']:.2g}")
    model = proved.pop("model")
    (out / "model.onnx").write_bytes(model)
    pins = imports.pinned(notebook, _ALWAYS + (() if candidate.is_onnx else ("scikit-learn",)))
    (out / "requirements.txt").write_text("".join(f"{n}=={v}\n" for n, v in pins.items()))
    files = proved | {
        "report": [f.to_json() for f in findings.findings(notebook)],
        "lineage": _lineage(notebook, candidate, proved.pop("training"), pins),
        "build": {"candidate": candidate.label, "class": candidate.class_name, "score": candidate.score}
        | {"scalars": sorted(proved.pop("scalars"))},
        "inputs": {p: digest.of_bytes(Path(p).read_bytes()) for p in sorted(opened) if Path(p).is_file()},
    }
    for name in ("training", "scalars"):
        files.pop(name, None)
    for name, value in files.items():
        (out / f"{name}.json").write_bytes(
            json.dumps(value, sort_keys=True, indent=1, allow_nan=False).encode() + b"\n"
        )


def _prove_estimator(candidate: Candidate, run: Run) -> dict[str, Any]:
    """Rebuild, export, compare with the original on every row that the notebook showed it."""
    rebuilt = rebuild.rebuild(candidate, run.calls)
    exported = export.export(rebuilt.estimator, rebuilt.rows.shape[1])
    served = Session(exported.model)
    rows = rebuilt.rows
    feed = {export.INPUT: rows.astype(np.float32)}
    expected = export.answers(rebuilt.estimator, rebuilt.table(rows))
    got = served.run(feed)
    scalars = {name for name in exported.outputs if got[name].ndim == 1}
    figures = _parity(candidate, expected, _columns(expected, got), exported.opset)
    _same_in_batches(candidate, served, feed, got)
    spec = TensorSpec(export.INPUT, "FP32", (rows.shape[1],))
    outputs = [_output_spec(name, got[name]) for name in exported.outputs]
    contract = shapes.contract(
        [spec], outputs, {export.INPUT: [rows], **{k: [v] for k, v in got.items()}}, {export.INPUT: rebuilt.names}
    )
    columns = profile.spread(export.INPUT, rows, rebuilt.names)
    for name in exported.outputs:
        columns |= profile.spread(name, expected[name])
    return _files(exported.model, contract, golden.from_rows(feed, expected), figures, columns) | {
        "training": digest.of_bytes(np.ascontiguousarray(rebuilt.train).tobytes()),
        "scalars": scalars,
    }


def _prove_onnx(candidate: Candidate, run: Run) -> dict[str, Any]:
    """A model that the notebook built as ONNX: its recorded answers are the ones to match."""
    data = candidates.onnx_bytes(candidate.owner)
    assert data is not None
    model = graph.checked(_parsed(data))
    calls = [c for c in run.calls if _ran(c.owner, data) and isinstance(c.rows, dict) and isinstance(c.result, list)]
    if not calls:
        raise Refused(
            f"{candidate.label}: the notebook never runs the ONNX model, so no request and no answer is known",
            "run it on real requests: onnxruntime.InferenceSession(model.SerializeToString()).run(None, {...})",
            code="no-samples",
        )
    inputs = graph.tensors(graph.graph_inputs(model), "input")
    outputs = graph.tensors(model.graph.output, "output")
    tidy = graph.tidy(model)
    served = Session(tidy)
    samples: list[Golden] = []
    pairs = []
    for i, call in enumerate(calls):
        answers = dict(zip(served.outputs, map(np.asarray, call.result), strict=False))
        feed = {k: np.asarray(v) for k, v in call.rows.items()}
        if set(answers) == set(served.outputs):
            pairs.append((answers, served.run(feed), feed))
            samples.append(golden.request(f"call {i + 1}", feed, answers))
    every = [_flat(side, served.outputs, [p[n] for p in pairs]) for n, side in ((0, "want"), (1, "got"))]
    figures = _parity(candidate, every[0], every[1], graph.opset_of(model))
    seen: dict[str, list[Any]] = {}
    for answers, _, feed in pairs:
        for name, values in (*feed.items(), *answers.items()):
            seen.setdefault(name, []).append(values)
    contract = shapes.contract([s for s, _ in inputs], [s for s, _ in outputs], seen)
    columns = {n: np.concatenate([v.reshape(-1) for v in seen[n]]) for n in seen}
    return _files(tidy, contract, _chosen(samples), figures, columns) | {
        "training": digest.of_bytes(data),
        "scalars": {s.name for s, rank in (*inputs, *outputs) if rank == 1},
    }


def _files(
    model: bytes, contract: Contract, samples: tuple[Golden, ...], figures: Any, columns: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "model": model,
        "contract": contract.to_json(),
        "golden": [g.to_json() for g in samples],
        "parity": figures,
        "profile": profile.profile(columns),
    }


def _parity(candidate: Candidate, expected: Mapping[str, Any], got: Mapping[str, Any], opset: int) -> dict[str, Any]:
    found = parity.compare(expected, got)
    if not found.holds:
        raise Refused(
            f"{candidate.label}: the exported model does not answer what {candidate.class_name} answers",
            *found.offending,
            "trees on float64 data: cast it to float32 before fitting; missing values: impute them first; "
            "otherwise choose an estimator that converts exactly",
            code="parity",
        )
    return {**found.to_json(), "opset": opset, "onnxruntime": VERSION}


def _same_in_batches(candidate: Candidate, served: Session, feed: Mapping[str, Any], whole: Mapping[str, Any]) -> None:
    some = {k: v[:_BATCH_ROWS] for k, v in feed.items()}
    for size in _BATCHES:
        parts = served.run_in_batches(some, size)
        for name, values in parts.items():
            first = whole[name][:_BATCH_ROWS]
            same = (
                np.allclose(values, first, rtol=1e-5, atol=1e-6) if first.dtype.kind == "f" else (values == first).all()
            )
            if not same:
                raise Refused(
                    f"{candidate.label}: {name} depends on how many rows are asked at once ({size} or all)",
                    "the first axis must be the batch and rows must not influence each other",
                    code="batch-dependent",
                )


def _columns(expected: Mapping[str, Any], got: Mapping[str, Any]) -> dict[str, Any]:
    return {k: np.asarray(got[k]).reshape(np.shape(v)) for k, v in expected.items()}


def _flat(_side: str, names: list[str], runs: list[Mapping[str, Any]]) -> dict[str, Any]:
    """Outputs of runs of different lengths, as one column each, so that they can be compared together."""
    return {n: np.concatenate([np.asarray(r[n]).reshape(-1) for r in runs])[:, None] for n in names}


def _output_spec(name: str, values: Any) -> TensorSpec:
    dtype = "BYTES" if values.dtype.kind in "OUS" else ("INT64" if values.dtype.kind in "iu" else "FP32")
    return TensorSpec(name, dtype, tuple(values.shape[1:]) or (1,))


def _chosen(samples: list[Golden], most: int = 16) -> tuple[Golden, ...]:
    step = -(-len(samples) // most)
    return tuple(samples[::step])


def _ran(owner: Any, data: bytes) -> bool:
    return hasattr(owner, "run") and hasattr(owner, "get_inputs") and candidates.onnx_bytes(owner) == data


def _parsed(data: bytes) -> Any:
    import onnx

    return onnx.load_model_from_string(data)


def _lineage(notebook: Notebook, candidate: Candidate, training: str, pins: Mapping[str, str]) -> dict[str, Any]:
    return {
        "notebook": notebook.path.name,
        "notebook_digest": notebook.digest,
        "git_commit": _commit(notebook.path),
        "data_digest": training,
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


def _record_opened(notebook: Path) -> set[str]:
    """Files under the notebook's folder that are opened for reading from now on."""
    opened: set[str] = set()
    folder = str(notebook.parent) + os.sep
    closed = {"on": False}

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event != "open" or closed["on"] or not isinstance(args[0], str | os.PathLike):
            return
        mode = args[1] if isinstance(args[1], str) else "r"
        path = os.path.realpath(os.fspath(args[0]))  # type: ignore[arg-type]
        if path.startswith(folder) and not any(c in mode for c in "wax") and not path.startswith(sys.prefix):
            opened.add(path)

    sys.addaudithook(hook)
    return opened


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
