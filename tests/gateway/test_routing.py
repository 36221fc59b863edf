"""Who may reach what over HTTP, and which revision answers."""

from __future__ import annotations

import base64
import http.client
import json
import math
import re
import socket
import time
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from gateway_harness import BODY, Gateway, serving, wait_for

from taxiway.gateway import tokens

pytestmark = pytest.mark.processes

INFER = "/v2/models/risk/infer"


def one_shape(answer: Any, status: int) -> dict[str, Any]:
    """The body of a refusal, after checking that it is in the shape that every error has."""
    assert answer.status == status, answer.body
    told = answer.json
    assert set(told) >= {"error", "code", "request_id"}
    assert isinstance(told["error"], str)
    assert told["code"] == status
    assert told["request_id"] == answer.headers["x-request-id"]
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["server"] == "taxiway"
    return told


# --- what is reachable ---


@pytest.mark.parametrize(
    ("method", "path", "arrives_as"),
    [
        ("POST", INFER, INFER),
        ("POST", f"{INFER}?a=b", f"{INFER}?a=b"),
        ("GET", "/v2/models/risk", "/v2/models/risk"),
        ("GET", "/v2/models/risk/ready", "/v2/models/risk/ready"),
        ("GET", "/v2/models/risk/versions/1", "/v2/models/risk"),
        ("GET", "/v2/models/risk/versions/1/ready", "/v2/models/risk/ready"),
        ("GET", "/v2", "/v2"),
        ("GET", "/v2/health/ready", "/v2/health/ready"),
        ("POST", "//v2/./models//risk/x/../infer", INFER),
    ],
)
def test_inference_metadata_and_health_reach_the_revision_with_traffic(
    risk: Gateway, method: str, path: str, arrives_as: str
) -> None:
    answer = risk.ask(method, path)
    assert answer.status == 200, answer.body
    assert answer.json == {"revision": "risk@1", "path": arrives_as}
    assert answer.headers["x-model-revision"] == "risk@1"


HIDDEN = [
    ("POST", "/v2/repository/index"),
    ("POST", "/v2/repository/models/risk/load"),
    ("POST", "/v2/repository/models/risk/unload"),
    ("GET", "/v2/models/risk/config"),
    ("GET", "/v2/models/risk/stats"),
    ("GET", "/v2/models/stats"),
    ("GET", "/v2/models/risk/trace/setting"),
    ("POST", "/v2/models/risk/trace/setting"),
    ("POST", "/v2/models/risk/generate"),
    ("POST", "/v2/models/risk/generate_stream"),
    ("GET", "/v2/trace/setting"),
    ("POST", "/v2/logging"),
    ("GET", "/v2/logging"),
    ("GET", "/v2/systemsharedmemory/status"),
    ("POST", "/v2/systemsharedmemory/region/r/register"),
    ("POST", "/v2/cudasharedmemory/region/r/register"),
    ("GET", "/v2/models/risk/versions/1/config"),
    ("GET", "/v2/models/risk/versions/9"),
    ("GET", "/v2/models/risk/versions/01/ready"),
    ("GET", "/v2/models/risk/versions"),
    ("GET", "/v2/models/"),
    ("POST", "/v2/models/risk/infer/"),
    ("POST", "/v2/models/Risk/infer"),
    ("POST", "/v2/models/riskier/infer"),
    ("POST", "/V2/models/risk/infer"),
    ("GET", "/metrics"),
    ("GET", "/"),
    ("GET", "/stats"),
    ("GET", "/config_dump"),
    ("POST", "/quitquitquit"),
    ("POST", "/inference.GRPCInferenceService/ModelInfer"),
]


@pytest.mark.parametrize(("method", "path"), HIDDEN)
def test_nothing_else_of_the_engine_is_reachable(risk: Gateway, method: str, path: str) -> None:
    before = risk.served("risk@1")
    for token in (risk.token(), risk.operator()):
        assert path.split("?")[0] in one_shape(risk.ask(method, path, token=token), 404)["error"]
    one_shape(risk.ask(method, path, token=None), 401)
    assert risk.served("risk@1") == before


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", INFER),
        ("PUT", INFER),
        ("HEAD", "/v2/models/risk"),
        ("DELETE", "/v2/models/risk"),
        ("POST", "/v2/models/risk/ready"),
        ("POST", "/v2"),
        ("POST", "/v2/health/live"),
        ("OPTIONS", "/v2/health/ready"),
    ],
)
def test_a_method_that_is_not_served_is_named_as_the_fault(risk: Gateway, method: str, path: str) -> None:
    answer = risk.ask(method, path)
    assert answer.status == 405
    if method != "HEAD":
        assert "only" in one_shape(answer, 405)["error"]


