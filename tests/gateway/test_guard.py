"""The guard: what reaches an engine is well-formed, and every error leaves in one shape."""

from __future__ import annotations

import gzip
import http.client
import json
import math
import random
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from gateway_harness import BODY, Answer, Gateway
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.processes

MANY = settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])


class Line:
    """One kept-alive connection: thousands of bodies in seconds."""

    def __init__(self, gateway: Gateway) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=15)
        self.token = gateway.token()

    def send(self, body: Any, **headers: str) -> Answer:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent = {"authorization": f"Bearer {self.token}", **{k.replace("_", "-"): v for k, v in headers.items()}}
        self.connection.request("POST", "/v2/models/risk/infer", data, sent)
        got = self.connection.getresponse()
        return Answer(got.status, {k.lower(): v for k, v in got.getheaders()}, got.read())


@pytest.fixture(scope="module")
def line(risk: Gateway) -> Iterator[Line]:
    one = Line(risk)
    yield one
    one.connection.close()


def body(**changes: Any) -> dict[str, Any]:
    return {"inputs": [{**BODY["inputs"][0], **changes}]}


def typed(datatype: str, *data: Any) -> dict[str, Any]:
    return body(datatype=datatype, shape=[len(data)], data=list(data))


def raw(text: str) -> bytes:
    return text.encode()


def data(text: str, datatype: str = "FP32", shape: str = "[1]") -> bytes:
    return raw(f'{{"inputs":[{{"name":"X","shape":{shape},"datatype":"{datatype}","data":{text}}}]}}')


