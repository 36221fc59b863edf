"""What is to be proved: an ONNX model, and rows with the answers that the notebook's own model gives to them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np

from taxiway.app.build import step
from taxiway.app.build.options import DEFAULTS, Options
from taxiway.app.build.step import Packed
from taxiway.core import digest
from taxiway.core.errors import Refused
from taxiway.notebook import candidates, rebuild, rows, torch_calls
from taxiway.notebook.candidates import Candidate
from taxiway.notebook.findings import Finding
from taxiway.notebook.rebuild import Rebuilt
from taxiway.notebook.session import Run
from taxiway.proof import export, made, ort, parity, pytorch, ready, tensors
from taxiway.proof.cases import Array, Case, merged
from taxiway.proof.split import Split, splits
from taxiway.proof.tensors import Signature

# So many rows show what comes out of a Python step.
_LOOKED_AT: Final = 10_000


@dataclass(frozen=True, slots=True, eq=False)
class MadeCase:
    """Made rows of one kind with the original's answers; `refused` more are such that the original fails on them."""

    kind: str
    case: Case | None
    refused: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """`model` are the ONNX bytes, `cases` the notebook's rows; `training` is the digest of what it was fitted on."""

    model: bytes
    cases: tuple[Case, ...]
    columns: Mapping[str, tuple[str, ...]]
    dims: Mapping[str, tuple[int, ...]]
    training: str
    made: tuple[MadeCase, ...] = ()
    allowed: Mapping[str, tuple[Any, ...]] | None = None
    remarks: tuple[Finding, ...] = ()
    step: Packed | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One way to serve a model; `python` are the classes that stay Python in front of the ONNX part."""

    subject: Callable[[], Subject]
    python: tuple[str, ...] = ()


def attempts(candidate: Candidate, run: Run, options: Options = DEFAULTS) -> Iterator[Attempt]:
    """The ways to serve `candidate`, the best first; ONNX alone, then behind ever longer Python steps.

    Raises `Refused`, as each attempt does, when it cannot be exported or nothing is known to be right.
    """
    if candidate.is_torch:
        yield Attempt(lambda: _from_torch(candidate, run))
    elif candidate.is_onnx:
        yield Attempt(lambda: _from_onnx(candidate, run))
    else:
        export.refuse(candidate.model)
        rebuilt = rebuild.rebuild(candidate, run.calls)
        yield Attempt(lambda: _converted(candidate, rebuilt, options))
        for split in splits(rebuilt.estimator) if options.python_step else ():
            yield Attempt(partial(_stepped, candidate, rebuilt, options, split), split.names)


def _stepped(candidate: Candidate, rebuilt: Rebuilt, options: Options, split: Split) -> Subject:
    """The front of a split as a Python step, the rest as ONNX."""
    rows_asked = _asked_rows(candidate, rebuilt)
    inputs, asked = rows_asked.inputs, rows_asked.asked
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        between = tensors.dense(split.front.transform(rows.take(asked, range(min(len(asked), _LOOKED_AT)))))
    if between.ndim > 2 or (hasattr(between, "iloc") and not rows.columns(between)):
        raise Refused(
            f"{' + '.join(split.names)} gives no table: no matrix, named columns or texts", code="not-servable"
        )
    inner = tensors.signature(split.rest, between, rows_asked.shape.outputs)
    _, gives = next(export.conversions(split.rest, inner, opset=options.opset, ml_opset=options.ml_opset))
    packed = step.pack(split.front, asked, inputs, gives, Path.cwd())
    cases = _cases(rows_asked, inputs, options)
    conversions = export.conversions(split.rest, inner, opset=options.opset, ml_opset=options.ml_opset)
    with step.running(packed) as running:
        model = _nearest(conversions, cases.all, lambda data: step.Stepped(running, data), options)
        packed = replace(packed, requirements=step.requirements(running.used()))
    remarks = (*_rounding(candidate, cases.exact, cases.case), *_failing(candidate, cases.made, stepped=True))
    return replace(_subject(model, rebuilt, rows_asked, cases), remarks=remarks, step=packed)


def _converted(candidate: Candidate, rebuilt: Rebuilt, options: Options) -> Subject:
    """All of it as ONNX."""
    rows_asked = _asked_rows(candidate, rebuilt)
    estimator, inputs = rebuilt.estimator, rows_asked.inputs
    _, kept = next(export.conversions(estimator, inputs, opset=options.opset, ml_opset=options.ml_opset))
    cases = _cases(rows_asked, kept, options)
    conversions = export.conversions(estimator, inputs, opset=options.opset, ml_opset=options.ml_opset)
    model = _nearest(conversions, cases.all, ort.Served, options)
    unused = tuple(i.name for i in inputs if i not in kept)
    remarks = (
        *_rounding(candidate, cases.exact, cases.case),
        *_unused(candidate, unused),
        *_failing(candidate, cases.made),
    )
    return replace(_subject(model, rebuilt, rows_asked, cases), remarks=remarks)


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    """The notebook's rows: as they are, and as requests carry them."""

    estimator: Any
    shape: export.Shape
    inputs: Signature
    table: Any
    asked: Any
    allowed: Mapping[str, tuple[Any, ...]]