def test_an_unknown_model_is_named(risk: Gateway) -> None:
    assert "/v2/models/nope/infer" in one_shape(risk.ask(path="/v2/models/nope/infer"), 404)["error"]


def test_a_known_model_without_traffic_says_so(risk: Gateway) -> None:
    for method, path in (
        ("POST", "/v2/models/idle/infer"),
        ("GET", "/v2/models/idle"),
        ("GET", "/v2/models/idle/ready"),
    ):
        assert (
            "'idle' is known but no revision of it is given traffic" in one_shape(risk.ask(method, path), 503)["error"]
        )


def test_health_needs_no_token(risk: Gateway) -> None:
    assert risk.ask("GET", "/v2/health/live", token=None).status == 200
    assert risk.ask("GET", "/v2/health/ready", token=None).status == 200


# --- the split ---


def test_the_split_is_kept_per_request(gateway: Gateway) -> None:
    serving(gateway, gateway.model("risk", {1: 9000, 2: 1000}))
    count = 6000
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=15)
    headers = {"authorization": f"Bearer {gateway.token()}", "x-test-light": "1"}
    got = []
    for _ in range(count):
        connection.request("POST", INFER, json.dumps(BODY), headers)
        answer = connection.getresponse()
        answer.read()
        got.append(answer.headers["x-model-revision"])
    connection.close()
    assert set(got) == {"risk@1", "risk@2"}
    z = (got.count("risk@2") - 0.1 * count) / math.sqrt(count * 0.1 * 0.9)
    assert abs(z) < 4, z
    assert gateway.served("risk@2") == got.count("risk@2")


# --- pins ---


@pytest.mark.parametrize(
    ("method", "path"), [("POST", INFER), ("GET", "/v2/models/risk"), ("GET", "/v2/models/risk/ready")]
)
def test_an_operator_reaches_any_ready_revision(risk: Gateway, method: str, path: str) -> None:
    for number in ("1", "2"):
        answer = risk.ask(method, path, headers={"x-model-version": number}, token=risk.operator())
        assert (answer.status, answer.json["revision"]) == (200, f"risk@{number}")
    answer = risk.ask(path="/v2/models/idle/infer", headers={"x-model-version": "1"}, token=risk.operator())
    assert answer.json["revision"] == "idle@1"
    assert "x-model-version" not in risk.received("idle@1")["headers"]


@pytest.mark.parametrize("number", ["1", "2", "9"])
def test_an_ordinary_caller_may_not_pin(risk: Gateway, number: str) -> None:
    answer = risk.ask(headers={"x-model-version": number})
    assert "only an operator's token may choose a revision" in one_shape(answer, 401)["error"]
    assert one_shape(risk.ask(path=f"/v2/models/risk/versions/{number}/infer"), 404 if number == "9" else 401)


@pytest.mark.parametrize("number", ["9", "01", "", "1,2", "latest", "x" * 200])
def test_a_pin_on_a_revision_that_is_not_ready_names_those_that_are(risk: Gateway, number: str) -> None:
    answer = risk.ask(headers={"x-model-version": number}, token=risk.operator())
    assert "ready revisions: 1, 2" in one_shape(answer, 404)["error"]


def test_the_path_of_a_revision_answers_operators(risk: Gateway) -> None:
    answer = risk.ask(path="/v2/models/risk/versions/2/infer", token=risk.operator())
    assert answer.json == {"revision": "risk@2", "path": INFER}
    answer = risk.ask(path="/v2/models/risk/versions/2/infer", body=b"{}", token=risk.operator())
    assert one_shape(answer, 400)["field"] == "inputs"


# --- tokens ---


def unsigned(**changes: Any) -> str:
    now = int(time.time())
    claims = {"iss": "https://callers", "aud": "models", "sub": "u1", "app": "web", "exp": now + 600, **changes}

    def part(value: Any) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

    return f"{part({'alg': 'none', 'typ': 'JWT'})}.{part(claims)}."


def by_another_key() -> str:
    key = rsa.generate_private_key(65537, 2048)
    claims = {"iss": "https://callers", "aud": "models", "sub": "u1", "exp": int(time.time()) + 600}
    return jwt.encode(claims, key, algorithm="RS256")