ACCEPTED: dict[str, Any] = {
    "as documented": BODY,
    "nested values": body(shape=[3, 1], data=[[1], [2], [3]]),
    "deeply nested": body(shape=[1, 1, 3], data=[[[1, 2, 3]]]),
    "data before its type": raw('{"inputs":[{"data":[1,2],"datatype":"INT8","shape":[2],"name":"X"}]}'),
    "white space everywhere": raw(
        ' {\n"inputs" :\t[ { "name" : "X" , "shape":[ 2 ],"datatype":"FP32","data":[ 1 , 2 ] } ] }\r\n'
    ),
    "no values": body(shape=[0, 3], data=[]),
    "no values, nested": body(shape=[2, 0], data=[[], []]),
    "scalar": body(shape=[], data=[1]),
    "exponents": typed("FP64", 1e300, -1.5e-300),
    "largest single": data("[3.4028235e38]"),
    "many digits": data("[0.1234567890123456789012345678901234567890123]"),
    "forty digits": data(f"[{'1' * 39}]"),
    "bounds of INT8": typed("INT8", -128, 127),
    "bounds of INT64": typed("INT64", -(2**63), 2**63 - 1),
    "bounds of UINT64": typed("UINT64", 0, 2**64 - 1),
    "truth values": typed("BOOL", True, False),
    "strings": typed("BYTES", "", "a,]}", 'q"uote', "ü", "\n", "\\"),
    "with everything optional": {
        "id": "r1",
        "parameters": {"priority": 1, "nested": {"a": [1, {"b": None}]}},
        "inputs": [{**BODY["inputs"][0], "parameters": {"note": "x"}}],
        "outputs": [{"name": "p", "parameters": {"classification": 2}}],
    },
    "no outputs asked": {**BODY, "outputs": []},
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_a_valid_request_reaches_the_engine_unchanged(risk: Gateway, line: Line, name: str) -> None:
    sent = ACCEPTED[name]
    assert line.send(sent).status == 200
    expected = sent if isinstance(sent, bytes) else json.dumps(sent).encode()
    assert risk.received("risk@1")["body"].encode("latin-1") == expected


# what is sent -> field, expected, got
REFUSED: dict[str, tuple[Any, str, str, str]] = {
    "huge shape": (
        body(shape=[1099511627776, 20], data=[1]),
        "inputs[0].shape",
        "at most 2147483647 values",
        "1099511627776",
    ),
    "huge product": (body(shape=[1000000000, 3], data=[1]), "inputs[0].shape", "at most", "3"),
    "overflowing product": (body(shape=[2**31 - 1] * 8, data=[1]), "inputs[0].shape", "at most", "2147483647"),
    "product of 2^64": (body(shape=[2**32, 2**32], data=[]), "inputs[0].shape", "at most", "4294967296"),
    "huge then zero": (body(shape=[2**40, 0], data=[]), "inputs[0].shape", "at most", "1099511627776"),
    "zero then huge": (body(shape=[0, 2**40], data=[]), "inputs[0].shape", "at most", "1099511627776"),
    "longest int": (body(shape=[2**63 - 1, 3], data=[1]), "inputs[0].shape[0]", "below 10^15", "9223372036854775807"),
    "negative": (body(shape=[-1, 3]), "inputs[0].shape[0]", "a non-negative integer", "-1"),
    "minus zero": (data("[]", shape="[-0]"), "inputs[0].shape[0]", "a non-negative integer", "-0"),
    "fraction in shape": (body(shape=[1, 3.5]), "inputs[0].shape[1]", "integer", "3.5"),
    "exponent in shape": (data("[1]", shape="[1e0]"), "inputs[0].shape[0]", "integer", "1e0"),
    "text in shape": (body(shape=["3"]), "inputs[0].shape[0]", "integer", '"3"'),
    "nested shape": (body(shape=[[3]]), "inputs[0].shape[0]", "integer", ""),
    "shape is a number": (body(shape=3), "inputs[0].shape", "an array", "3"),
    "leading zero": (data("[1]", shape="[01]"), "body, byte", "','", "1"),
    "too many dimensions": (body(shape=[1] * 17, data=[1]), "inputs[0].shape", "at most 16 dimensions", "more"),
    "too few values": (body(data=[1, 2]), "inputs[0].data", "3 values", "2"),
    "too many values": (body(data=[1, 2, 3, 4]), "inputs[0].data", "3 values", "4"),
    "empty nested": (body(shape=[1], data=[[]]), "inputs[0].data", "1 values", "0"),
    "text among numbers": (body(data=[1, "a", 3]), "inputs[0].data[1]", "a finite FP32 number", '"a"'),
    "null": (body(data=[1, None, 3]), "inputs[0].data[1]", "a finite FP32 number", "null"),
    "truth among numbers": (body(data=[1, True, 3]), "inputs[0].data[1]", "a finite FP32 number", "true"),
    "object among numbers": (body(data=[1, {}, 3]), "inputs[0].data[1]", "a finite FP32 number", ""),
    "NaN": (data("[NaN]"), "inputs[0].data[0]", "a finite FP32 number", "NaN"),
    "Infinity": (data("[-Infinity]"), "body, byte", "a digit", "Infinity"),
    "beyond single": (data("[1,1e39]", shape="[2]"), "inputs[0].data[1]", "a finite FP32 number", "1e39"),
    "beyond single in digits": (data(f"[{'9' * 39}]"), "inputs[0].data[0]", "a finite FP32 number", "999"),
    "beyond double": (data("[-1e400]", "FP64"), "inputs[0].data[0]", "a finite FP64 number", "-1e400"),
    "beyond INT8": (typed("INT8", 1, 300), "inputs[0].data[1]", "an integer from -128 to 127", "300"),
    "zero with an unreadable exponent": (data("[0e99999999999]"), "inputs[0].data[0]", "a finite", "0e99999999999"),
    "just beyond INT8": (typed("INT8", 128), "inputs[0].data[0]", "an integer from -128 to 127", "128"),
    "just below INT8": (typed("INT8", -129), "inputs[0].data[0]", "an integer from -128 to 127", "-129"),
    "beyond INT64": (typed("INT64", 2**63), "inputs[0].data[0]", "an integer", "9223372036854775808"),
    "below INT64": (typed("INT64", -(2**63) - 1), "inputs[0].data[0]", "an integer", "-9223372036854775809"),
    "beyond UINT64": (typed("UINT64", 2**64), "inputs[0].data[0]", "from 0 to", "18446744073709551616"),
    "negative unsigned": (typed("UINT8", -1), "inputs[0].data[0]", "an integer from 0 to 255", "-1"),
    "fraction in INT64": (typed("INT64", 1.5), "inputs[0].data[0]", "an integer", "1.5"),
    "whole fraction in INT64": (typed("INT64", 2.0), "inputs[0].data[0]", "an integer", "2.0"),
    "exponent in INT64": (data("[1e3]", "INT64"), "inputs[0].data[0]", "an integer", "1e3"),
    "1 for true": (typed("BOOL", 1), "inputs[0].data[0]", "true or false", "1"),
    "null for true": (typed("BOOL", None), "inputs[0].data[0]", "true or false", "null"),
    "number for text": (typed("BYTES", 1), "inputs[0].data[0]", "a string", "1"),
    "half in JSON": (typed("FP16", 1), "inputs[0].data", "FP16 as binary data", "an array"),
    "unknown type": (typed("FP128", 1), "inputs[0].datatype", "BOOL, INT8", '"FP128"'),
    "type in small letters": (typed("fp32", 1), "inputs[0].datatype", "BOOL, INT8", '"fp32"'),
    "type is a number": (body(datatype=1), "inputs[0].datatype", "a string", "1"),
    "name is a number": (body(name=1), "inputs[0].name", "a string", "1"),
    "data is a number": (body(data=1), "inputs[0].data", "an array", "1"),
    "inputs is an object": ({"inputs": {}}, "inputs", "an array of objects", ""),
    "inputs is empty": ({"inputs": []}, "inputs", "at least one input", "none"),
    "input is a number": ({"inputs": [1]}, "inputs[0]", "an object", "1"),
    "second input": (
        {"inputs": [BODY["inputs"][0], {**BODY["inputs"][0], "data": [1]}]},
        "inputs[1].data",
        "3 values",
        "1",
    ),
    "outputs is an object": ({**BODY, "outputs": {}}, "outputs", "an array of objects", ""),
    "output without name": ({**BODY, "outputs": [{}]}, "outputs[0].name", "a string", "nothing"),
    "output is text": ({**BODY, "outputs": ["p"]}, "outputs[0]", "an object", '"p"'),
    "id is a number": ({**BODY, "id": 7}, "id", "a string", "7"),
    "parameters is a list": ({**BODY, "parameters": []}, "parameters", "an object", ""),
    "size without length": (
        {"inputs": [{"name": "X", "shape": [1], "datatype": "FP32", "parameters": {"binary_data_size": 4}}]},
        "Inference-Header-Content-Length",
        "the length of the JSON part",
        "nothing",
    ),
    "shared memory": (
        {"inputs": [{"name": "X", "shape": [1], "datatype": "FP32", "parameters": {"shared_memory_region": "r"}}]},
        "inputs[0].data",
        "an array of values",
        "nothing",
    ),
    "empty": (b"", "body", "a JSON object", "nothing"),
    "white space": (b"  \n", "body", "a JSON object", "nothing"),
    "array": (b"[]", "body, byte 1", "a JSON object", "["),
    "text": (b"hello", "body, byte 1", "a JSON object", "hello"),
    "empty object": (b"{}", "inputs", "an array of objects", "nothing"),
    "cut off": (b'{"inputs":[{"name":"X","sha', "body, byte 28", "a closing quote", "the end"),
    "two bodies": (json.dumps(BODY).encode() * 2, "body, byte", "the end of the body", ""),
    "rubbish after": (json.dumps(BODY).encode() + b" x", "body, byte", "the end of the body", "x"),
    "comma before the end": (b'{"inputs":[],}', "inputs", "at least one", "none"),
    "comma after the last value": (data("[1,]"), "inputs[0].data[1]", "number", ""),
    "comma first": (data("[,1]"), "inputs[0].data[0]", "number", ""),
    "no comma": (data("[1 2]", shape="[2]"), "body, byte", "',' or ']'", "2"),
    "plus sign": (data("[+1]"), "inputs[0].data[0]", "number", "+1"),
    "point without digit": (data("[1.]"), "body, byte", "a digit after the point", ""),
    "exponent without digit": (data("[1e]"), "body, byte", "a digit in the exponent", ""),
    "hexadecimal": (data("[0x1]"), "body, byte", "',' or ']'", "x1"),
    "comment": (data("[1/*x*/]"), "body, byte", "',' or ']'", "/*x*/"),
    "single quotes": (b"{'inputs':[]}", "body, byte 2", "a member name", ""),
    "byte order mark": (b"\xef\xbb\xbf{}", "body, byte 1", "a JSON object", ""),
    "zero byte": (b"{\0}", "body, byte 2", "a member name", ""),
    "line break in text": (b'{"id":"a\nb"}', "body, byte 9", "no control character", ""),
    "unknown escape": (b'{"id":"\\x"}', "body, byte 8", "an escape that JSON knows", ""),
    "half an escape": (b'{"id":"\\u12"}', "body, byte 8", "four hexadecimal digits", ""),
    "member twice": (b'{"inputs":[1],"inputs":[]}', "inputs[0]", "an object", "1"),
    "id twice": (b'{"id":"a","id":"b"}', "body", "each member once", '"id" twice'),
    "shape twice": (
        b'{"inputs":[{"shape":[1],"shape":[99999999999,9]}]}',
        "inputs[0]",
        "each member once",
        '"shape" twice',
    ),
    "escaped member": (b'{"\\u0069nputs":[]}', "body", "member names without escapes", ""),
    "escaped member of an input": (b'{"inputs":[{"sh\\u0061pe":[1]}]}', "inputs[0]", "without escapes", ""),
    "too deep": (b'{"parameters":' + b'{"a":' * 40 + b"1" + b"}" * 41, "body, byte", "no more than 16 levels", ""),
    "too deep data": (data("[" * 40 + "1" + "]" * 40), "inputs[0].data", "no more than 16 levels", "more"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_mistake_is_answered_with_the_field_what_was_expected_and_what_came(
    risk: Gateway, line: Line, name: str
) -> None:
    sent, field, expected, got = REFUSED[name]
    before = risk.served("risk@1")
    answer = line.send(sent)
    assert answer.status == 400, answer.body
    told = answer.json
    assert told["field"].startswith(field)
    assert expected in told["expected"]
    assert got in told["got"]
    assert told["error"] == f"{told['field']}: expected {told['expected']}, got {told['got']}"
    assert told["code"] == 400
    assert told["request_id"] == answer.headers["x-request-id"]
    assert answer.headers["content-type"] == "application/json"
    assert risk.served("risk@1") == before


# --- binary data behind the JSON ---


def binary(
    tensors: list[tuple[str, list[int], bytes]], length: int | None = None, size: int | None = None
) -> tuple[bytes, str]:
    """A body with binary data, and the value of its length header."""
    inputs = [
        {
            "name": "X",
            "shape": shape,
            "datatype": kind,
            "parameters": {"binary_data_size": len(b) if size is None else size},
        }
        for kind, shape, b in tensors
    ]
    head = json.dumps({"inputs": inputs}).encode()
    return head + b"".join(b for _, _, b in tensors), str(len(head) if length is None else length)


FLOATS = struct.pack("<3f", 1, float("nan"), 3)


@pytest.mark.parametrize(
    "tensors",
    [
        [("FP32", [1, 3], FLOATS)],
        [("FP16", [2], b"\0" * 4)],
        [("INT64", [0], b"")],
        [("BYTES", [2], b"\x01\0\0\0a\x02\0\0\0bc"), ("BOOL", [3], b"\1\0\1")],
        [("FP64", [1], b'}]"{\\\0\xff,')],
    ],
)
def test_binary_data_of_the_announced_size_reaches_the_engine(
    risk: Gateway, line: Line, tensors: list[tuple[str, list[int], bytes]]
) -> None:
    sent, length = binary(tensors)
    assert line.send(sent, Inference_Header_Content_Length=length).status == 200
    assert risk.received("risk@1")["body"].encode("latin-1") == sent


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        (binary([("FP32", [1, 2], FLOATS)]), "inputs[0].parameters.binary_data_size"),
        (binary([("FP32", [2**40, 20], FLOATS)]), "inputs[0].shape"),
        (binary([("BYTES", [4], FLOATS)]), "inputs[0].parameters.binary_data_size"),
        (binary([("FP32", [3], FLOATS)], size=11), "inputs[0].parameters.binary_data_size"),
        (binary([("FP32", [1, 3], FLOATS), ("FP32", [1, 3], FLOATS[:-4])], size=12), "body"),
        (binary([("FP32", [3], FLOATS)], length=5), "body, byte"),
        (binary([("FP32", [3], FLOATS)], length=0), "Inference-Header-Content-Length"),
        (binary([("FP32", [3], FLOATS)], length=-1), "Inference-Header-Content-Length"),
        (binary([("FP32", [3], FLOATS)], length=10**9), "Inference-Header-Content-Length"),
        (binary([("FP32", [3], FLOATS)], length=10**40), "Inference-Header-Content-Length"),
        ((json.dumps(BODY).encode() + b"xx", str(len(json.dumps(BODY)))), "body"),
    ],
)
def test_binary_data_of_another_size_is_refused(line: Line, sent: tuple[bytes, str], field: str) -> None:
    answer = line.send(sent[0], Inference_Header_Content_Length=sent[1])
    assert answer.status == 400
    assert answer.json["field"].startswith(field)


# --- in bulk ---

finite32 = st.floats(width=32, allow_nan=False, allow_infinity=False)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "BOOL": st.booleans(),
    "BYTES": st.text(),
    "FP32": finite32 | st.integers(-(10**9), 10**9),
    "FP64": st.floats(allow_nan=False, allow_infinity=False),
    **{f"INT{b}": st.integers(-(2 ** (b - 1)), 2 ** (b - 1) - 1) for b in (8, 16, 32, 64)},
    **{f"UINT{b}": st.integers(0, 2**b - 1) for b in (8, 16, 32, 64)},
}