@dataclass(frozen=True, slots=True, eq=False)
class _Cases:
    """The original's answers: to the rows as requests carry them, as they are, and to made ones."""

    kept: Signature
    case: Case
    exact: Case
    made: tuple[MadeCase, ...]

    @property
    def all(self) -> list[Case]:
        """What a conversion is judged by."""
        return [self.case, *(m.case for m in self.made if m.case is not None)]


def _asked_rows(candidate: Candidate, rebuilt: Rebuilt) -> _Asked:
    estimator, table = rebuilt.estimator, rebuilt.table(rebuilt.rows)
    shape = export.shape(estimator)
    inputs = tensors.signature(estimator, table, shape.outputs)
    _within_float32(candidate, inputs, table)
    # Requests carry float32, so that is what the original is asked as well.
    asked = tensors.as_asked(inputs, table)
    return _Asked(estimator, shape, inputs, table, asked, tensors.allowed(estimator, inputs))


def _cases(given: _Asked, kept: Signature, options: Options) -> _Cases:
    def ask(table: Any) -> Case:
        return export.case(given.estimator, tensors.feeds(kept, table), table)

    exact = export.case(given.estimator, tensors.feeds(kept, given.asked), given.table)
    extra = made.made(kept, given.asked, options.made_rows) if options.made_rows else ()
    tried = tuple(_tried(m, _permitted(tensors.feeds(given.inputs, m.table), given.allowed), ask) for m in extra)
    return _Cases(kept, ask(given.asked), exact, tried)


def _subject(model: bytes, rebuilt: Rebuilt, given: _Asked, cases: _Cases) -> Subject:
    names = {i.name for i in cases.kept}
    return Subject(
        model=model,
        cases=(cases.case,),
        columns={tensors.WHOLE: rebuilt.names, "probabilities": given.shape.classes},
        dims={},
        training=digest.of_bytes(b"\n".join(rows.keys(rebuilt.train))),
        made=cases.made,
        allowed={n: v for n, v in given.allowed.items() if n in names},
    )


class _Runs(Protocol):
    def run(self, feeds: Mapping[str, Array]) -> dict[str, Array]: ...


def _nearest(
    conversions: Iterator[tuple[bytes, Signature]],
    cases: Sequence[Case],
    serve: Callable[[bytes], _Runs],
    options: Options,
) -> bytes:
    """The first conversion that answers all rows alike, else the one that errs on the fewest."""
    limits = parity.tolerance(cases, atol=options.atol, rtol=options.rtol)
    best: tuple[int, bytes] | None = None
    for model, _ in conversions:
        served = serve(model)
        wrong = sum(parity.compare([c], [served.run(c.feeds)], limits).offending_rows for c in cases)
        if best is None or wrong < best[0]:
            best = (wrong, model)
        if not wrong:
            break
    assert best is not None
    return best[1]


def _within_float32(candidate: Candidate, inputs: Signature, table: Any) -> None:
    beyond = tensors.beyond_float32(inputs, table)
    if beyond:
        raise Refused(
            f"{candidate.label}: the rows hold numbers beyond what a request can carry (float32, up to 3.4e38) in "
            f"{', '.join(beyond)}.",
            "What to do: scale such a column in the data itself, before the model and its pipeline see it.",
            code="beyond-float32",
        )


def _permitted(feeds: Mapping[str, Array], allowed: Mapping[str, tuple[Any, ...]]) -> list[int]:
    """The rows whose values the contract lets through."""
    count = len(next(iter(feeds.values())))
    known = {name: frozenset(values) for name, values in allowed.items()}
    return [i for i in range(count) if all(feeds[n][i, 0] in values for n, values in known.items())]


def _tried(given: made.Made, permitted: Sequence[int], ask: Callable[[Any], Case]) -> MadeCase:
    """The original's answers to the made rows; where it fails on some, to the others."""
    table = rows.take(given.table, permitted)
    if not permitted:
        return MadeCase(given.kind, None)
    try:
        return MadeCase(given.kind, ask(table))
    except Exception:  # whatever a model says to rows it was not made for
        answered = [case for i in range(len(permitted)) if (case := _alone(rows.take(table, [i]), ask)) is not None]
        return MadeCase(given.kind, merged(answered)[0] if answered else None, len(permitted) - len(answered))


def _alone(row: Any, ask: Callable[[Any], Case]) -> Case | None:
    try:
        return ask(row)
    except Exception:
        return None


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


def _unused(candidate: Candidate, names: tuple[str, ...]) -> tuple[Finding, ...]:
    if not names:
        return ()
    message = f"the model does not look at {', '.join(names)}; callers need not send that"
    return (Finding("unused-column", candidate.cell, 1, message),)


def _failing(candidate: Candidate, tried: Sequence[MadeCase], *, stepped: bool = False) -> tuple[Finding, ...]:
    failing = [f"{m.refused} of kind {m.kind}" for m in tried if m.refused]
    if not failing:
        return ()
    then = "and so will the service" if stepped else "where the service will answer"
    message = (
        f"{candidate.class_name} fails on rows that callers can send ({', '.join(failing)}), {then}; "
        "forbid such values in the contract (taxiway.yaml)"
    )
    return (Finding("fails-on-input", candidate.cell, 1, message),)


