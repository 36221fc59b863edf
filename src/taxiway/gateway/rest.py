"""Routes of the Open Inference Protocol over HTTP/1.1 and HTTP/2 with JSON or the binary extension."""

from __future__ import annotations

from taxiway.gateway import auth, clusters
from taxiway.gateway.desired import Desired, ModelTraffic
from taxiway.gateway.routes import (
    PIN,
    Json,
    answer,
    exact,
    forward,
    no_traffic,
    not_ready,
    pinned,
    present,
    route,
    to_one,
    to_split,
)

_HEALTH_MS = 2_000
_NOBODY = "no revision of any model is given traffic"
_HIDDEN = "%REQ(:METHOD)% %REQ(:PATH)%: there is no such path here; inference, metadata and health are served"


def server_routes(desired: Desired) -> list[Json]:
    """Health and metadata of the server as a whole."""
    serving = any(m.split for m in desired.models)
    engines = forward(to_one(clusters.of_engines(clusters.HTTP)), _HEALTH_MS) if serving else answer(503, _NOBODY)
    return [
        route("live", _match("GET", "/v2/health/live"), answer(200, ""), auth.ANYONE),
        route("ready", _match("GET", "/v2/health/ready"), engines, auth.ANYONE),
        route("server", _match("GET", "/v2"), engines, auth.CALLERS),
        _only("GET", "/v2/health/live", auth.ANYONE),
        _only("GET", "/v2/health/ready", auth.ANYONE),
        _only("GET", "/v2", auth.CALLERS),
    ]


def model_routes(traffic: ModelTraffic) -> list[Json]:
    """Everything of one model: pins first, then the split, then single revisions, then what is refused."""
    base = f"/v2/models/{traffic.model}"
    shared = [("POST", f"{base}/infer"), ("GET", base), ("GET", f"{base}/ready")]
    return [
        *[_pin(traffic, method, path, b.number) for b in traffic.backends for method, path in shared],
        *[
            route(f"{traffic.model}-unpinnable", _match(m, p, present(PIN)), not_ready(traffic), auth.OPERATORS)
            for m, p in shared
        ],
        *[_split(traffic, method, path) for method, path in shared],
        *[one for b in traffic.backends for one in _version(traffic, base, b.number)],
        *[_only(method, path, auth.CALLERS) for method, path in shared],
        route(
            f"{traffic.model}-version-unknown",
            {"path_separated_prefix": f"{base}/versions"},
            answer(404, f"%REQ(:METHOD)% %REQ(:PATH)%: no such revision of model '{traffic.model}' is ready"),
            auth.CALLERS,
        ),
        route(f"{traffic.model}-hidden", {"path_separated_prefix": base}, answer(404, _HIDDEN), auth.CALLERS),
    ]


def closing_routes() -> list[Json]:
    """What is left when no other route matched."""
    unknown = answer(404, "%REQ(:PATH)%: this gateway serves no model of that name")
    return [
        route("model-unknown", {"prefix": "/v2/models/"}, unknown, auth.CALLERS),
        route("hidden", {"prefix": "/"}, answer(404, _HIDDEN), auth.CALLERS),
    ]


def _match(method: str, path: str, *more: Json) -> Json:
    return {"path": path, "headers": [exact(":method", method), *more]}


def _only(method: str, path: str, requirement: str) -> Json:
    refused = answer(405, f"%REQ(:METHOD)% {path}: only {method} is served here")
    return route("method", {"path": path}, refused, requirement)


def _guarded(method: str) -> dict[str, str]:
    return {"check": "infer"} if method == "POST" else {}


def _pin(traffic: ModelTraffic, method: str, path: str, number: int) -> Json:
    return route(
        f"{traffic.model}@{number}-pin",
        _match(method, path, exact(PIN, str(number))),
        forward(pinned(traffic, number, clusters.HTTP), traffic.timeout_ms),
        auth.OPERATORS,
        traffic.model,
        **_guarded(method),
    )


def _split(traffic: ModelTraffic, method: str, path: str) -> Json:
    action = forward(to_split(traffic, clusters.HTTP), traffic.timeout_ms) if traffic.split else no_traffic(traffic)
    return route(traffic.model, _match(method, path), action, auth.CALLERS, traffic.model, **_guarded(method))


def _version(traffic: ModelTraffic, base: str, number: int) -> list[Json]:
    """The paths that name a revision. An engine holds one revision, so the number is cut off on the way to it."""
    kinds = [
        ("GET", "", auth.CALLERS),
        ("GET", "/ready", auth.CALLERS),
        ("POST", "/infer", auth.OPERATORS),
    ]
    return [
        route(
            f"{traffic.model}@{number}",
            _match(method, f"{base}/versions/{number}{tail}"),
            forward({**pinned(traffic, number, clusters.HTTP), "prefix_rewrite": f"{base}{tail}"}, traffic.timeout_ms),
            requirement,
            traffic.model,
            **_guarded(method),
        )
        for method, tail, requirement in kinds
    ] + [_only(method, f"{base}/versions/{number}{tail}", requirement) for method, tail, requirement in kinds]
