"""Clusters and their endpoints: two per revision (HTTP/1.1 and gRPC), and two for the engines together.

A cluster of a revision has that revision's engine as its only endpoint, so everything Envoy counts under the
cluster's name is the revision's. The endpoint carries the revision's name as metadata, from which the
response header and the access log take it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from taxiway.gateway.desired import Address, Backend, Desired

HTTP: Final = "http"
GRPC: Final = "grpc"
PROTOCOLS: Final = (HTTP, GRPC)

# Limits so high that they never trigger: admission is decided in front of the engine on purpose, not by accident.
_NO_LIMIT: Final = 100_000


def of_revision(model: str, number: int, protocol: str) -> str:
    """The name of a revision's cluster, for instance `risk@2-http`."""
    return f"{model}@{number}-{protocol}"


def revision_of(cluster: str) -> tuple[str, int] | None:
    """(model, number) of a revision's cluster; None for any other cluster."""
    model, at, rest = cluster.rpartition("@")
    number = rest.partition("-")[0]
    return (model, int(number)) if at and number.isdigit() else None


def of_engines(protocol: str) -> str:
    """The name of the cluster that holds every engine with traffic."""
    return f"engines-{protocol}"


def endpoints_file(cluster: str) -> str:
    """The file that holds a cluster's endpoints."""
    return f"eds-{cluster}.json"


def all_endpoints(desired: Desired) -> dict[str, dict[str, Any]]:
    """Cluster name -> its ClusterLoadAssignment."""
    found: dict[str, list[dict[str, Any]]] = {of_engines(p): [] for p in PROTOCOLS}
    for model, backend in _backends(desired):
        for protocol in PROTOCOLS:
            endpoint = _endpoint(f"{model.model}@{backend.number}", _address(backend, protocol))
            found[of_revision(model.model, backend.number, protocol)] = [endpoint]
            if backend.number in model.split:
                found[of_engines(protocol)].append(endpoint)
    return {name: _assignment(name, found[name]) for name in sorted(found)}


def dynamic(name: str, folder: Path) -> dict[str, Any]:
    """The cluster `name`, its endpoints to be read from their own file in `folder`."""
    source = {"resource_api_version": "V3", "path_config_source": {"path": str(folder / endpoints_file(name))}}
    return {**_cluster(name), "type": "EDS", "eds_cluster_config": {"eds_config": source}}


def static(name: str, assignment: dict[str, Any]) -> dict[str, Any]:
    """The cluster `name` with its endpoints written into it."""
    return {**_cluster(name), "type": "STATIC", "load_assignment": assignment}


def _backends(desired: Desired) -> Iterator[tuple[Any, Backend]]:
    for model in sorted(desired.models, key=lambda m: m.model):
        for backend in sorted(model.backends, key=lambda b: b.number):
            yield model, backend


def _address(backend: Backend, protocol: str) -> Address:
    return backend.http if protocol == HTTP else backend.grpc


def _endpoint(revision: str, address: Address) -> dict[str, Any]:
    return {
        "endpoint": {"address": {"socket_address": {"address": address.host, "port_value": address.port}}},
        "metadata": {"filter_metadata": {"ml": {"revision": revision}}},
    }


def _assignment(name: str, endpoints: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "@type": "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
        "cluster_name": name,
        "endpoints": [{"lb_endpoints": endpoints}],
    }


def _cluster(name: str) -> dict[str, Any]:
    cluster: dict[str, Any] = {
        "@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster",
        "name": name,
        "connect_timeout": "0.25s",
        "circuit_breakers": {
            "thresholds": [
                {
                    "max_connections": _NO_LIMIT,
                    "max_pending_requests": _NO_LIMIT,
                    "max_requests": _NO_LIMIT,
                    # The default allows three retries at a time and drops the rest exactly when they are needed.
                    "retry_budget": {"budget_percent": {"value": 100}, "min_retry_concurrency": _NO_LIMIT},
                }
            ]
        },
        # No ejection and no panic: the engine answers 500 to callers' own mistakes, and has one endpoint.
        "common_lb_config": {"healthy_panic_threshold": {"value": 0}},
        "track_cluster_stats": {"per_endpoint_stats": True},
    }
    if name.endswith(f"-{GRPC}"):
        cluster["typed_extension_protocol_options"] = _HTTP2
    return cluster


_HTTP2: Final = {
    "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
        "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
        "explicit_http_config": {
            "http2_protocol_options": {
                "connection_keepalive": {"interval": "20s", "timeout": "5s"},
                "initial_stream_window_size": 1 << 20,
                "initial_connection_window_size": 8 << 20,
            }
        },
    }
}
