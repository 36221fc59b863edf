"""Every mistake a caller can make: a 4xx that says what was wrong, and the engine never notices."""

import contextlib
import json
import socket

import pytest

from tests.e2e.load import Load

pytestmark = pytest.mark.processes

ROW = [0.5] * 30


def tensor(**changes):
    return {"inputs": [{"name": "X", "datatype": "FP32", "shape": [1, 30], "data": ROW, **changes}]}


BAD = {
    "a shape that would exhaust memory": (tensor(shape=[1099511627776, 20], data=[1]), "shape"),
    "a shape that overflows": (tensor(shape=[2**63 - 1, 3], data=[1]), "shape"),
    "a shape just beyond the data": (tensor(shape=[1000000000, 3], data=[1]), "shape"),
    "a huge shape of a type the model has not": (tensor(datatype="INT8", shape=[1, 2**40], data=[1]), "shape"),
    "a huge shape under an unknown name": (tensor(name="Y", shape=[2**40, 2], data=[1]), "shape"),
    "a negative shape": (tensor(shape=[-1, 30]), "shape"),
    "a shape that is not the data's": (tensor(shape=[2, 30]), "60"),
    "a fractional shape": (tensor(shape=[1.5, 30]), "shape"),
    "no shape": ({"inputs": [{"name": "X", "datatype": "FP32", "data": ROW}]}, "shape"),
    "too many columns": (tensor(shape=[1, 31], data=[*ROW, 1.0]), "31"),
    "too many rows": (tensor(shape=[129, 30], data=ROW * 129), "128"),
    "no rows": (tensor(shape=[0, 30], data=[]), ""),
    "the wrong datatype": (tensor(datatype="INT64", data=[1] * 30), "INT64"),
    "an unknown datatype": (tensor(datatype="FLOAT"), "FLOAT"),
    "an unknown name": (tensor(name="Y"), "Y"),
    "no inputs": ({"inputs": []}, "inputs"),
    "no body of the kind": ({"input": 1}, "inputs"),
    "text among numbers": (tensor(data=["a", *ROW[1:]]), "data"),
    "null among numbers": (tensor(data=[None, *ROW[1:]]), "data"),
    "NaN": (tensor(data=[float("nan"), *ROW[1:]]), "data"),
    "infinity": (tensor(data=[float("inf"), *ROW[1:]]), "data"),
    "a number beyond float32": (tensor(data=[1e39, *ROW[1:]]), "data"),
    "an unknown output": ({**tensor(), "outputs": [{"name": "Z"}]}, "Z"),
}
RAW = {
    "nothing": b"",
    "half a document": b'{"inputs": [',
    "not JSON": b"hello",
    "an array": b"[]",
    "one shape said twice": (
        b'{"inputs":[{"name":"X","datatype":"FP32","shape":[1,1],"shape":[1099511627776,20],"data":[1]}]}'
    ),
    "inputs said twice": (
        b'{"inputs":[],"inputs":[{"name":"X","datatype":"FP32","shape":[1099511627776,20],"data":[1]}]}'
    ),
    "a hidden shape": b'{"inputs":[{"name":"X","datatype":"FP32","sh\\u0061pe":[1099511627776,20],"data":[1]}]}',
    "a million brackets": b'{"inputs":' + b"[" * 1_000_000,
}


def post(site, token, body, *headers):
    host, port = site.platform.address.split(":")
    with socket.create_connection((host, int(port)), timeout=20) as s:
        head = [
            "POST /v2/models/risk/infer HTTP/1.1",
            f"Host: {host}",
            f"Authorization: Bearer {token}",
            "Connection: close",
            f"Content-Length: {len(body)}",
            *headers,
        ]
        # The answer to a body that is too large comes, and the connection ends, before all of it was sent.
        with contextlib.suppress(ConnectionError):
            s.sendall("\r\n".join(head).encode() + b"\r\n\r\n" + body)
        data = b""
        with contextlib.suppress(ConnectionError):
            while chunk := s.recv(65536):
                data += chunk
    head, _, text = data.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(text)


@pytest.fixture
def unharmed(live):
    before = live.revision(1)
    yield
    after = live.revision(1)
    assert (after["pid"], after["stubs"], after["restarts"]) == (before["pid"], before["stubs"], before["restarts"])


@pytest.mark.parametrize("name", BAD)
def test_a_mistake_gets_a_4xx_that_names_it(live, token, unharmed, name):
    body, said = BAD[name]
    status, answer = post(live, token, json.dumps(body).encode())
    assert status == 400, answer
    assert isinstance(answer["error"], str)
    assert answer["code"] == 400
    assert said in json.dumps(answer)


@pytest.mark.parametrize("name", RAW)
def test_a_body_that_is_no_request_gets_a_4xx(live, token, unharmed, name):
    status, answer = post(live, token, RAW[name])
    assert status == 400, answer
    assert isinstance(answer["error"], str)


def test_a_body_beyond_the_limit_gets_a_413(live, token, unharmed):
    status, answer = post(live, token, b" " * (5 * 1024 * 1024))
    assert (status, answer["code"]) == (413, 413)


@pytest.mark.parametrize("coding", ["br", "deflate", "zstd"])
def test_a_coding_that_the_guard_cannot_read_gets_a_415(live, token, unharmed, coding):
    status, _ = post(live, token, b"xxxx", f"Content-Encoding: {coding}")
    assert status == 415


def test_a_list_that_is_too_long_or_an_item_that_is_unknown_is_refused(shared, token):
    def ask(items):
        body = {
            "inputs": [
                {"name": "user_id", "datatype": "INT64", "shape": [1, 1], "data": [0]},
                {"name": "item_ids", "datatype": "INT64", "shape": [1, len(items)], "data": items},
            ]
        }
        host, port = shared.platform.address.split(":")
        with socket.create_connection((host, int(port)), timeout=20) as s:
            data = json.dumps(body).encode()
            s.sendall(
                f"POST /v2/models/recommend/infer HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n"
                f"Connection: close\r\nContent-Length: {len(data)}\r\n\r\n".encode()
                + data
            )
            answer = b""
            while chunk := s.recv(65536):
                answer += chunk
        return int(answer.split()[1]), answer.decode()

    assert ask([0, 1])[0] == 200
    for items, said in (([0] * 100_000, "item_ids"), ([10**9], ""), ([-(10**9)], "")):
        status, answer = ask(items)
        assert status == 400, answer
        assert said in answer


def test_bad_requests_in_the_same_batch_cost_the_others_nothing(live, token, unharmed):
    request = live.json("request", "risk")
    bad = json.dumps(tensor(shape=[1, 31], data=[*ROW, 1.0])).encode()
    with Load(live.platform.address, "risk", request["body"], request["token"], clients=8) as callers:
        for _ in range(100):
            assert post(live, token, bad)[0] == 400
    assert callers.failed == []
