"""Errors sorted by what the reader must do.

    TaxiwayError
    ├── Refused        what was asked cannot be done as things are; the reasons say what to change (exit 1)
    │   ├── Altered    stored bytes are not the bytes that were proved; nothing of them is served
    │   └── NotAccepted  the gateway or engine answered no; the state is what it was before
    └── Usage          the words of the command are wrong (exit 2)

A message says where we were, what happened and what to try. Anything else that reaches the command
line is a bug of ours (exit 3).
"""

from __future__ import annotations

from collections.abc import Sequence


class TaxiwayError(Exception):
    """Base of all expected errors."""


class Refused(TaxiwayError):
    """The request was understood and is refused; `reasons` says why and what to do, one sentence each."""

    def __init__(self, *reasons: str, code: str = "refused") -> None:
        super().__init__("\n".join(reasons))
        self.reasons: Sequence[str] = reasons
        self.code = code


class Altered(Refused):
    """Bytes on disk differ from the digest they were stored under."""

    def __init__(self, *reasons: str) -> None:
        super().__init__(*reasons, code="altered")


class NotAccepted(Refused):
    """A running part (gateway, engine) refused what it was given; the reason is its own."""

    def __init__(self, *reasons: str) -> None:
        super().__init__(*reasons, code="not-accepted")


class Usage(TaxiwayError):
    """The command line itself is wrong."""
