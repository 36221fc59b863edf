"""Content addresses: SHA-256 over bytes and over canonical JSON."""

from __future__ import annotations

import hashlib
import json
from typing import Any

PREFIX = "sha256:"


def of_bytes(data: bytes) -> str:
    """Digest of `data`, as `sha256:<64 hex digits>`."""
    return PREFIX + hashlib.sha256(data).hexdigest()


def canonical(value: Any) -> bytes:
    """The one JSON text of `value`: sorted keys, no spaces, UTF-8; NaN and infinities are refused."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def of_json(value: Any) -> str:
    """Digest of the canonical JSON of `value`."""
    return of_bytes(canonical(value))


def short(digest: str) -> str:
    """The first twelve hex digits: enough for a person to compare."""
    return digest.removeprefix(PREFIX)[:12]
