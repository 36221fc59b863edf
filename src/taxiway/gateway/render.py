"""Desired traffic as the text of Envoy's files. Pure: the same value gives the same bytes.

`lds.json` (the port and its filters), `cds.json` (which clusters exist), `rds.json` (who gets which request),
`ecds-jwt.json` (whose tokens count) and one `eds-<cluster>.json` for each cluster (where it is). A file's
`version_info` is taken from its content, so that Envoy's word for what it applied can be compared with it.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from taxiway.core import digest, split
from taxiway.core.errors import Refused
from taxiway.gateway import auth, clusters, listener, rest, rpc
from taxiway.gateway.desired import Desired, ModelTraffic

Json = dict[str, Any]

LISTENERS: Final = "lds.json"
CLUSTERS: Final = "cds.json"
ROUTES: Final = "rds.json"
KEYS: Final = "ecds-jwt.json"

# Room for the chunk that is being received when the limit is noticed; the limit itself is exact.
_SLACK_BYTES: Final = 64 * 1024
_HISTOGRAM_MS: Final = (0.5, 1, 2, 3, 5, 7.5, 10, 15, 20, 30, 50, 75, 100, 150, 200, 300, 500, 750, 1e3, 2e3, 5e3, 1e4)
_LONGEST_MS: Final = 3_600_000
_LINE: Final = 110
_DEEPEST: Final = 2 * 6  # the margin of a route
_MAX_CONNECTIONS: Final = 4_000
_MAX_HEAP_BYTES: Final = 1 << 30


def render(desired: Desired, folder: Path) -> dict[str, str]:
    """File name -> text of everything Envoy reads; the files refer to each other inside `folder`.

    Raises `Refused` when `desired` contradicts itself.
    """
    check(desired)
    assignments = clusters.all_endpoints(desired)
    return {
        **{clusters.endpoints_file(name): text_of([one]) for name, one in assignments.items()},
        KEYS: text_of([auth.extension(desired)]),
        CLUSTERS: text_of([clusters.dynamic(name, folder) for name in assignments]),
        ROUTES: text_of([route_configuration(desired)]),
        LISTENERS: text_of([listener.dynamic(desired, folder)]),
    }


def bootstrap(folder: Path, admin: Path) -> str:
    """What Envoy is started with: where its files are, and the admin socket at `admin`."""
    sources = {
        kind: {"resource_api_version": "V3", "path_config_source": {"path": str(folder / name)}}
        for kind, name in (("lds_config", LISTENERS), ("cds_config", CLUSTERS))
    }
    return pretty({**_process(admin), "dynamic_resources": sources})


def static(desired: Desired, admin: Path) -> str:
    """The same configuration in one file without references, for `envoy --mode validate`."""
    check(desired)
    assignments = clusters.all_endpoints(desired)
    resources = {
        "listeners": [_plain(listener.static(desired, _plain(route_configuration(desired))))],
        "clusters": [_plain(clusters.static(name, _plain(one))) for name, one in assignments.items()],
    }
    return pretty({**_process(admin), "static_resources": resources})


def route_configuration(desired: Desired) -> Json:
    """The route table as one RDS resource."""
    models = [
        replace(m, backends=tuple(sorted(m.backends, key=lambda b: b.number)))
        for m in sorted(desired.models, key=lambda m: m.model)
    ]
    routes = [
        *rest.server_routes(desired),
        *rpc.server_routes(desired),
        *[r for m in models for r in rest.model_routes(m)],
        *[r for m in models for r in rpc.model_routes(m)],
        *rpc.closing_routes(),
        *rest.closing_routes(),
    ]
    return {
        "@type": "type.googleapis.com/envoy.config.route.v3.RouteConfiguration",
        "name": listener.ROUTES,
        "validate_clusters": True,
        "virtual_hosts": [
            {
                "name": "models",
                "domains": ["*"],
                "routes": routes,
                # The guard needs the whole body in memory.
                "request_body_buffer_limit": desired.max_body_bytes + _SLACK_BYTES,
                "request_headers_to_remove": list(_NOT_FOR_ENGINES),
                "response_headers_to_add": [
                    _overwrite("x-model-revision", "%UPSTREAM_METADATA(ml:revision)%"),
                    _overwrite("x-request-id", "%REQ(X-REQUEST-ID)%"),
                ],
                "typed_per_filter_config": auth.required(auth.CALLERS),
            }
        ],
    }


# Credentials; and what would make the engine answer in a form that the guard cannot read or add to.
_NOT_FOR_ENGINES: Final = (
    "authorization",
    "cookie",
    "accept-encoding",
    "endpoint-load-metrics-format",
    "x-model",
    "x-model-version",
    rpc.MODEL,
    rpc.VERSION,
)


def check(desired: Desired) -> None:
    """Raise `Refused` with every contradiction in `desired`."""
    names = [m.model for m in desired.models]
    wrong = [f"model {n!r} is given twice" for n in sorted({n for n in names if names.count(n) > 1})]
    wrong += [text for m in desired.models for text in _contradictions(m)]
    if desired.max_body_bytes < 1:
        wrong.append(f"max_body_bytes is {desired.max_body_bytes}; it must be positive")
    if wrong:
        raise Refused(*wrong)


def _contradictions(traffic: ModelTraffic) -> list[str]:
    ready = [b.number for b in traffic.backends]
    wrong = [f"revision {traffic.model}@{n} is given twice" for n in sorted({n for n in ready if ready.count(n) > 1})]
    wrong += [
        f"{traffic.model}@{n} is given traffic but is not ready; start it or leave it out of the split"
        for n in sorted(set(traffic.split) - set(ready))
    ]
    if traffic.split and (sum(traffic.split.values()) != split.TOTAL or min(traffic.split.values()) < 1):
        wrong.append(f"{traffic.model}: weights {dict(traffic.split)} must be positive and add up to {split.TOTAL}")
    if not 1 <= traffic.timeout_ms <= _LONGEST_MS:
        wrong.append(f"{traffic.model}: timeout_ms is {traffic.timeout_ms}; it must lie between 1 and {_LONGEST_MS}")
    return wrong


def text_of(resources: list[Json]) -> str:
    """A file of `resources`, its version taken from them."""
    version = digest.short(digest.of_json(resources))
    return pretty({"version_info": version, "resources": resources})


def version_of(text: str) -> str:
    """The version that `text_of` gave."""
    return str(json.loads(text)["version_info"])


def pretty(value: Json) -> str:
    """JSON for people: keys sorted, whatever fits on a line on one line, and so is each route."""
    return _lines(value, "") + "\n"


def _lines(value: Any, margin: str) -> str:
    flat = json.dumps(value, sort_keys=True, ensure_ascii=True)
    if len(margin) + len(flat) <= _LINE or len(margin) >= _DEEPEST or not isinstance(value, dict | list):
        return flat
    deeper = margin + "  "
    if isinstance(value, dict):
        parts = [f"{deeper}{json.dumps(key)}: {_lines(value[key], deeper)}" for key in sorted(value)]
        return "{\n" + ",\n".join(parts) + f"\n{margin}}}"
    return "[\n" + ",\n".join(deeper + _lines(one, deeper) for one in value) + f"\n{margin}]"


def _plain(resource: Json) -> Json:
    """`resource` as it stands where its type is clear from its place."""
    return {k: v for k, v in resource.items() if k != "@type"}


def _overwrite(name: str, value: str) -> Json:
    return {"header": {"key": name, "value": value}, "append_action": "OVERWRITE_IF_EXISTS_OR_ADD"}


def _process(admin: Path) -> Json:
    """What belongs to the process rather than to its traffic."""
    return {
        "node": {"id": "taxiway", "cluster": "gateway"},
        # A user's own socket: whoever can write to it can stop the gateway.
        "admin": {"address": {"pipe": {"path": str(admin), "mode": 0o600}}},
        "stats_flush_on_admin": True,
        "stats_config": {
            "histogram_bucket_settings": [{"match": {"safe_regex": {"regex": ".*"}}, "buckets": list(_HISTOGRAM_MS)}],
        },
        "overload_manager": {
            "refresh_interval": "0.25s",
            "resource_monitors": [
                _monitor(
                    "global_downstream_max_connections",
                    "downstream_connections.v3.DownstreamConnectionsConfig",
                    max_active_downstream_connections=_MAX_CONNECTIONS,
                ),
                _monitor("fixed_heap", "fixed_heap.v3.FixedHeapConfig", max_heap_size_bytes=_MAX_HEAP_BYTES),
            ],
            "actions": [_action("shrink_heap", 0.85), _action("stop_accepting_requests", 0.95)],
        },
    }


def _monitor(name: str, kind: str, **config: int) -> Json:
    url = f"type.googleapis.com/envoy.extensions.resource_monitors.{kind}"
    return {"name": f"envoy.resource_monitors.{name}", "typed_config": {"@type": url, **config}}


def _action(name: str, threshold: float) -> Json:
    trigger = {"name": "envoy.resource_monitors.fixed_heap", "threshold": {"value": threshold}}
    return {"name": f"envoy.overload_actions.{name}", "triggers": [trigger]}
