"""An external issuer's public keys: fetched, checked, kept as the last good copy."""

from __future__ import annotations

import os
from pathlib import Path

import httpx

from taxiway.app.wire import Platform
from taxiway.core.errors import Refused
from taxiway.gateway import tokens


def refresh(platform: Platform) -> bool:
    """Fetch the configured keys again; returns whether they changed. Raises `Refused`; the copy stays."""
    source = platform.settings.jwks
    if not source:
        return False
    text = tokens.read_jwks(_get(source))
    copy = platform.issuer_copy
    if copy.exists() and copy.read_text() == text:
        return False
    aside = copy.with_name(f".{copy.name}.{os.getpid()}")
    aside.write_text(text)
    aside.replace(copy)
    return True


def _get(source: str) -> str:
    try:
        if source.startswith(("https://", "http://127.0.0.1", "http://localhost")):
            return httpx.get(source, timeout=10, follow_redirects=False).raise_for_status().text
        if "://" in source:
            raise Refused(f"--jwks {source}: keys are fetched over https only")
        return Path(source).read_text()
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        raise Refused(f"--jwks {source} cannot be read: {error}") from error
