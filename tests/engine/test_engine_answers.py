"""What the engine itself answers to mistakes. The gateway stands in front and turns more of them into 4xx."""

import http.client
import json
import math
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tritonclient.grpc as triton_grpc
import tritonclient.http as triton_http
from kept import Kept
from small_models import COLUMNS, row
from tritonclient.utils import InferenceServerException

from taxiway.core.sample import Tensor
from taxiway.engine import client
from taxiway.engine.client import EngineError

pytestmark = pytest.mark.processes
ONES = [1.0] * 30


def post(kept: Kept, body: bytes | dict, path: str | None = None) -> tuple[int, str]:
    connection = http.client.HTTPConnection(kept.address, timeout=20)
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection.request("POST", path or f"/v2/models/{kept.spec.model}/infer", text)
    response = connection.getresponse()
    answer = response.status, response.read().decode()
    connection.close()
    return answer


def tensor(name: str = "X", shape: tuple = (1, 30), datatype: str = "FP32", data: object = ONES) -> dict:
    return {"name": name, "shape": list(shape), "datatype": datatype, "data": data}


# (what, body, status of this engine). 500 stands where the server itself takes a caller's mistake for its
# own: recorded here so that an engine that changes is noticed.
MISTAKES = [
    ("another dtype", {"inputs": [tensor(datatype="FP64")]}, 400),
    ("another length", {"inputs": [tensor(shape=(1, 29), data=ONES[:29])]}, 400),
    ("another rank", {"inputs": [tensor(shape=(30,))]}, 400),
    ("missing input", {"inputs": []}, 400),
    ("unknown input", {"inputs": [tensor(name="Z")]}, 400),
    ("one input too many", {"inputs": [tensor(), tensor(name="Z")]}, 400),
    ("too large a batch", {"inputs": [tensor(shape=(129, 30), data=ONES * 129)]}, 400),
    ("no rows", {"inputs": [tensor(shape=(0, 30), data=[])]}, 400),
    ("unknown output", {"inputs": [tensor()], "outputs": [{"name": "Q"}]}, 400),
    ("malformed JSON", b'{"inputs": [', 500),
    ("no inputs", {}, 500),
    ("too few numbers", {"inputs": [tensor(data=ONES[:29])]}, 500),
    ("too many numbers", {"inputs": [tensor(data=[*ONES, 1.0])]}, 500),
    ("a string among numbers", {"inputs": [tensor(data=[*ONES[:29], "x"])]}, 500),
    ("null among numbers", {"inputs": [tensor(data=[*ONES[:29], None])]}, 500),
    ("a negative dim", {"inputs": [tensor(shape=(-1, 30))]}, 500),
    ("an empty body", b"", 400),
]


@pytest.mark.parametrize(("what", "body", "expected"), MISTAKES, ids=[m[0] for m in MISTAKES])
def test_a_mistake_gets_the_recorded_status_and_an_error(
    served: dict[str, Kept], what: str, body: bytes | dict, expected: int
) -> None:
    code, text = post(served["risk"], body)
    assert (code, bool(json.loads(text)["error"])) == (expected, True)
    assert served["risk"].infer({"X": row()})


def test_unknown_models_and_versions_are_not_found(served: dict[str, Kept]) -> None:
    for path in ("/v2/models/nobody/infer", "/v2/models/risk/versions/9/infer"):
        assert post(served["risk"], {"inputs": [tensor()]}, path)[0] == 404


