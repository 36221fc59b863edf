"""The client against servers that answer oddly, or not at all."""

import math
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from taxiway.core.sample import Tensor
from taxiway.engine import client
from taxiway.engine.client import EngineError

ONE = {"X": Tensor("FP32", (1, 1), (1.0,))}


@contextmanager
def answering(reply: bytes | None) -> Iterator[tuple[str, list[bytes]]]:
    """A server that takes one connection, reads, and sends `reply` (None: nothing, for as long as it is open)."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        over = threading.Event()

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                heard.append(connection.recv(65536))
                if reply is None:
                    over.wait(10)
                else:
                    connection.sendall(reply)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}", heard
        over.set()
        thread.join()


def reply(status: str, body: str) -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


def test_bare_nan_and_infinity_are_read() -> None:
    body = '{"outputs":[{"name":"Y","datatype":"FP32","shape":[1,3],"data":[NaN,Infinity,-Infinity]}]}'
    with answering(reply("200 OK", body)) as (address, _):
        got = client.infer(address, "m", ONE)["Y"].data
    assert math.isnan(got[0])
    assert got[1:] == (math.inf, -math.inf)


def test_headers_and_version_are_sent() -> None:
    body = '{"outputs":[]}'
    with answering(reply("200 OK", body)) as (address, heard):
        assert client.infer(address, "m", ONE, version=3, headers={"Authorization": "Bearer t"}) == {}
    assert heard[0].startswith(b"POST /v2/models/m/versions/3/infer HTTP/1.1\r\n")
    assert b"Authorization: Bearer t\r\n" in heard[0]


@pytest.mark.parametrize(
    ("answer", "status", "message"),
    [
        (reply("400 Bad Request", '{"error":"wrong"}'), 400, "wrong"),
        (reply("503 Service Unavailable", "no healthy upstream"), 503, "no healthy upstream"),
        (reply("500 Oops", ""), 500, "answered 500"),
        (reply("200 OK", "[]"), 200, "not an inference"),
        (
            reply("200 OK", '{"outputs":[{"name":"Y","datatype":"FP32","shape":[2],"data":[1]}]}'),
            200,
            "not an inference",
        ),
        (b"", 0, "did not answer POST"),
        (b"nonsense\r\n\r\n", 0, "did not answer POST"),
    ],
    ids=["error", "plain", "nothing said", "not an object", "inconsistent", "closed", "not HTTP"],
)
def test_everything_else_is_an_error_with_its_status(answer: bytes, status: int, message: str) -> None:
    with answering(answer) as (address, _), pytest.raises(EngineError) as error:
        client.infer(address, "m", ONE, timeout_s=5)
    assert error.value.status == status
    assert message in error.value.message


def test_a_silent_server_is_given_up_and_is_not_ready() -> None:
    with answering(None) as (address, _), pytest.raises(EngineError, match="did not answer"):
        client.infer(address, "m", ONE, timeout_s=0.1)
    with answering(None) as (address, _):
        assert not client.model_ready(address, "m", timeout_s=0.1)
    assert client.executions("127.0.0.1:9", "m") is None
