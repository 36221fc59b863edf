"""The one port: HTTP/1.1 and HTTP/2 without TLS, hardened, with the filters every request passes.

In order: identity headers a client could forge are removed, the token is checked, a gzip body is inflated,
the body is bounded, the guard looks at it, the router sends it on. Whatever changes often lives elsewhere
(routes, clusters, endpoints, keys): a change of the listener itself is rare.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Final

from taxiway.gateway import accesslog, auth, replies
from taxiway.gateway.desired import Desired

Json = dict[str, Any]

NAME: Final = "ingress"
ROUTES: Final = "main"

_FILTERS: Final = "type.googleapis.com/envoy.extensions.filters.http"
_MANAGER: Final = "http_connection_manager.v3.HttpConnectionManager"
_FORGEABLE: Final = (*auth.CLAIM_HEADERS, "x-roles", "x-device", "x-model-revision", "x-fallback")
_FORGEABLE_PREFIXES: Final = ("x-envoy-", "x-taxiway-")
# Read in this order: each part uses the names of those before it.
_GUARD_PARTS: Final = ("guard_json.lua", "guard_infer.lua", "guard_grpc.lua", "guard.lua")


def dynamic(desired: Desired, folder: Path) -> Json:
    """The listener, its routes and keys to be read from files in `folder`."""
    routes = {"rds": {"route_config_name": ROUTES, "config_source": _file(folder / "rds.json")}}
    keys = {
        "name": auth.FILTER,
        "config_discovery": {"config_source": _file(folder / "ecds-jwt.json"), "type_urls": [auth.TYPE_URL]},
    }
    return _listener(desired, routes, keys)


def static(desired: Desired, route_configuration: Json) -> Json:
    """The listener with routes and keys written into it."""
    keys = {"name": auth.FILTER, "typed_config": auth.authentication(desired)}
    return _listener(desired, {"route_config": route_configuration}, keys)


@cache
def guard_source() -> str:
    """The Lua text of the guard."""
    home = resources.files("taxiway.gateway")
    return "\n".join((home / part).read_text(encoding="utf-8") for part in _GUARD_PARTS)


def _file(path: Path) -> Json:
    return {"resource_api_version": "V3", "path_config_source": {"path": str(path)}}


def _listener(desired: Desired, routes: Json, keys: Json) -> Json:
    manager = {"name": "envoy.filters.network.http_connection_manager", "typed_config": _manager(desired, routes, keys)}
    return {
        "@type": "type.googleapis.com/envoy.config.listener.v3.Listener",
        "name": NAME,
        "address": {"socket_address": {"address": desired.listen.host, "port_value": desired.listen.port}},
        "per_connection_buffer_limit_bytes": 1 << 20,
        "filter_chains": [{"filters": [manager]}],
    }


def _manager(desired: Desired, routes: Json, keys: Json) -> Json:
    return {
        "@type": f"type.googleapis.com/envoy.extensions.filters.network.{_MANAGER}",
        "stat_prefix": NAME,
        "codec_type": "AUTO",
        "server_name": "taxiway",
        "server_header_transformation": "OVERWRITE",
        **_IDENTITY,
        **_PATHS,
        **_LIMITS,
        "early_header_mutation_extensions": [_strip_forgeable()],
        "local_reply_config": replies.local_replies(desired.max_body_bytes),
        "access_log": [accesslog.to_file(desired.access_log)],
        **routes,
        "http_filters": [
            keys,
            _filter("inflate", "decompressor.v3.Decompressor", **_INFLATE),
            _filter("body-limit", "body_size_limit.v3.BodySizeLimit", max_request_bytes=desired.max_body_bytes),
            # The guard says itself when the route must be chosen again.
            _filter(
                "envoy.filters.http.lua",
                "lua.v3.Lua",
                clear_route_cache=False,
                default_source_code={"inline_string": guard_source()},
            ),
            # Timings are in the access log; a caller has no use for headers about what is behind the gateway.
            _filter("envoy.filters.http.router", "router.v3.Router", suppress_envoy_headers=True),
        ],
    }


def _filter(name: str, kind: str, **config: Any) -> Json:
    return {"name": name, "typed_config": {"@type": f"{_FILTERS}.{kind}", **config}}


def _strip_forgeable() -> Json:
    kind = "envoy.extensions.http.early_header_mutation.header_mutation.v3.HeaderMutation"
    mutations = [{"remove": name} for name in _FORGEABLE] + [
        {"remove_on_match": {"key_matcher": {"prefix": prefix}}} for prefix in _FORGEABLE_PREFIXES
    ]
    return {
        "name": "envoy.http.early_header_mutation.header_mutation",
        "typed_config": {"@type": f"type.googleapis.com/{kind}", "mutations": mutations},
    }


_IDENTITY: Final[Json] = {
    "use_remote_address": True,
    "generate_request_id": True,
    "preserve_external_request_id": True,
    "always_set_request_id_in_response": True,
    "request_id_extension": {
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.request_id.uuid.v3.UuidRequestIdConfig",
            # The identifier is the caller's to recognise: it is not rewritten to carry a trace decision.
            "pack_trace_reason": False,
        }
    },
}

# Two spellings of one path must not meet two different rules.
_PATHS: Final[Json] = {
    "normalize_path": True,
    "merge_slashes": True,
    "path_with_escaped_slashes_action": "REJECT_REQUEST",
}

# No limit on the time of a whole request here, because a stream is one request; routes bound theirs.
_LIMITS: Final[Json] = {
    "max_request_headers_kb": 32,
    "request_headers_timeout": "5s",
    "stream_idle_timeout": "60s",
    "common_http_protocol_options": {
        "idle_timeout": "300s",
        "max_headers_count": 64,
        "headers_with_underscores_action": "REJECT_REQUEST",
    },
    "http2_protocol_options": {
        "max_concurrent_streams": 256,
        "initial_stream_window_size": 1 << 20,
        "initial_connection_window_size": 4 << 20,
        "connection_keepalive": {"interval": "30s", "timeout": "10s"},
    },
}

_INFLATE: Final[Json] = {
    "decompressor_library": {
        "name": "gzip",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.compression.gzip.decompressor.v3.Gzip",
            "window_bits": 15,
        },
    },
    "request_direction_config": {"advertise_accept_encoding": False},
    "response_direction_config": {"common_config": {"enabled": {"default_value": False, "runtime_key": "none"}}},
}
