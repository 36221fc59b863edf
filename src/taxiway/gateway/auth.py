"""Whose tokens count, as Envoy's JWT filter wants to be told.

Two issuers: `callers` may use the models, `operators` may also pin a revision. Each route names one of the
requirements below; `anyone` turns the check off. The filter lives in a file of its own (ECDS), so that new
keys take effect in milliseconds and no listener is touched.
"""

from __future__ import annotations

from typing import Any, Final

from taxiway.gateway.desired import Desired, Issuer

FILTER: Final = "jwt"
CALLERS: Final = "callers"
OPERATORS: Final = "operators"
ANYONE: Final = "anyone"

_TYPE: Final = "type.googleapis.com/envoy.extensions.filters.http.jwt_authn.v3"
TYPE_URL: Final = f"{_TYPE}.JwtAuthentication"

# Headers a verified token fills; the same names are removed from every request before anything else runs.
CLAIM_HEADERS: Final = {"x-user": "sub", "x-app": "app", "x-role": "role"}


def extension(desired: Desired) -> dict[str, Any]:
    """The JWT filter as one ECDS resource."""
    return {
        "@type": "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig",
        "name": FILTER,
        "typed_config": authentication(desired),
    }


def authentication(desired: Desired) -> dict[str, Any]:
    """The JWT filter itself: both providers, and the requirements that routes choose from."""
    return {
        "@type": TYPE_URL,
        "providers": {CALLERS: _provider(desired.callers), OPERATORS: _provider(desired.operators)},
        "requirement_map": {
            CALLERS: {"requires_any": {"requirements": [{"provider_name": CALLERS}, {"provider_name": OPERATORS}]}},
            OPERATORS: {"provider_name": OPERATORS},
        },
    }


def _provider(issuer: Issuer) -> dict[str, Any]:
    return {
        "issuer": issuer.issuer,
        "audiences": [issuer.audience],
        "require_expiration": True,
        "clock_skew_seconds": 5,
        "local_jwks": {"inline_string": issuer.jwks},
        # Named, because the filter would look into the query as well, and a query ends up in logs.
        "from_headers": [{"name": "Authorization", "value_prefix": "Bearer "}],
        "forward": False,
        "claim_to_headers": [{"header_name": h, "claim_name": c} for h, c in CLAIM_HEADERS.items()],
        # Verifying a signature costs as much as routing the request; a token is used for many requests.
        "jwt_cache_config": {"jwt_cache_size": 10_000},
    }


def required(requirement: str) -> dict[str, Any]:
    """The per-route setting that asks for `requirement` (CALLERS, OPERATORS or ANYONE)."""
    choice = {"disabled": True} if requirement == ANYONE else {"requirement_name": requirement}
    return {FILTER: {"@type": f"{_TYPE}.PerRouteConfig", **choice}}
