"""The proof that a model answers as the notebook's own does, as evidence by name; what fails is refused."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from taxiway.app.build import step
from taxiway.app.build.options import DEFAULTS, Options
from taxiway.app.build.subject import MadeCase, Subject
from taxiway.app.overrides import lay
from taxiway.app.overrides.side import Rows
from taxiway.core.contract import Contract
from taxiway.core.errors import Refused
from taxiway.core.sample import Tensor
from taxiway.notebook.candidates import Candidate
from taxiway.proof import accept, contract, golden, graph, ort, parity, profile
from taxiway.proof.cases import Array, Case, tensor
from taxiway.proof.parity import Parity, Tolerance

# Kinds of made rows whose differences are told, not refused: nobody sends a float32 to its last bit.
_TOLERATED: Final = frozenset({"fine-tie"})
# Of the notebook's own rows, this many are asked again in the serving engine.
_REPLAYED: Final = 256

Served = step.Alone | step.Stepped


def proved(candidate: Candidate, subject: Subject, options: Options = DEFAULTS) -> dict[str, Any]:
    """Evidence by name; raises Refused with the offending rows when the export answers otherwise."""
    with step.served(subject.model, subject.step) as served:
        return _proved(candidate, subject, served, options)


def _proved(candidate: Candidate, subject: Subject, served: Served, options: Options) -> dict[str, Any]:
    limits = parity.tolerance(subject.cases, atol=options.atol, rtol=options.rtol)
    found = parity.compare(subject.cases, [served.run(c.feeds) for c in subject.cases], limits)
    if found.offences:
        raise _differs(candidate, found, "of the notebook's rows")
    if not all(parity.same_in_batches(c, served.run, limits) for c in subject.cases):
        raise Refused(
            f"{candidate.label}: the answer to a row depends on the rows that are asked with it",
            "What to do: make the first axis of every input and output the row, and let rows not influence each other.",
            code="batch-dependent",
        )
    rules = _contract(subject, options)
    made = {m.kind: _made(candidate, _within(m, rules), served, limits) for m in subject.made}
    extra = [case for _, case in made.values() if case is not None]
    if options.contract:
        lay.hold(rules, options.contract, *_recorded(extra))
    return {
        "contract": rules.to_json(),
        "golden": [g.to_json() for g in golden.golden(subject.cases, found.good, limits)],
        "parity": {
            **found.to_json(),
            "onnxruntime": ort.VERSION,
            "onnxruntime_least": graph.least_runtime(subject.model),
            "made": {kind: figures for kind, (figures, _) in made.items()},
            "empty": served.empty(subject.cases[0].feeds),
        },
        "replay": _replay(subject.cases, found, extra),
        "profile": profile.profile(subject.cases, subject.columns),
        "build": {"candidate": candidate.label, "class": candidate.class_name, "score": finite(candidate.score)}
        | {"scalars": sorted(served.scalars), "step": subject.step is not None},
    }


def _contract(subject: Subject, options: Options) -> Contract:
    """What the rows show, and what a person has said over it; raises `Refused` when that is against the rows."""
    inferred = contract.contract(subject.cases, subject.columns, subject.dims, subject.allowed)
    said = lay.apply(inferred, options.contract, *_recorded(subject.cases)) if options.contract else inferred
    return replace(said, max_batch=options.max_batch)


def _recorded(cases: Sequence[Case]) -> tuple[Rows, Rows]:
    """What the notebook's model was asked, and what it answered."""
    return [_samples(case.feeds) for case in cases], [_samples(case.expected) for case in cases]


def _samples(values: Mapping[str, Array]) -> dict[str, Tensor]:
    return {name: tensor(v) for name, v in values.items()}


def finite(score: float | None) -> float | None:
    """`score` where JSON can say it."""
    return score if score is not None and math.isfinite(score) else None


def _differs(candidate: Candidate, found: Parity, which: str) -> Refused:
    return Refused(
        f"{candidate.label}: the exported model does not answer what {candidate.class_name} answers "
        f"({found.offending_rows} of {found.rows} rows {which})",
        *map(str, found.offences),
        *_set_by_a_person(found.tolerance),
        "What to do: for trees, leave out the scaler (trees need none) or cast the data to float32 before fitting; "
        "for missing values, impute them first; for calibration, use sigmoid inside the pipeline; for text beyond "
        r"ASCII, use token_pattern=r'[a-zA-Z0-9_]+' and lowercase, unaccented text; otherwise choose an estimator "
        "that converts exactly.",
        code="parity",
    )


def _set_by_a_person(limits: Tolerance) -> list[str]:
    said = [f"{name} {getattr(limits, name):g} (not {was:g})" for name, was in limits.overridden.items()]
    return [f"taxiway.yaml allows {', '.join(said)}; labels must be the same in any case."] if said else []


def _made(
    candidate: Candidate, made: MadeCase, served: Served, limits: Tolerance
) -> tuple[dict[str, Any], Case | None]:
    """Figures of one kind of made rows, and those of them that are answered alike."""
    if made.case is None:
        return {"rows": 0, "refused": made.refused, "differing": 0, "flips": 0, "max_abs_error": 0.0}, None
    found = parity.compare([made.case], [served.run(made.case.feeds)], limits)
    if found.offences and made.kind not in _TOLERATED:
        raise _differs(candidate, found, f"made from the notebook's, of kind {made.kind}")
    figures = {
        "rows": found.rows,
        "refused": made.refused,
        "differing": found.offending_rows,
        "flips": found.flips,
        "max_abs_error": max(e.absolute for e in found.outputs.values()),
    }
    return figures, made.case.take(found.good[0])


def _within(made: MadeCase, rules: Contract) -> MadeCase:
    """Only the rows that the contract lets through: the engine never answers the others."""
    if made.case is None:
        return made
    kept = accept.accepted(rules, made.case.feeds)
    return MadeCase(made.kind, made.case.take(kept) if kept else None, made.refused)


def _replay(cases: Sequence[Case], found: Parity, made: Sequence[Case]) -> list[dict[str, Any]]:
    """Rows with their right answers for the serving engine: some of the notebook's, and all that were made."""
    mine = [case.take(_some(good, _REPLAYED // len(cases) + 1)) for case, good in zip(cases, found.good, strict=True)]
    return [
        {"inputs": _tensors(case.feeds), "outputs": _tensors(case.expected)} for case in (*mine, *made) if case.rows
    ]


def _some(good: Sequence[int], wanted: int) -> list[int]:
    return [good[i] for i in np.unique(np.linspace(0, len(good) - 1, wanted).astype(int))] if good else []


def _tensors(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tensor(v).to_json() for name, v in sorted(values.items())}
