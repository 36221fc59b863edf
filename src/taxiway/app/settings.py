"""Settings of a platform, in one precedence chain: flag > environment > `platform.json` > default.

What was in force at the last start is kept in `platform.json`, so that a platform comes back on the same ports.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

from taxiway.core.errors import Refused, Usage

STATE_VARIABLE: Final = "TAXIWAY_STATE"


@dataclass(frozen=True, slots=True)
class Settings:
    """One field a line; each can be set by `taxiway up --<name>` or the variable `TAXIWAY_<NAME>`."""

    host: str = "127.0.0.1"
    """Address the gateway listens on; nothing else ever listens beyond loopback."""
    port: int = 8080
    """Port of the gateway, for REST and gRPC alike; a free one is taken when this one is in use."""
    console_port: int = 8081
    """Loopback port of the status page and the control API."""
    issuer: str = "taxiway/local"
    """The `iss` that callers' tokens must have."""
    audience: str = "taxiway"
    """The `aud` that callers' tokens must have."""
    jwks: str = ""
    """File or https URL with the public keys of an external issuer; empty: the platform's own key."""
    database: str = ""
    """SQLAlchemy URL of the journal; empty: SQLite in the state folder."""


def state_folder(flag: str | None) -> Path:
    """The state folder: `--state`, `TAXIWAY_STATE`, else `.taxiway` in the current folder."""
    return Path(flag or os.environ.get(STATE_VARIABLE) or ".taxiway").absolute()


def read(path: Path) -> Settings:
    """The settings kept in `path` over the defaults; raises `Refused` naming the key that is wrong."""
    try:
        kept = json.loads(path.read_text())
    except FileNotFoundError:
        return Settings()
    except (OSError, ValueError) as error:
        raise Refused(f"{path} cannot be read: {error}; restore it, or remove it to have the defaults") from None
    return _checked(path, kept)


def merge(kept: Settings, environment: Mapping[str, str], flags: Mapping[str, Any]) -> Settings:
    """Flags (None = not given) over environment over what was kept; raises `Usage`."""
    changes: dict[str, Any] = {}
    for field in fields(Settings):
        given: Any = flags.get(field.name)
        source = f"--{field.name.replace('_', '-')}"
        if given is None:
            variable = f"TAXIWAY_{field.name.upper()}"
            given, source = environment.get(variable), variable
        if given is not None:
            changes[field.name] = _value(source, given, type(getattr(kept, field.name)))
    return replace(kept, **changes)


def write(path: Path, settings: Settings) -> None:
    """Keep `settings` (written aside and renamed)."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    aside.write_text(json.dumps(asdict(settings), indent=2) + "\n")
    aside.replace(path)


def with_free_ports(settings: Settings) -> Settings:
    """The same settings with every port that somebody else uses replaced by a free one."""
    port = settings.port if _is_free(settings.host, settings.port) else _free(settings.host)
    console = settings.console_port
    if console == port or not _is_free("127.0.0.1", console):
        console = _free("127.0.0.1", besides=port)
    return replace(settings, port=port, console_port=console)


def _checked(path: Path, kept: Any) -> Settings:
    defaults = Settings()
    if not isinstance(kept, dict):
        raise Refused(f"{path}: expected a JSON object")
    for key, value in kept.items():
        if key not in {f.name for f in fields(Settings)}:
            raise Refused(f"{path}: unknown key {key!r}")
        kind = type(getattr(defaults, key))
        if type(value) is not kind:
            raise Refused(f"{path}: key {key!r}: expected {kind.__name__}, got {value!r}")
    return Settings(**kept)


def _value(source: str, given: Any, kind: type) -> Any:
    if kind is not int:
        return str(given)
    try:
        number = int(given)
    except ValueError:
        raise Usage(f"{source}: expected a whole number, got {given!r}") from None
    if not 1 <= number <= 65535:
        raise Usage(f"{source}: a port lies between 1 and 65535, not {number}")
    return number


def _is_free(host: str, port: int) -> bool:
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind((host, port))
        except OSError:
            return False
        return True


def _free(host: str, besides: int = 0) -> int:
    while True:
        with socket.socket() as s:
            try:
                s.bind((host, 0))
            except OSError as error:
                raise Refused(f"--host {host}: the gateway cannot listen there: {error.strerror}") from None
            port = int(s.getsockname()[1])
        if port != besides:
            return port