def signed_with_the_public_key(gateway: Gateway) -> str:
    public = json.loads(tokens.jwks(gateway.home / "keys"))["keys"][0]
    pem = jwt.PyJWK(public).key.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    claims = {"iss": "https://callers", "aud": "models", "sub": "u1", "exp": int(time.time()) + 600}
    return jwt.encode(claims, base64.b64encode(pem), algorithm="HS256", headers={"kid": public["kid"]})


def tampered(token: str) -> str:
    head, claims, signature = token.split(".")
    value = json.loads(base64.urlsafe_b64decode(claims + "=="))
    value["sub"] = "root"
    return f"{head}.{base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b'=').decode()}.{signature}"


def bad_tokens(gateway: Gateway) -> dict[str, str | None]:
    now = int(time.time())
    return {
        "missing": None,
        "rubbish": "rubbish",
        "expired": gateway.token(now=now - 1000, ttl_s=600),
        "tampered": tampered(gateway.token()),
        "wrong audience": gateway.token(audience="others"),
        "operators' audience with callers' issuer": gateway.token(audience="operate"),
        "wrong issuer": gateway.token(issuer="https://elsewhere"),
        "no algorithm": unsigned(),
        "no algorithm, role of an operator": unsigned(iss="https://operators", aud="operate", role="operator"),
        "another key": by_another_key(),
        "public key as a secret": signed_with_the_public_key(gateway),
    }


@pytest.mark.parametrize("path", [INFER, "/v2/models/risk/versions/2/infer"])
def test_a_bad_token_gets_401_before_the_engine_is_touched(risk: Gateway, path: str) -> None:
    before = risk.served("risk@1") + risk.served("risk@2")
    for name, token in bad_tokens(risk).items():
        told = one_shape(risk.ask(path=path, token=token), 401)
        assert "token" in told["error"], name
    assert risk.served("risk@1") + risk.served("risk@2") == before


def test_a_token_in_the_query_counts_for_nothing_and_is_not_logged(risk: Gateway) -> None:
    secret = risk.token()
    refused = risk.ask(path=f"{INFER}?access_token={secret}", token=None, headers={"x-request-id": "in-the-query"})
    one_shape(refused, 401)
    wait_for(lambda: any(line["request_id"] == "in-the-query" for line in risk.log()))
    assert secret not in Path(risk.desired.access_log).read_text()


def test_an_operators_token_serves_for_ordinary_requests_too(risk: Gateway) -> None:
    assert risk.ask(token=risk.operator()).json["revision"] == "risk@1"


# --- headers ---

FORGED = {
    "x-user": "root",
    "x-app": "admin",
    "x-role": "operator",
    "x-roles": "operator",
    "x-device": "d",
    "x-taxiway-model": "idle",
    "x-taxiway-version": "2",
    "x-envoy-upstream-rq-timeout-ms": "1",
    "x-envoy-retry-on": "5xx",
    "x-model-revision": "risk@9",
    "cookie": "a=b",
    "accept-encoding": "gzip",
}


def test_identity_and_control_headers_cannot_be_forged(risk: Gateway) -> None:
    answer = risk.ask(headers=FORGED)
    assert answer.status == 200
    assert answer.headers["x-model-revision"] == "risk@1"
    seen = risk.received("risk@1")["headers"]
    assert (seen["x-user"], seen["x-app"]) == ("u1", "web")
    gone = {
        "authorization",
        "x-role",
        "x-roles",
        "x-device",
        "x-taxiway-model",
        "x-taxiway-version",
        "x-model-revision",
    }
    assert not (gone | {"cookie", "accept-encoding", "x-envoy-retry-on", "x-envoy-upstream-rq-timeout-ms"}) & set(seen)
    assert not [name for name in answer.headers if name.startswith("x-envoy")]


def test_without_a_token_no_identity_header_survives(risk: Gateway) -> None:
    assert risk.ask("GET", "/v2/health/ready", headers=FORGED, token=None).status == 200
    assert not {"x-user", "x-app", "x-role"} & set(risk.received("risk@1")["headers"])


def test_a_request_id_is_taken_or_made_and_always_returned(risk: Gateway) -> None:
    given = risk.ask(headers={"x-request-id": "mine-1"})
    assert given.headers["x-request-id"] == risk.received("risk@1")["headers"]["x-request-id"] == "mine-1"
    assert one_shape(risk.ask(headers={"x-request-id": "mine-2"}, body=b"{}"), 400)["request_id"] == "mine-2"
    assert re.fullmatch(r"[0-9a-f-]{36}", risk.ask().headers["x-request-id"])