def _from_onnx(candidate: Candidate, run: Run) -> Subject:
    data = candidates.onnx_bytes(candidate.owner)
    assert data is not None
    model = ready.ready(data)
    sessions = {id(c.owner): c.owner for c in run.calls if c.method == "run"}
    same = {key for key, owner in sessions.items() if candidates.onnx_bytes(owner) == data}
    mine = (c for c in run.calls if id(c.owner) in same)
    runs = [(c.rows["feeds"], c.rows["outputs"], c.result) for c in mine]
    return Subject(model.model, merged(ready.cases(model, runs)), {}, model.dims, digest.of_bytes(data))


def _from_torch(candidate: Candidate, run: Run) -> Subject:
    asked = _asked(candidate, run)
    module = pytorch.frozen(candidate.owner)
    found = merged(pytorch.cases(module, asked))
    _as_recorded(candidate, run, module)
    exported = pytorch.export(module, asked, scripted=torch_calls.is_scripted(candidate.owner))
    model = _with_free_batch(candidate, exported.SerializeToString())
    extra = tuple(_made_tensors(case, lambda feeds: pytorch.cases(module, [feeds])[0]) for case in found)
    weights = digest.of_bytes(b"".join(v.detach().cpu().numpy().tobytes() for v in module.state_dict().values()))
    return Subject(model.model, found, {}, model.dims, weights, tuple(m for m in extra if m is not None))


def _with_free_batch(candidate: Candidate, data: bytes) -> ready.Ready:
    try:
        return ready.ready(data)
    except Refused as error:
        if error.code != "fixed-batch":
            raise
        raise Refused(
            f"{candidate.label}: {candidate.class_name} answers only as many rows as it was exported with.",
            "What to do: compute on all rows at once; a Python loop over the rows in forward, or a size written down "
            "as a number, fixes the batch.",
            code="fixed-batch",
        ) from error


def _asked(candidate: Candidate, run: Run) -> list[dict[str, Array]]:
    """What the notebook asked the module: in evaluation mode, else (never evaluated) while it was trained."""
    mine = [c for c in run.calls if c.owner is candidate.owner and c.method == torch_calls.METHOD]
    known = [c for c in mine if c.rows["inputs"] and c.result]
    evaluated = [c for c in known if not c.rows["training"]] or known
    if not evaluated:
        why = "is never called on tensors alone" if mine else "is never called"
        raise Refused(
            f"{candidate.label}: the module {why}, so no right answers are known.",
            "What to do: call it in the notebook on some rows: model.eval(); model(x). Every argument of forward must "
            "be a tensor whose first axis is the row.",
            code="no-samples",
        )
    found, rows_left = [], torch_calls.KEPT_ROWS
    for call in reversed(evaluated):
        feeds = {n: v[:rows_left] for n, v in call.rows["inputs"].items()}
        if len({len(v) for v in feeds.values()}) != 1:
            raise Refused(
                f"{candidate.label}: the first axis of the module's inputs is not the row: they have "
                f"{', '.join(f'{n} {len(v)}' for n, v in feeds.items())} of them",
                code="batch-dependent",
            )
        found.append(feeds)
        rows_left -= len(next(iter(feeds.values())))
        if rows_left <= 0:
            break
    return found[::-1]


def _as_recorded(candidate: Candidate, run: Run, module: Any) -> None:
    """The module still says what it said when the notebook last evaluated it."""
    mine = [c for c in run.calls if c.owner is candidate.owner and c.method == torch_calls.METHOD]
    last = mine[-1] if mine else None
    if last is None or last.rows["training"] or not last.rows["inputs"] or not last.result:
        return
    got = pytorch.answers(module, last.rows["inputs"])
    if any(
        not np.allclose(got[n], v, rtol=1e-4, atol=1e-5, equal_nan=True) for n, v in last.result.items() if n in got
    ):
        raise Refused(
            f"{candidate.label}: a copy of the module in evaluation mode does not answer what the notebook's last call "
            f"(cell {last.cell}) gave.",
            "What to do: evaluate with model.eval() and fixed weights; draw no random numbers in forward.",
            code="rebuild-differs",
        )


def _made_tensors(case: Case, ask: Callable[[Mapping[str, Array]], Case]) -> MadeCase | None:
    """The same rows with their numbers negated, halved and put to zero."""
    floats = [n for n, v in case.feeds.items() if v.dtype.kind == "f"]
    if not floats:
        return None
    part = case.take(range(min(case.rows, 64)))
    fed = [
        {n: v * v.dtype.type(factor) if n in floats else v for n, v in part.feeds.items()} for factor in (-1, 0.5, 0)
    ]
    try:
        return MadeCase("edge", merged([ask(feeds) for feeds in fed])[0])
    except Exception:  # whatever a model says to rows it was not made for
        return MadeCase("edge", None, 3 * part.rows)
