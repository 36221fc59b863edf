"""The contract parameter of a model: which values a request may bring, beyond types and dims.

Written into config.pbtxt as
`parameters { key: "taxiway_contract" value { string_value: '{"finite": ["X"], "max_length": {"ids": 512}}' } }`
and optionally `"columns": {"X": ["age", ...]}` to name what is wrong. Only tensors of floats can be listed
under `finite`; `max_length` bounds the dims that the configuration leaves open (-1).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

PARAMETER = "taxiway_contract"


class BadRequest(Exception):
    """The caller's mistake; the message says which, and what is accepted."""


@dataclass(frozen=True)
class Rules:
    """`columns` names the last axis of a tensor; `open_dims` are the axes (batch axis counted) dims leave open."""

    finite: tuple[str, ...] = ()
    max_length: Mapping[str, int] = field(default_factory=dict)
    columns: Mapping[str, list[str]] = field(default_factory=dict)
    open_dims: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


def read(config: Mapping[str, Any]) -> Rules:
    """The rules in a model configuration (as the server hands it over, in JSON); raises ValueError."""
    text = config.get("parameters", {}).get(PARAMETER, {}).get("string_value", "{}")
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ValueError(f"parameter {PARAMETER} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ValueError(f"parameter {PARAMETER} must be a JSON object, not {text[:80]!r}")
    unknown = sorted(set(value) - {"finite", "max_length", "columns"})
    if unknown:
        raise ValueError(f"parameter {PARAMETER}: unknown key {unknown[0]!r}; known are finite, max_length, columns")
    offset = 1 if int(config.get("max_batch_size", 0)) > 0 else 0
    inputs = {i["name"]: i for i in config["input"]}
    return Rules(
        finite=_finite(value.get("finite", []), inputs),
        max_length=_max_length(value.get("max_length", {}), inputs),
        columns=_columns(value.get("columns", {}), inputs),
        open_dims={
            name: tuple(k + offset for k, d in enumerate(i["dims"]) if int(d) < 0) for name, i in inputs.items()
        },
    )


def _finite(value: Any, inputs: Mapping[str, Any]) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError(f"parameter {PARAMETER}: finite must be a list of input names")
    _known("finite", value, inputs)
    other = [n for n in value if inputs[n]["data_type"] not in ("TYPE_FP16", "TYPE_FP32", "TYPE_FP64")]
    if other:
        raise ValueError(
            f"parameter {PARAMETER}: finite names {other[0]!r}, which is {inputs[other[0]]['data_type']}, not floats"
        )
    return tuple(value)


def _max_length(value: Any, inputs: Mapping[str, Any]) -> dict[str, int]:
    whole = isinstance(value, dict) and all(type(v) is int and v > 0 for v in value.values())
    if not whole:
        raise ValueError(f"parameter {PARAMETER}: max_length must map input names to whole numbers above 0")
    _known("max_length", value, inputs)
    return dict(value)


def _columns(value: Any, inputs: Mapping[str, Any]) -> dict[str, list[str]]:
    if not isinstance(value, dict) or not all(isinstance(v, list) for v in value.values()):
        raise ValueError(f"parameter {PARAMETER}: columns must map input names to lists of names")
    _known("columns", value, inputs)
    return {name: [str(c) for c in names] for name, names in value.items()}


def _known(key: str, names: Collection[Any], inputs: Mapping[str, Any]) -> None:
    for name in names:
        if not isinstance(name, str) or name not in inputs:
            raise ValueError(f"parameter {PARAMETER}: {key} names {name!r}; the inputs are {', '.join(inputs)}")


def clean(rules: Rules, feed: Mapping[str, np.ndarray]) -> bool:
    """Does `feed` keep the rules? Cheap: asked once for a whole batch."""
    return all(bool(np.isfinite(feed[n]).all()) for n in rules.finite if n in feed) and not any(
        feed[n].shape[axis] > limit for n, limit in rules.max_length.items() if n in feed for axis in rules.open_dims[n]
    )


def enforce(rules: Rules, feed: Mapping[str, np.ndarray]) -> None:
    """Raise `BadRequest` for the first value of one request that breaks a rule."""
    for name, limit in rules.max_length.items():
        for axis in rules.open_dims[name] if name in feed else ():
            got = feed[name].shape[axis]
            if got > limit:
                raise BadRequest(f"input '{name}' has {got} values along axis {axis}; at most {limit} are accepted")
    for name in rules.finite:
        if name in feed and not np.isfinite(feed[name]).all():
            raise BadRequest(_not_finite(name, feed[name], rules.columns.get(name, [])))


def _not_finite(name: str, values: np.ndarray, columns: list[str]) -> str:
    bad = np.argwhere(~np.isfinite(values))
    where = [int(k) for k in bad[0]]
    value = values[tuple(where)]
    text = "NaN" if np.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    place = f"row {where[0]}" if where else "its value"
    if len(where) > 1:
        place += ", column " + ", ".join(map(str, where[1:]))
        if where[-1] < len(columns):
            place += f" ('{columns[where[-1]]}')"
    more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
    return f"input '{name}': {place} is {text}{more}; only finite numbers are accepted (counting from 0)"