def test_each_request_leaves_one_line_that_says_who_what_and_how_it_went(risk: Gateway) -> None:
    risk.ask(headers={"x-request-id": "logged-1"})
    risk.ask(headers={"x-request-id": "logged-2"}, body=b"[]")
    risk.ask(headers={"x-request-id": "logged-3"}, token=None)

    def lines() -> list[dict[str, Any]]:
        return [line for line in risk.log() if str(line["request_id"]).startswith("logged-")]

    wait_for(lambda: len(lines()) == 3)
    served, refused, unknown = lines()
    assert {k: served[k] for k in ("user", "app", "model", "revision", "status", "method", "path", "protocol")} == {
        "user": "u1",
        "app": "web",
        "model": "risk",
        "revision": "risk@1",
        "status": 200,
        "method": "POST",
        "path": INFER,
        "protocol": "HTTP/1.1",
    }
    assert served["latency_us"] >= served["upstream_us"] > 0
    assert (served["flags"], served["attempts"], served["bytes_in"]) == ("-", 1, len(json.dumps(BODY)))
    assert (refused["status"], refused["refused_field"], refused["revision"]) == (400, "body, byte 1", None)
    assert (unknown["status"], unknown["user"], unknown["details"][:9]) == (401, None, "jwt_authn")


# --- rough treatment ---


def spoken(gateway: Gateway, text: bytes) -> bytes:
    """The head of what the gateway says to raw bytes."""
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=15) as one:
        one.sendall(text)
        got = b""
        while b"\r\n\r\n" not in got and (part := one.recv(65536)):
            got += part
    return got


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (b"host: a\r\nx-big: " + b"x" * 40_000, 431),
        (b"host: a\r\n" + b"\r\n".join(b"x-%d: 1" % i for i in range(100)), 431),
        (b"host: a\r\nx_user: root", 400),
        (b"host: a\r\ncontent-length: 1\r\ncontent-length: 2", 400),
        (b"host: a\r\ncontent-length: 1\r\ntransfer-encoding: chunked", 400),
        (b"x: y", 400),
    ],
)
def test_dangerous_headers_are_refused(risk: Gateway, headers: bytes, status: int) -> None:
    answer = spoken(risk, b"GET /v2/health/live HTTP/1.1\r\n" + headers + b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 %d" % status)


@pytest.mark.parametrize("path", [b"/v2/models%2frisk/config", b"/v2/models/risk%5cconfig", b"/v2/models/ri%00sk"])
def test_escaped_slashes_and_zero_bytes_are_refused(risk: Gateway, path: bytes) -> None:
    answer = spoken(risk, b"GET " + path + b" HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
    assert answer.split()[1] in (b"400", b"401")


def test_another_spelling_of_a_path_meets_the_same_rules(risk: Gateway) -> None:
    for path in (
        "//v2//models/risk/config",
        "/v2/./models/risk/config",
        "/v2/models/%72isk/config",
        "/v2/x/../logging",
    ):
        one_shape(risk.ask("GET", path), 404)


def test_an_upgrade_to_another_protocol_is_not_taken(risk: Gateway) -> None:
    answer = spoken(
        risk,
        b"GET /v2/health/live HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
    )
    assert answer.split()[1] in (b"403", b"400")


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_beyond_the_limit_is_refused_and_one_at_the_limit_is_not(risk: Gateway, chunked: bool) -> None:
    limit = risk.desired.max_body_bytes
    text = json.dumps(BODY).encode()
    for size, status in ((limit, 200), (limit + 1, 413)):
        padded = text + b" " * (size - len(text))
        answer = risk.ask(body=iter([padded]) if chunked else padded)
        assert answer.status == status
        if status == 413:
            assert f"larger than {limit} bytes" in one_shape(answer, 413)["error"]


def test_a_timeout_of_the_engine_is_the_gateways(gateway: Gateway) -> None:
    serving(gateway, gateway.model("risk", {1: 10_000}, timeout_ms=300))
    began = time.monotonic()
    one_shape(gateway.ask(headers={"x-test-delay-ms": "3000"}), 504)
    assert time.monotonic() - began < 2


def test_an_engine_that_is_gone_is_503(gateway: Gateway) -> None:
    serving(gateway, gateway.model("risk", {1: 10_000}))
    gateway.stop_engine("risk@1")
    one_shape(gateway.ask(), 503)
