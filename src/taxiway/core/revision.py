"""Names: a model, and one numbered revision of it (`model@7`)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from taxiway.core.errors import Usage

# Safe as a folder, a URL segment, an Envoy cluster name and a process name alike.
_MODEL = re.compile(r"[a-z][a-z0-9_-]{0,62}\Z")


def model_name(text: str) -> str:
    """`text` if it can name a model, else `Usage`."""
    if not _MODEL.match(text):
        raise Usage(
            f"model name {text!r}: use 1 to 63 of a-z, 0-9, '-' and '_', beginning with a letter (for instance 'risk')"
        )
    return text


@dataclass(frozen=True, slots=True, order=True)
class Revision:
    """One immutable revision, numbered from 1 within its model."""

    model: str
    number: int

    def __str__(self) -> str:
        return f"{self.model}@{self.number}"

    @staticmethod
    def parse(text: str) -> Revision:
        """Parse `model@7`; raises `Usage`."""
        model, at, number = text.partition("@")
        if not at or not number.isascii() or not number.isdigit() or int(number) < 1:
            raise Usage(f"revision {text!r}: write MODEL@NUMBER, for instance risk@2")
        return Revision(model_name(model), int(number))
