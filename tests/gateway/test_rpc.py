"""The protocol over gRPC: whose model a message names, who may call what."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import numpy as np
import pytest
import tritonclient.grpc as triton
from gateway_harness import Gateway, serving
from tritonclient.grpc import service_pb2, service_pb2_grpc

from taxiway.core.split import TOTAL

pytestmark = pytest.mark.processes

SERVICE = "/inference.GRPCInferenceService/"


@pytest.fixture(scope="module")
def channel(risk: Gateway) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(f"127.0.0.1:{risk.port}") as one:
        yield one


def metadata(token: str, **more: str) -> list[tuple[str, str]]:
    return [("authorization", f"Bearer {token}"), *((k.replace("_", "-"), v) for k, v in more.items())]


def call(channel: grpc.Channel, method: str, message: bytes, sent: list[tuple[str, str]]) -> Any:
    """A unary call with the bytes of a message."""
    types = {
        "ModelInfer": "ModelInferResponse",
        "ModelReady": "ModelReadyResponse",
        "ModelMetadata": "ModelMetadataResponse",
    }
    answer = getattr(service_pb2, types.get(method, "ModelInferResponse"))
    return channel.unary_unary(SERVICE + method, lambda b: b, answer.FromString)(message, metadata=sent, timeout=10)


def refusal(what: Callable[[], Any]) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.RpcError) as raised:
        what()
    return raised.value.code(), raised.value.details()  # type: ignore[attr-defined]


def infer(model: str, **fields: Any) -> bytes:
    return bytes(service_pb2.ModelInferRequest(model_name=model, **fields).SerializeToString())


def test_the_official_client_works_unchanged(risk: Gateway) -> None:
    headers = {"authorization": f"Bearer {risk.token()}"}
    with triton.InferenceServerClient(f"127.0.0.1:{risk.port}") as client:
        assert client.is_server_live()
        assert client.is_server_ready()
        assert client.get_server_metadata(headers=headers).name == "risk@1"
        assert client.is_model_ready("risk", headers=headers)
        assert client.get_model_metadata("risk", headers=headers).platform == "risk@1"
        assert client.get_model_metadata("risk", "2", headers=headers).platform == "risk@2"
        values = triton.InferInput("X", [1, 3], "FP32")
        values.set_data_from_numpy(np.ones((1, 3), np.float32))
        assert client.infer("risk", [values], headers=headers).get_response().id == "risk@1"


def test_the_model_is_read_from_the_message_wherever_it_stands(risk: Gateway, channel: grpc.Channel) -> None:
    sent = metadata(risk.token())
    inputs = [service_pb2.ModelInferRequest.InferInputTensor(name="X", datatype="FP32", shape=[1, 300_000])]
    tail = service_pb2.ModelInferRequest(id="a", inputs=inputs, raw_input_contents=[b"\x0a\x01b" * 300_000])
    name = infer("risk")
    for message in (name, name + tail.SerializeToString(), tail.SerializeToString() + name, infer("idle") + name):
        assert call(channel, "ModelInfer", message, sent).id == "risk@1"


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (b"", grpc.StatusCode.INVALID_ARGUMENT),
        (infer(""), grpc.StatusCode.INVALID_ARGUMENT),
        (infer("../x"), grpc.StatusCode.INVALID_ARGUMENT),
        (infer("ri\nsk"), grpc.StatusCode.INVALID_ARGUMENT),
        (infer("r" * 64), grpc.StatusCode.INVALID_ARGUMENT),
        (b"\x0a\x7frisk", grpc.StatusCode.INVALID_ARGUMENT),
        (b"\x0a" + b"\xff" * 20, grpc.StatusCode.INVALID_ARGUMENT),
        (b"\x0b\x0c", grpc.StatusCode.INVALID_ARGUMENT),
        (b"\xff", grpc.StatusCode.INVALID_ARGUMENT),
        (infer("nope"), grpc.StatusCode.NOT_FOUND),
        (infer("risk") + infer("nope"), grpc.StatusCode.NOT_FOUND),
        (infer("idle"), grpc.StatusCode.UNAVAILABLE),
        (infer("risk", model_version="2"), grpc.StatusCode.PERMISSION_DENIED),
    ],
)
def test_a_message_that_names_no_served_model_is_refused(
    risk: Gateway, channel: grpc.Channel, message: bytes, code: grpc.StatusCode
) -> None:
    before = risk.served("risk@1")
    got, details = refusal(lambda: call(channel, "ModelInfer", message, metadata(risk.token())))
    assert got == code
    assert details
    assert not details.startswith("{")
    assert risk.served("risk@1") == before


def test_a_compressed_message_needs_its_model_in_the_metadata(risk: Gateway) -> None:
    message = infer("risk", raw_input_contents=[b"\0" * 10_000])
    with grpc.insecure_channel(f"127.0.0.1:{risk.port}", compression=grpc.Compression.Gzip) as channel:
        code, details = refusal(lambda: call(channel, "ModelInfer", message, metadata(risk.token())))
        assert code == grpc.StatusCode.INVALID_ARGUMENT
        assert "x-model: NAME" in details
        assert call(channel, "ModelInfer", message, metadata(risk.token(), x_model="risk")).id == "risk@1"


def test_an_operator_reaches_any_ready_revision_and_nobody_else_does(risk: Gateway, channel: grpc.Channel) -> None:
    pinned = metadata(risk.operator(), x_model_version="2")
    assert call(channel, "ModelInfer", infer("risk"), pinned).id == "risk@2"
    assert call(channel, "ModelInfer", infer("risk", model_version="2"), pinned).id == "risk@2"
    assert call(channel, "ModelInfer", infer("idle"), metadata(risk.operator(), x_model_version="1")).id == "idle@1"
    missing = metadata(risk.operator(), x_model_version="9")
    code, details = refusal(lambda: call(channel, "ModelInfer", infer("risk"), missing))
    assert (code, "ready revisions: 1, 2" in details) == (grpc.StatusCode.NOT_FOUND, True)
    ordinary = metadata(risk.token(), x_model_version="2")
    code, details = refusal(lambda: call(channel, "ModelInfer", infer("risk"), ordinary))
    assert (code, "only an operator's token" in details) == (grpc.StatusCode.UNAUTHENTICATED, True)


def test_internal_headers_from_outside_choose_nothing(risk: Gateway, channel: grpc.Channel) -> None:
    forged = metadata(risk.token(), x_taxiway_model="idle", x_taxiway_version="2", x_user="root")
    assert call(channel, "ModelInfer", infer("risk"), forged).id == "risk@1"
    assert risk.received("risk@1")["headers"]["x-user"] == "u1"
    assert "authorization" not in risk.received("risk@1")["headers"]


def test_without_a_good_token_a_call_is_unauthenticated(risk: Gateway, channel: grpc.Channel) -> None:
    for sent in ([], metadata("rubbish"), metadata(risk.token(audience="others")), metadata(risk.token(now=1000))):
        code, _ = refusal(lambda sent=sent: call(channel, "ModelInfer", infer("risk"), sent))  # type: ignore[misc]
        assert code == grpc.StatusCode.UNAUTHENTICATED


NOT_SERVED = [
    "RepositoryIndex",
    "RepositoryModelLoad",
    "RepositoryModelUnload",
    "ModelConfig",
    "ModelStatistics",
    "SystemSharedMemoryStatus",
    "SystemSharedMemoryRegister",
    "SystemSharedMemoryUnregister",
    "CudaSharedMemoryStatus",
    "CudaSharedMemoryRegister",
    "CudaSharedMemoryUnregister",
    "TraceSetting",
    "LogSettings",
]


def test_every_call_of_the_service_is_either_served_or_listed_here_as_not_served() -> None:
    served = {
        "ServerLive",
        "ServerReady",
        "ServerMetadata",
        "ModelReady",
        "ModelMetadata",
        "ModelInfer",
        "ModelStreamInfer",
    }
    every = {name for name in vars(service_pb2_grpc.GRPCInferenceServiceServicer) if name[0].isupper()}
    assert every == served | set(NOT_SERVED)


@pytest.mark.parametrize("method", NOT_SERVED)
def test_nothing_else_of_the_engine_is_reachable(risk: Gateway, channel: grpc.Channel, method: str) -> None:
    for token in (risk.token(), risk.operator()):
        code, _ = refusal(lambda token=token: call(channel, method, infer("risk"), metadata(token, x_model="risk")))  # type: ignore[misc]
        assert code == grpc.StatusCode.UNIMPLEMENTED


def test_a_message_beyond_the_limit_is_refused(risk: Gateway, channel: grpc.Channel) -> None:
    message = infer("risk", raw_input_contents=[b"\0" * risk.desired.max_body_bytes])
    code, details = refusal(lambda: call(channel, "ModelInfer", message, metadata(risk.token())))
    assert (code, "larger than" in details) == (grpc.StatusCode.RESOURCE_EXHAUSTED, True)


def stream(channel: grpc.Channel, sent: list[tuple[str, str]], count: int = 3) -> list[str]:
    """The revisions that answer the messages of one stream."""
    kind = service_pb2.ModelStreamInferResponse
    open_stream = channel.stream_stream(SERVICE + "ModelStreamInfer", lambda b: b, kind.FromString)
    return [one.infer_response.id for one in open_stream(iter([infer("risk")] * count), metadata=sent, timeout=10)]


def test_a_stream_goes_to_the_model_that_its_metadata_names(risk: Gateway, channel: grpc.Channel) -> None:
    assert stream(channel, metadata(risk.token(), x_model="risk")) == ["risk@1"] * 3
    pinned = metadata(risk.operator(), x_model="risk", x_model_version="2")
    assert stream(channel, pinned) == ["risk@2"] * 3
    for sent, code in [
        (metadata(risk.token()), grpc.StatusCode.INVALID_ARGUMENT),
        (metadata(risk.token(), x_model="nope"), grpc.StatusCode.NOT_FOUND),
        (metadata(risk.token(), x_model="idle"), grpc.StatusCode.UNAVAILABLE),
        (metadata(risk.token(), x_model="risk", x_model_version="2"), grpc.StatusCode.UNAUTHENTICATED),
        ([("x-model", "risk")], grpc.StatusCode.UNAUTHENTICATED),
    ]:
        assert refusal(lambda sent=sent: stream(channel, sent))[0] == code  # type: ignore[misc]


def test_a_clients_deadline_is_kept(risk: Gateway, channel: grpc.Channel) -> None:
    sent = metadata(risk.token(), x_test_delay_ms="3000")
    infer_call = channel.unary_unary(SERVICE + "ModelInfer", lambda b: b, lambda b: b)
    assert (
        refusal(lambda: infer_call(infer("risk"), metadata=sent, timeout=0.3))[0] == grpc.StatusCode.DEADLINE_EXCEEDED
    )


def test_the_split_is_kept_per_call(gateway: Gateway) -> None:
    serving(gateway, gateway.model("risk", {1: TOTAL // 2, 2: TOTAL // 2}))
    with grpc.insecure_channel(f"127.0.0.1:{gateway.port}") as channel:
        sent = metadata(gateway.token())
        got = Counter(call(channel, "ModelInfer", infer("risk"), sent).id for _ in range(400))
    assert set(got) == {"risk@1", "risk@2"}
    assert abs(got["risk@1"] - 200) < 4 * 10


def test_a_timeout_of_the_engine_is_a_deadline(gateway: Gateway) -> None:
    serving(gateway, gateway.model("risk", {1: TOTAL}, timeout_ms=300))
    with grpc.insecure_channel(f"127.0.0.1:{gateway.port}") as channel:
        sent = metadata(gateway.token(), x_test_delay_ms="3000")
        assert refusal(lambda: call(channel, "ModelInfer", infer("risk"), sent))[0] in (
            grpc.StatusCode.DEADLINE_EXCEEDED,
            grpc.StatusCode.UNAVAILABLE,
        )


@pytest.mark.parametrize(
    "frame", [b"", b"\0\0", b"\0\0\0\0\1", b"\2" + struct.pack(">I", 0), b"\0" + struct.pack(">I", 0) + b"x"]
)
def test_bytes_that_are_no_message_are_refused(risk: Gateway, frame: bytes) -> None:
    answer = risk.ask(path=SERVICE + "ModelInfer", body=frame, headers={"content-type": "application/grpc"})
    assert (answer.status, answer.headers["grpc-status"]) == (200, "3")
