"""Routes of the Open Inference Protocol over gRPC.

A unary call names its model inside the message. Such a call first matches one of the `unnamed` routes, which
tell the guard to read the name; the guard puts it into MODEL and has the route chosen again. A stream cannot
wait for its first message, so its metadata must name the model (`x-model`).
"""

from __future__ import annotations

from typing import Final

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
    stream,
    to_one,
    to_split,
)

SERVICE: Final = "/inference.GRPCInferenceService"
MODEL: Final = "x-taxiway-model"  # only the guard writes it; removed from every request on arrival
VERSION: Final = "x-taxiway-version"  # as MODEL: the version a metadata or readiness call asks for
STREAM_MODEL: Final = "x-model"

_NOT_FOUND: Final = "5"
_SERVER_MS: Final = 2_000


def server_routes(desired: Desired) -> list[Json]:
    """Liveness, readiness and metadata of the server as a whole."""
    serving = any(m.split for m in desired.models)
    nobody = answer(503, "no revision of any model is given traffic")
    engines = forward(to_one(clusters.of_engines(clusters.GRPC)), _SERVER_MS) if serving else nobody
    calls = [("ServerLive", auth.ANYONE), ("ServerReady", auth.ANYONE), ("ServerMetadata", auth.CALLERS)]
    return [route(f"grpc-{call}", _call(call), engines, requirement) for call, requirement in calls]


def model_routes(traffic: ModelTraffic) -> list[Json]:
    """Unary calls and streams of one model."""
    named = exact(MODEL, traffic.model)
    streamed = exact(STREAM_MODEL, traffic.model)
    unary: list[Json] = []
    streams: list[Json] = []
    for backend in traffic.backends:
        target = pinned(traffic, backend.number, clusters.GRPC)
        number = str(backend.number)
        name = f"{traffic.model}@{number}-grpc"
        one = forward(target, traffic.timeout_ms)
        unary.append(route(f"{name}-pin", _unary(named, exact(PIN, number)), one, auth.OPERATORS, traffic.model))
        unary.append(route(name, _unary(named, exact(VERSION, number)), one, auth.CALLERS, traffic.model))
        pin = _call("ModelStreamInfer", streamed, exact(PIN, number))
        streams.append(_stream(f"{name}-stream-pin", pin, target, auth.OPERATORS, traffic.model))
    refused = {"grpc_status": _NOT_FOUND}
    unready = not_ready(traffic)
    no_version = answer(404, f"model '{traffic.model}': revision %REQ({VERSION})% is not ready")
    name = f"{traffic.model}-grpc"
    unary += [
        route(f"{name}-unpinnable", _unary(named, present(PIN)), unready, auth.OPERATORS, **refused),
        route(f"{name}-version-unknown", _unary(named, present(VERSION)), no_version, auth.CALLERS, **refused),
    ]
    unpinnable = _call("ModelStreamInfer", streamed, present(PIN))
    streams.append(route(f"{name}-unpinnable", unpinnable, unready, auth.OPERATORS, **refused))
    every_stream = _call("ModelStreamInfer", streamed)
    if traffic.split:
        target = to_split(traffic, clusters.GRPC)
        unary.append(route(name, _unary(named), forward(target, traffic.timeout_ms), auth.CALLERS, traffic.model))
        streams.append(_stream(f"{name}-stream", every_stream, target, auth.CALLERS, traffic.model))
    else:
        unary.append(route(name, _unary(named), no_traffic(traffic), auth.CALLERS, traffic.model))
        streams.append(route(name, every_stream, no_traffic(traffic), auth.CALLERS, traffic.model))
    return unary + streams


def closing_routes() -> list[Json]:
    """Calls that no model claimed: unknown models, and unary calls whose model the guard has yet to read."""
    refused = {"grpc_status": _NOT_FOUND}
    unknown = answer(404, f"this gateway serves no model named '%REQ({MODEL})%'")
    unnamed = answer(400, "the call does not name a model")
    stream_unknown = answer(404, f"this gateway serves no model named '%REQ({STREAM_MODEL})%'")
    stream_unnamed = answer(400, f"ModelStreamInfer: name the model in the call's metadata ('{STREAM_MODEL}: NAME')")
    closing = [route("grpc-model-unknown", _unary(present(MODEL)), unknown, auth.CALLERS, **refused)]
    for call, check in [("ModelInfer", "grpc-infer"), ("ModelMetadata", "grpc-model"), ("ModelReady", "grpc-model")]:
        pin = _call(call, present(PIN))
        closing.append(route("grpc-unnamed-pin", pin, unnamed, auth.OPERATORS, check=check, grpc_status="3"))
        closing.append(route("grpc-unnamed", _call(call), unnamed, auth.CALLERS, check=check, grpc_status="3"))
    streams = _call("ModelStreamInfer", present(STREAM_MODEL))
    closing.append(route("grpc-stream-unknown", streams, stream_unknown, auth.CALLERS, **refused))
    closing.append(
        route("grpc-stream-unnamed", _call("ModelStreamInfer"), stream_unnamed, auth.CALLERS, grpc_status="3")
    )
    hidden = answer(404, "%REQ(:PATH)%: this call is not served here")
    closing.append(route("grpc-hidden", {"prefix": "/", "grpc": {}}, hidden, auth.CALLERS))
    return closing


def _call(name: str, *headers: Json) -> Json:
    return {"path": f"{SERVICE}/{name}", "grpc": {}, "headers": [exact(":method", "POST"), *headers]}


def _unary(*headers: Json) -> Json:
    regex = "/inference[.]GRPCInferenceService/Model(Infer|Metadata|Ready)"
    return {"safe_regex": {"regex": regex}, "grpc": {}, "headers": [exact(":method", "POST"), *headers]}


def _stream(name: str, match: Json, target: Json, requirement: str, model: str) -> Json:
    made = route(name, match, stream(target), requirement, model)
    # The body limit counts a whole request, which in a stream is the sum of all its messages.
    made["typed_per_filter_config"]["body-limit"] = {
        "@type": "type.googleapis.com/envoy.config.route.v3.FilterConfig",
        "disabled": True,
    }
    return made
