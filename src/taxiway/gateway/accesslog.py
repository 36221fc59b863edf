"""One JSON object per request.

`latency_us` runs from the first byte of the request to the last of the answer, `upstream_us` from the first
byte sent to the engine to the first received from it, both in microseconds; `duration_ms` is the latency in
whole milliseconds and is always there. `path` is without its query. A value that does not exist for a request
(a revision when none was reached, the latency of an answer without a body) is null.
"""

from __future__ import annotations

from typing import Any, Final

_FIELDS: Final = {
    "ts": "%START_TIME(%Y-%m-%dT%H:%M:%S.%3fZ)%",
    "request_id": "%REQ(X-REQUEST-ID)%",
    "user": "%REQ(X-USER)%",
    "app": "%REQ(X-APP)%",
    "model": "%METADATA(ROUTE:ml:model)%",
    "revision": "%UPSTREAM_METADATA(ml:revision)%",
    "status": "%RESPONSE_CODE%",
    "grpc_status": "%GRPC_STATUS_NUMBER%",
    "duration_ms": "%DURATION%",
    "latency_us": "%COMMON_DURATION(DS_RX_BEG:DS_TX_END:us)%",
    "upstream_us": "%COMMON_DURATION(US_TX_BEG:US_RX_BEG:us)%",
    "flags": "%RESPONSE_FLAGS%",
    "details": "%RESPONSE_CODE_DETAILS%",
    "refused_field": "%DYNAMIC_METADATA(taxiway.guard:field)%",
    "protocol": "%PROTOCOL%",
    "method": "%REQ(:METHOD)%",
    "path": "%PATH(NQ)%",
    "bytes_in": "%BYTES_RECEIVED%",
    "bytes_out": "%BYTES_SENT%",
    "attempts": "%UPSTREAM_REQUEST_ATTEMPT_COUNT%",
    "upstream": "%UPSTREAM_HOST%",
    "client": "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%",
}


def to_file(path: str) -> dict[str, Any]:
    """The access logger that appends to `path`."""
    return {
        "name": "envoy.access_loggers.file",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog",
            "path": path,
            "log_format": {"json_format": _FIELDS},
        },
    }
