"""What the gateway shall do, as one value."""

from __future__ import annotations

from dataclasses import dataclass

from taxiway.core.split import Split


@dataclass(frozen=True, slots=True)
class Address:
    """A TCP address to listen on or to send to."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Backend:
    """A revision that is ready to answer: the addresses of its engine."""

    number: int
    http: Address
    grpc: Address


@dataclass(frozen=True, slots=True)
class ModelTraffic:
    """A model's ready revisions and the split between them; every revision in `split` is among `backends`."""

    model: str
    backends: tuple[Backend, ...]
    split: Split
    timeout_ms: int = 10_000


@dataclass(frozen=True, slots=True)
class Issuer:
    """Whose tokens are accepted: `jwks` is the JSON text of the public keys (RFC 7517)."""

    name: str
    issuer: str
    audience: str
    jwks: str


@dataclass(frozen=True, slots=True)
class Desired:
    """Everything the gateway's dynamic configuration depends on."""

    listen: Address
    callers: Issuer  # tokens of ordinary callers
    operators: Issuer  # tokens that may pin a revision with `x-model-version`
    models: tuple[ModelTraffic, ...]
    access_log: str
    max_body_bytes: int = 4 * 1024 * 1024