@pytest.mark.parametrize(("value", "word"), [(math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity")])
def test_a_value_that_is_not_finite_is_refused_by_row_and_column(
    served: dict[str, Kept], value: float, word: str
) -> None:
    two = Tensor("FP32", (2, 30), (*row().data, *row(c3=value).data))
    with pytest.raises(EngineError) as refusal:
        served["risk"].infer({"X": two})
    assert refusal.value.status == 400
    assert refusal.value.message == (
        f"input 'X': row 1, column 3 ('{COLUMNS[3]}') is {word}; only finite numbers are accepted (counting from 0)"
    )


def test_a_value_that_is_not_finite_is_refused_in_binary_tensors(served: dict[str, Kept]) -> None:
    X = np.ones((1, 30), np.float32)
    X[0, 7] = np.nan
    http_input = triton_http.InferInput("X", [1, 30], "FP32").set_data_from_numpy(X, binary_data=True)
    with (
        triton_http.InferenceServerClient(served["risk"].address) as caller,
        pytest.raises(InferenceServerException, match="row 0, column 7") as refusal,
    ):
        caller.infer("risk", [http_input])
    assert refusal.value.status() == "400"


def test_a_value_that_is_not_finite_is_refused_over_grpc(served: dict[str, Kept]) -> None:
    X = np.full((1, 30), np.inf, np.float32)
    grpc_input = triton_grpc.InferInput("X", [1, 30], "FP32")
    grpc_input.set_data_from_numpy(X)
    with (
        triton_grpc.InferenceServerClient(served["risk"].grpc) as caller,
        pytest.raises(InferenceServerException, match=r"row 0, column 0 .*and 29 more") as refusal,
    ):
        caller.infer("risk", [grpc_input])
    assert refusal.value.status() == "StatusCode.INVALID_ARGUMENT"


def items(user: int, *ids: int) -> dict[str, Tensor]:
    return {"user_id": Tensor("INT64", (1, 1), (user,)), "item_ids": Tensor("INT64", (1, len(ids)), ids)}


def test_lists_of_any_accepted_length_are_answered(served: dict[str, Kept]) -> None:
    assert served["items"].infer(items(100, 1, 2, 3))["scores"] == Tensor("FP32", (1, 1), (106.0,))
    assert served["items"].infer(items(0, *[1] * 8))["scores"].data == (8.0,)
    assert served["items"].infer(items(5))["scores"].data == (5.0,)


def test_a_list_that_is_too_long_is_refused_with_the_limit(served: dict[str, Kept]) -> None:
    with pytest.raises(EngineError, match=r"'item_ids' has 9 values along axis 1; at most 8") as refusal:
        served["items"].infer(items(0, *[1] * 9))
    assert refusal.value.status == 400


def test_a_value_that_the_model_does_not_know_is_the_callers_mistake(served: dict[str, Kept]) -> None:
    with pytest.raises(
        EngineError, match=r"^the model does not accept these values: indices element out of"
    ) as refusal:
        served["items"].infer(items(0, 99))
    assert refusal.value.status == 400


def test_text_that_is_not_utf8_is_refused(served: dict[str, Kept]) -> None:
    bad = triton_http.InferInput("T", [1, 1], "BYTES")
    bad.set_data_from_numpy(np.array([[b"\xff\xfe"]], dtype=object), binary_data=True)
    with (
        triton_http.InferenceServerClient(served["text"].address) as caller,
        pytest.raises(InferenceServerException, match="input 'T' is not UTF-8 text") as refusal,
    ):
        caller.infer("text", [bad])
    assert refusal.value.status() == "400"


def test_text_comes_back_as_it_went(served: dict[str, Kept]) -> None:
    words = Tensor("BYTES", (2, 1), ("größe", ""))
    assert served["text"].infer({"T": words})["U"] == words


def test_nan_is_taken_and_given_where_the_contract_allows_it(served: dict[str, Kept]) -> None:
    answer = served["root"].infer({"X": Tensor("FP32", (2, 2), (4.0, -1.0, math.nan, math.inf))})["Y"]
    assert (answer.shape, answer.data[0], answer.data[3]) == ((2, 2), 2.0, math.inf)
    assert math.isnan(answer.data[1])
    assert math.isnan(answer.data[2])


def test_one_bad_request_fails_alone_in_its_batch(served: dict[str, Kept]) -> None:
    kept = served["items"]
    before = stats(kept)
    gate = threading.Barrier(20)

    def ask(k: int) -> float | str:
        if k < 20:
            gate.wait()
        try:
            value = kept.infer(items(k, 99 if k % 5 == 0 else 1))["scores"].data[0]
            return float(value)
        except EngineError as error:
            return f"{error.status}"

    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(ask, range(400)))
    assert answers == ["400" if k % 5 == 0 else k + 1.0 for k in range(400)]
    asked, executed = (after - start for after, start in zip(stats(kept), before, strict=True))
    assert asked == 400
    assert executed < asked, "no batch ever formed"


def stats(kept: Kept) -> tuple[int, int]:
    """Requests and executions so far."""
    with triton_http.InferenceServerClient(kept.address) as caller:
        found = caller.get_inference_statistics(kept.spec.model)["model_stats"][0]
    return int(found["inference_count"]), int(found["execution_count"])


def test_metadata_describes_the_contract(served: dict[str, Kept]) -> None:
    found = client.model_metadata(served["items"].address, "items")
    assert found["inputs"] == [
        {"name": "user_id", "datatype": "INT64", "shape": [-1, 1]},
        {"name": "item_ids", "datatype": "INT64", "shape": [-1, -1]},
    ]
    assert client.model_ready(served["items"].address, "items", version=1)
    assert not client.model_ready(served["items"].address, "items", version=2)
    with pytest.raises(EngineError) as refusal:
        client.model_metadata(served["items"].address, "nobody")
    assert refusal.value.status == 404
