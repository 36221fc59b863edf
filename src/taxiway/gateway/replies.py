"""The one shape of every error: `{"error": "<sentence>", "code": <status>, "request_id": "..."}`.

`error` stays a string because clients of the Open Inference Protocol print it. A refusal of the guard adds
`field`, `expected` and `got`. Callers over gRPC get the sentence as the status message instead.
"""

from __future__ import annotations

from typing import Any, Final

Json = dict[str, Any]

# Where the guard leaves the parts of a refusal for the format below.
NAMESPACE: Final = "taxiway.guard"

_BAD_TOKEN: Final = "%LOCAL_REPLY_BODY%; send a valid token as 'Authorization: Bearer TOKEN'"  # noqa: S105  (a sentence)
_BAD_PIN: Final = "%LOCAL_REPLY_BODY%; only an operator's token may choose a revision"


def local_replies(max_body_bytes: int) -> Json:
    """How answers that Envoy itself gives are worded; the first mapper that fits is used."""
    too_large = f"the request body is larger than {max_body_bytes} bytes"
    return {
        "mappers": [
            _mapper([_GRPC, _JWT, _PINNED], _text(_BAD_PIN), 401),
            _mapper([_GRPC, _JWT], _text(_BAD_TOKEN), 401),
            _mapper([_GRPC, _status("EQ", 413)], _text(too_large)),
            _mapper([_GRPC, _status("GE", 400)], _text("%LOCAL_REPLY_BODY%")),
            _mapper([_JWT, _PINNED], _json(_BAD_PIN), 401),
            _mapper([_JWT], _json(_BAD_TOKEN), 401),
            _mapper([_status("EQ", 413)], _json(too_large)),
            _mapper([_status("GE", 400)], _json("%LOCAL_REPLY_BODY%")),
        ]
    }


def _mapper(filters: list[Json], body: Json, status: int | None = None) -> Json:
    chosen = filters[0] if len(filters) == 1 else {"and_filter": {"filters": filters}}
    made: Json = {"filter": chosen, "body_format_override": body}
    if status is not None:
        made["status_code"] = status
    return made


def _status(op: str, code: int) -> Json:
    return {"status_code_filter": {"comparison": {"op": op, "value": {"default_value": code, "runtime_key": "none"}}}}


_GRPC: Final[Json] = {
    "header_filter": {"header": {"name": "content-type", "string_match": {"prefix": "application/grpc"}}}
}
_PINNED: Final[Json] = {"header_filter": {"header": {"name": "x-model-version", "present_match": True}}}
# A token that is not meant for this gateway is answered with 403 by the filter; to the caller it is a bad token.
_JWT: Final[Json] = {
    "extension_filter": {
        "name": "envoy.access_loggers.extension_filters.cel",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.access_loggers.filters.cel.v3.ExpressionFilter",
            "expression": "response.code_details.startsWith('jwt_authn')",
        },
    }
}


def _text(message: str) -> Json:
    return {"text_format_source": {"inline_string": message}, "content_type": "text/plain"}


def _json(message: str) -> Json:
    return {
        "json_format": {
            "error": message,
            "code": "%RESPONSE_CODE%",
            "request_id": "%REQ(X-REQUEST-ID)%",
            **{part: f"%DYNAMIC_METADATA({NAMESPACE}:{part})%" for part in ("field", "expected", "got")},
        },
        "omit_empty_values": True,
        "content_type": "application/json",
    }
