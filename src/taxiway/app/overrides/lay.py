"""Lay what is said over the inferred contract, and hold it against what was recorded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from taxiway.app.overrides.evidence import ANSWERED, ANSWERED_MADE, PROVED, Evidence, against
from taxiway.app.overrides.fit import unfit
from taxiway.app.overrides.merge import free, merged
from taxiway.app.overrides.side import Rows, Side, Words
from taxiway.app.overrides.words import said
from taxiway.core.contract import Contract, Field
from taxiway.core.errors import Refused


def apply(contract: Contract, overrides: Mapping[str, Any] | None, proved: Rows = (), answers: Rows = ()) -> Contract:
    """`contract` with `overrides` (the `contract:` part of taxiway.yaml) laid over it.

    `proved` are inputs that must stay accepted, by tensor name, and `answers` the notebook's to each of them; without
    them the ranges and missing values that the contract itself has observed are asked. Raises `Refused` (code
    `contract`) with every mistake.
    """
    wrong: list[str] = []
    inputs, outputs = sides = _sides(contract, proved, answers)
    words = said(sides, overrides or {}, wrong)
    laid = replace(
        contract,
        inputs=tuple(_laid(inputs, words["inputs"], PROVED, wrong)),
        outputs=tuple(_laid(outputs, words["outputs"], ANSWERED, wrong)),
    )
    _refuse(wrong)
    return laid


def hold(contract: Contract, overrides: Mapping[str, Any], asked: Rows, answers: Rows) -> None:
    """Hold what is said of the outputs against the notebook's `answers` to made rows.

    `overrides` are such that `apply` has made `contract` of. Raises `Refused` as it does.
    """
    sides = _sides(contract, asked, answers)
    words = said(sides, overrides, [])["outputs"]
    side = sides[1]
    plain = {name: free(side.fields[name]) for name in words}
    _refuse([w for n, before in plain.items() for w in against(side, before, merged(before, words[n]), ANSWERED_MADE)])


def _sides(contract: Contract, asked: Rows, answers: Rows) -> tuple[Side, Side]:
    inputs, outputs = ({f.name: f for f in fields} for fields in (contract.inputs, contract.outputs))
    answered = asked if answers else ()
    return Side("inputs", inputs, inputs, asked, asked), Side("outputs", outputs, inputs, answers, answered)


def _laid(side: Side, words: Mapping[str, Words], evidence: Evidence, wrong: list[str]) -> Iterator[Field]:
    for name, field in side.fields.items():
        mistakes = list(unfit(side, field, words[name])) if name in words else []
        wrong += mistakes
        if name in words and not mistakes:
            made = merged(field, words[name])
            wrong += against(side, field, made, evidence)
            yield made
        else:
            yield field


def _refuse(wrong: list[str]) -> None:
    if wrong:
        raise Refused(*dict.fromkeys(wrong), code="contract")
