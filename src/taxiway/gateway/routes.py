"""The route table: what is reachable, by whom, and which revision answers.

Routes are tried in order, so the narrow ones come first. The table is closed: whatever no route names is
answered here with 404 or 405 and never reaches an engine. `rest.py` and `rpc.py` write the two halves from
the pieces in this module.
"""

from __future__ import annotations

from typing import Any, Final

from taxiway.gateway import auth, clusters
from taxiway.gateway.desired import ModelTraffic

Json = dict[str, Any]

PIN: Final = "x-model-version"

# The namespace under which a route tells the guard what to check.
GUARD: Final = "envoy.filters.http.lua"

# A body that arrives too slowly is cut off after this, on top of the time the engine may take.
_RECEIVE_MS: Final = 30_000
_IDLE_MS: Final = 15_000


def exact(name: str, value: str) -> Json:
    """A match on the exact value of a header."""
    return {"name": name, "string_match": {"exact": value}}


def present(name: str) -> Json:
    """A match on the presence of a header."""
    return {"name": name, "present_match": True}


def route(name: str, match: Json, action: Json, requirement: str, model: str | None = None, **guard: str) -> Json:
    """One route; `guard` is what the guard is told (`check`, `grpc_status`)."""
    metadata: Json = {}
    if model is not None:
        metadata["ml"] = {"model": model}
    if guard:
        metadata[GUARD] = guard
    made: Json = {"name": name, "match": match, **action, "typed_per_filter_config": auth.required(requirement)}
    if metadata:
        made["metadata"] = {"filter_metadata": metadata}
    return made


def answer(status: int, text: str) -> Json:
    """An answer of the gateway's own; `text` may hold access-log operators such as `%REQ(:PATH)%`."""
    body = {"inline_string": text}
    if "%" in text:
        return {"direct_response": {"status": status, "body_format": {"text_format_source": body}}}
    return {"direct_response": {"status": status, "body": body}}


def forward(target: Json, timeout_ms: int) -> Json:
    """Send the request to `target` (of `to_one` or `to_split`), bounded in every way a caller could prolong it."""
    timeout = _seconds(timeout_ms)
    return {
        "route": {
            **target,
            "idle_timeout": _seconds(_IDLE_MS + timeout_ms),
            "max_stream_duration": {
                "max_stream_duration": _seconds(_RECEIVE_MS + timeout_ms),
                "grpc_timeout_header_max": timeout,
            },
            # Only what surely never reached the engine: an inference is not repeated behind a caller's back.
            "retry_policy": {
                "retry_on": "connect-failure,refused-stream,reset-before-request",
                "num_retries": 2,
                # The engine's time, counted from the end of the request. The route's own `timeout` would
                # have no effect: Envoy ignores it where `max_stream_duration` is given.
                "per_try_timeout": timeout,
                "retry_back_off": {"base_interval": "0.005s", "max_interval": "0.05s"},
            },
        }
    }


def _seconds(milliseconds: int) -> str:
    """A duration as Envoy writes it."""
    return f"{milliseconds // 1000}.{milliseconds % 1000:03}s"


def stream(target: Json) -> Json:
    """Send a bidirectional stream: no deadline for the whole, but it may not fall silent nor last for ever."""
    return {
        "route": {
            **target,
            "timeout": "0s",
            "idle_timeout": "300s",
            "max_stream_duration": {"max_stream_duration": "3600s", "grpc_timeout_header_max": "0s"},
        }
    }


def to_one(cluster: str) -> Json:
    """All requests to one cluster."""
    return {"cluster": cluster}


def to_split(traffic: ModelTraffic, protocol: str) -> Json:
    """Each request to one of the model's revisions, at random by weight."""
    weighted = [
        {"name": clusters.of_revision(traffic.model, number, protocol), "weight": weight}
        for number, weight in sorted(traffic.split.items())
    ]
    return {"weighted_clusters": {"clusters": weighted}}


def pinned(traffic: ModelTraffic, number: int, protocol: str) -> Json:
    """Each request to one revision of the model."""
    return to_one(clusters.of_revision(traffic.model, number, protocol))


def no_traffic(traffic: ModelTraffic) -> Json:
    """The answer for a model none of whose revisions is given traffic."""
    return answer(503, f"model '{traffic.model}' is known but no revision of it is given traffic; try again later")


def not_ready(traffic: ModelTraffic) -> Json:
    """The answer for a pin on a revision that is not ready."""
    ready = ", ".join(str(b.number) for b in sorted(traffic.backends, key=lambda b: b.number)) or "none"
    return answer(404, f"model '{traffic.model}': revision %REQ({PIN})% is not ready; ready revisions: {ready}")