def nest(flat: list[Any], shape: list[int]) -> list[Any]:
    if len(shape) <= 1:
        return flat
    step = len(flat) // shape[0] if shape[0] else 0
    return [nest(flat[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])]


@st.composite
def tensors(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(sorted(VALUES)))
    shape = draw(st.lists(st.integers(0, 4), max_size=3))
    size = math.prod(shape)
    flat = draw(st.lists(VALUES[kind], min_size=size, max_size=size))
    made = {"name": draw(st.text()), "shape": shape, "datatype": kind, "data": flat}
    if draw(st.booleans()):
        made["data"] = nest(flat, shape)
    return dict(draw(st.permutations(list(made.items()))))


@st.composite
def requests(draw: st.DrawFn) -> dict[str, Any]:
    request: dict[str, Any] = {"inputs": draw(st.lists(tensors(), min_size=1, max_size=3))}
    if draw(st.booleans()):
        request["id"] = draw(st.text())
    if draw(st.booleans()):
        request["outputs"] = [{"name": draw(st.text())}]
    return request


@MANY
@given(requests(), st.booleans(), st.sampled_from([None, 1]))
def test_every_valid_request_passes(line: Line, request: dict[str, Any], ascii_only: bool, indent: int | None) -> None:
    sent = json.dumps(request, ensure_ascii=ascii_only, indent=indent).encode()
    answer = line.send(sent, x_test_light="1")
    assert answer.status == 200, answer.body


