"""The way in which a model is served: as ONNX alone where that is right, else with a Python step in front."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from taxiway.app.build.options import DEFAULTS, Options
from taxiway.app.build.prove import proved
from taxiway.app.build.subject import Subject, attempts
from taxiway.core.errors import Refused
from taxiway.notebook.candidates import Candidate
from taxiway.notebook.findings import Finding
from taxiway.notebook.session import Run

# What another way can mend: there is no conversion, or none that answers alike.
_MENDED: Final = {
    "no-conversion": "there is no conversion to ONNX for it",
    "parity": "converted to ONNX, it answers otherwise",
}


def settled(
    candidate: Candidate, run: Run, options: Options = DEFAULTS, progress: Callable[[str], None] = lambda _: None
) -> tuple[Subject, dict[str, Any]]:
    """The first way whose proof holds, with its evidence.

    Raises the `Refused` of ONNX alone when there is none, and what the last other way said.
    """
    first: Refused | None = None
    last: Refused | None = None
    for attempt in attempts(candidate, run, options):
        if first is not None:
            progress(f"{_MENDED[first.code]}; trying {' + '.join(attempt.python)} as a Python step")
        try:
            subject = attempt.subject()
            evidence = proved(candidate, subject, options)
        except Refused as error:
            if first is None and error.code not in _MENDED:
                raise
            first, last = first or error, error
            continue
        return (subject if first is None else _remarked(candidate, subject, attempt.python, first)), evidence
    assert first is not None
    if last is first or last is None:
        raise first
    raise Refused(*first.reasons, f"As a Python step in front: {last.reasons[0]}", code=first.code)


def _remarked(candidate: Candidate, subject: Subject, python: tuple[str, ...], why: Refused) -> Subject:
    message = (
        f"{' + '.join(python)} runs as a Python step in front of the ONNX model, with the notebook's own libraries: "
        f"{_MENDED[why.code]}"
    )
    return replace(subject, remarks=(Finding("python-step", candidate.cell, 1, message), *subject.remarks))
