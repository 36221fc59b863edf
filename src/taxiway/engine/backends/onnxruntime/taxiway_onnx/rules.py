"""Which values a request may bring, beyond types and dims; and what is said of the first that it may not.

A rule looks at all values of one tensor at once and marks those that break it, so that a whole batch is judged as
cheaply as a request. Only when a batch is not clean is each of its requests judged for itself. `parameter.py` makes
the rules of a model, `words.py` puts a broken one into a sentence; numpy is all that is needed here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import numpy as np

from . import words

Feed: TypeAlias = Mapping[str, np.ndarray]


class BadRequest(Exception):
    """The caller's mistake; the message says which, and what is accepted."""


class Rule(Protocol):
    """What is asked of the values of one tensor."""

    @property
    def tensor(self) -> str:
        """The input's name."""

    @property
    def accepted(self) -> Sequence[str]:
        """What each column accepts, as half a sentence; a single one where they are all alike."""

    def bad(self, values: np.ndarray) -> np.ndarray:
        """Which values break the rule, in the shape of `values`."""


@dataclass(frozen=True)
class Finite:
    """Neither NaN nor infinities."""

    tensor: str
    accepted: Sequence[str] = ("only finite numbers are accepted",)

    def bad(self, values: np.ndarray) -> np.ndarray:
        return np.asarray(~np.isfinite(values))


@dataclass(frozen=True)
class NoInfinity:
    """NaN perhaps, infinities not."""

    tensor: str
    accepted: Sequence[str] = ("infinities are not accepted",)

    def bad(self, values: np.ndarray) -> np.ndarray:
        return np.asarray(np.isinf(values))


@dataclass(frozen=True, eq=False)
class NanOnly:
    """NaN only where `nullable` (one entry for each column, or a single one)."""

    tensor: str
    accepted: Sequence[str]
    nullable: np.ndarray

    def bad(self, values: np.ndarray) -> np.ndarray:
        return np.asarray(np.isnan(values) & ~self.nullable)


@dataclass(frozen=True, eq=False)
class Range:
    """Inclusive bounds in the type of the tensor, one for each column or a single one.

    NaN is within every range: whether it is accepted is another rule's matter.
    """

    tensor: str
    accepted: Sequence[str]
    least: np.ndarray
    greatest: np.ndarray

    def bad(self, values: np.ndarray) -> np.ndarray:
        return np.asarray((values < self.least) | (values > self.greatest))


@dataclass(frozen=True, eq=False)
class Numbers:
    """Only `members`, in one column or (None) in all. NaN is another rule's matter."""

    tensor: str
    accepted: Sequence[str]
    column: int | None
    members: np.ndarray

    def bad(self, values: np.ndarray) -> np.ndarray:
        found = np.zeros(values.shape, bool)
        where = ... if self.column is None else (..., self.column)
        picked = values[where]
        strange = np.isin(picked, self.members, invert=True)
        found[where] = strange & ~np.isnan(picked) if values.dtype.kind == "f" else strange
        return found


@dataclass(frozen=True, eq=False)
class Texts:
    """Only `members`, in one column or (None) in all."""

    tensor: str
    accepted: Sequence[str]
    column: int | None
    members: frozenset[str]

    def bad(self, values: np.ndarray) -> np.ndarray:
        found = np.zeros(values.shape, bool)
        where = ... if self.column is None else (..., self.column)
        picked = values[where]
        strange = (text not in self.members for text in picked.reshape(-1))
        found[where] = np.fromiter(strange, bool, picked.size).reshape(picked.shape)
        return found


@dataclass(frozen=True)
class MaxBytes:
    """Texts of at most `limit` bytes in UTF-8."""

    tensor: str
    accepted: Sequence[str]
    limit: int

    def bad(self, values: np.ndarray) -> np.ndarray:
        long = (self._long(text) for text in values.reshape(-1))
        return np.fromiter(long, bool, values.size).reshape(values.shape)

    def _long(self, text: str) -> bool:
        # A character has 4 bytes at most, so that only texts near the limit need to be encoded.
        return len(text) * 4 > self.limit and len(text.encode("utf-8", "surrogatepass")) > self.limit


@dataclass(frozen=True)
class Rules:
    """`values` in the order they are asked; the rest by tensor.

    `columns` names the last axis; `open_dims` are the axes (batch axis counted) that the dims leave open, and
    `max_length` bounds them; `same_length` is the tensor whose open dim must be as long.
    """

    values: tuple[Rule, ...] = ()
    max_length: Mapping[str, int] = field(default_factory=dict)
    same_length: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)
    open_dims: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


def clean(rules: Rules, feed: Feed) -> bool:
    """Does `feed` keep the rules? Cheap: asked once for a whole batch."""
    return _broken(rules, feed) is None


def enforce(rules: Rules, feed: Feed) -> None:
    """Raise `BadRequest` for the first value of one request that breaks a rule."""
    reason = _broken(rules, feed)
    if reason is not None:
        raise BadRequest(reason)


def _broken(rules: Rules, feed: Feed) -> str | None:
    """What is wrong with the first value that breaks a rule; None when there is none."""
    return next(_lengths(rules, feed), None) or next(_values(rules, feed), None)


def _lengths(rules: Rules, feed: Feed) -> Iterator[str]:
    for name, limit in rules.max_length.items():
        for axis in rules.open_dims[name] if name in feed else ():
            got = feed[name].shape[axis]
            if got > limit:
                yield f"input '{name}' has {got} values along axis {axis}; at most {limit} are accepted"
    for name, other in rules.same_length.items():
        if name in feed and other in feed:
            mine, theirs = (feed[n].shape[rules.open_dims[n][0]] for n in (name, other))
            if mine != theirs:
                yield f"input '{name}' has {mine} values and '{other}' has {theirs}; equally many are accepted"


def _values(rules: Rules, feed: Feed) -> Iterator[str]:
    for rule in rules.values:
        if rule.tensor in feed:
            bad = rule.bad(feed[rule.tensor])
            if bad.any():
                yield _sentence(rule, feed[rule.tensor], bad, rules.columns.get(rule.tensor, ()))


def _sentence(rule: Rule, values: np.ndarray, bad: np.ndarray, names: Sequence[str]) -> str:
    where = [int(k) for k in np.argwhere(bad)[0]]
    others = int(bad.sum()) - 1
    more = f" (and {others} more)" if others else ""
    accepted = rule.accepted[where[-1] if len(rule.accepted) > 1 else 0]
    found = f"{words.place(where, names)} is {words.value(values[tuple(where)])}{more}"
    return f"input '{rule.tensor}': {found}; {accepted} (counting from 0)"