def is_sound(sent: bytes) -> bool:
    """What the guard promises of every body it lets pass, checked with Python's own reader."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len({k for k, _ in pairs}) == len(pairs)
        return dict(pairs)

    def never(literal: str) -> Any:
        raise ValueError(literal)

    value = json.loads(sent.decode("utf-8", "replace"), object_pairs_hook=once, parse_constant=never)
    return bool(value["inputs"]) and all(
        len(flatten(one["data"])) == math.prod(one["shape"]) and all(type(d) is int and d >= 0 for d in one["shape"])
        for one in value["inputs"]
    )


def flatten(value: Any) -> list[Any]:
    return [leaf for one in value for leaf in flatten(one)] if isinstance(value, list) else [value]


TOKENS = [
    b"[",
    b"]",
    b"{",
    b"}",
    b",",
    b":",
    b'"',
    b"1",
    b"-",
    b"0",
    b"e9",
    b".5",
    b"null",
    b"true",
    b"\\",
    b" ",
    b"\0",
]


@MANY
@given(requests(), st.randoms(use_true_random=False))
def test_whatever_passes_is_well_formed_and_counts_right(
    line: Line, request: dict[str, Any], rnd: random.Random
) -> None:
    sent = bytearray(json.dumps(request).encode())
    for _ in range(rnd.randint(1, 3)):
        at = rnd.randrange(len(sent))
        sent[at : at + rnd.randint(0, 2)] = rnd.choice(TOKENS)
    answer = line.send(bytes(sent), x_test_light="1")
    assert answer.status in (200, 400)
    assert answer.status == 400 or is_sound(bytes(sent))


def test_a_body_that_comes_in_chunks_is_judged_as_a_whole(line: Line) -> None:
    for sent, status in ((body(), 200), (body(data=[1]), 400)):
        text = json.dumps(sent).encode()
        headers = {"authorization": f"Bearer {line.token}"}
        line.connection.request(
            "POST", "/v2/models/risk/infer", iter([text[:20], text[20:]]), headers, encode_chunked=True
        )
        got = line.connection.getresponse()
        got.read()
        assert got.status == status


# --- encodings ---


def test_a_gzip_body_is_looked_into_and_reaches_the_engine_inflated(risk: Gateway, line: Line) -> None:
    text = json.dumps(BODY).encode()
    assert line.send(gzip.compress(text), Content_Encoding="gzip").status == 200
    assert risk.received("risk@1")["body"].encode() == text
    assert "content-encoding" not in risk.received("risk@1")["headers"]
    refused = line.send(gzip.compress(json.dumps(body(shape=[2**40, 20])).encode()), Content_Encoding="gzip")
    assert (refused.status, refused.json["field"]) == (400, "inputs[0].shape")


@pytest.mark.parametrize("encoding", ["deflate", "br", "zstd", "gzip, gzip", "x"])
def test_another_encoding_is_refused(line: Line, encoding: str) -> None:
    answer = line.send(gzip.compress(b"{}"), Content_Encoding=encoding)
    assert answer.status == 415
    assert answer.json["expected"] == "gzip or none"


def test_a_body_that_is_not_the_gzip_it_claims_to_be_is_refused(line: Line) -> None:
    assert line.send(json.dumps(BODY).encode(), Content_Encoding="gzip").status == 400


# --- errors of the engine ---

CALLERS_FAULT = [
    "failed to parse the request JSON buffer: The surrogate pair in string is invalid. at 22",
    "Unable to parse 'data': Shape does not match true shape of 'data' field",
    "Unable to parse 'priority': attempt to access JSON non-unsigned-integer as unsigned-integer",
    "Unable to set 'classification': attempt to access JSON non-unsigned-integer as unsigned-integer",
]


@pytest.mark.parametrize("message", CALLERS_FAULT)
def test_what_the_engine_blames_on_the_request_leaves_as_400(line: Line, message: str) -> None:
    answer = line.send(BODY, x_test_status="500", x_test_error=json.dumps({"error": message}))
    assert answer.status == 400
    assert answer.json == {"error": message, "code": 400, "request_id": answer.headers["x-request-id"]}


@pytest.mark.parametrize(
    ("status", "sent", "message"),
    [
        (500, '{"error":"Stub process \\"m_0\\" is not healthy."}', 'Stub process "m_0" is not healthy.'),
        (500, '{"error":"model: Unable to parse its own file"}', "model: Unable to parse its own file"),
        (404, "", "the engine gave no reason"),
        (503, "plain text", "plain text"),
        (500, '{"error":"a","more":"b"}', None),
        (500, '{"error":"a\\"}', None),
        (500, "<html>\xff\t", None),
    ],
)
def test_every_error_of_the_engine_leaves_in_the_one_shape(
    line: Line, status: int, sent: str, message: str | None
) -> None:
    answer = line.send(BODY, x_test_status=str(status), x_test_error=sent, x_test_content_type="text/html")
    assert answer.status == status
    assert set(answer.json) == {"error", "code", "request_id"}
    assert answer.json["code"] == status
    assert answer.headers["content-type"] == "application/json"
    assert message is None or answer.json["error"] == message


def test_nothing_of_this_made_the_guard_fail(risk: Gateway) -> None:
    log = (risk.home / "envoy.log").read_text()
    assert "[lua]" not in "\n".join(line for line in log.splitlines() if "[error]" in line or "[critical]" in line)
