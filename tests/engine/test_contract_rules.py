"""The contract as the real engine enforces it: each rule, over both protocols, and never at the cost of others."""

import math
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
import pytest
import tritonclient.grpc as triton_grpc
import tritonclient.http as triton_http
from kept import Kept, keeping
from onnx import TensorProto, helper, numpy_helper
from small_models import put
from tritonclient.utils import InferenceServerException

from taxiway.catalog.pbtxt import config_pbtxt
from taxiway.core.contract import Column, Contract, Field
from taxiway.core.sample import Tensor
from taxiway.core.tensor import TensorSpec
from taxiway.engine.client import EngineError
from taxiway.engine.home import EngineHome

pytestmark = pytest.mark.processes

CITIES = ("Bern", "Oslo", "Örebro")
CONTRACT = Contract(
    inputs=(
        Field(
            TensorSpec("X", "FP32", (3,)),
            columns=("age", "income", "member"),
            finite=False,
            table=(Column("age", minimum=0, maximum=0.1), Column("income", nullable=True), Column(allowed=(0, 1))),
        ),
        Field(TensorSpec("city", "BYTES", (1,)), table=(Column(allowed=CITIES),)),
        Field(TensorSpec("note", "BYTES", (1,)), max_bytes=8),
        Field(TensorSpec("ids", "INT64", (-1,)), max_length=4, table=(Column(minimum=1, maximum=9),)),
        Field(TensorSpec("times", "FP32", (-1,)), max_length=4, same_length_as="ids"),
    ),
    outputs=(
        Field(TensorSpec("Y", "FP32", (3,))),
        Field(TensorSpec("text", "BYTES", (1,))),
        Field(TensorSpec("sum", "FP32", (1,))),
    ),
)


def model() -> bytes:
    """Y = X, text = city, sum = ids + times over both lists; note goes to text where city is empty (never)."""
    nodes = [
        helper.make_node("Identity", ["X"], ["Y"]),
        helper.make_node("Equal", ["city", "empty"], ["is_empty"]),
        helper.make_node("Where", ["is_empty", "note", "city"], ["text"]),
        helper.make_node("Cast", ["ids"], ["whole"], to=TensorProto.FLOAT),
        helper.make_node("ReduceSum", ["whole", "last"], ["sum_ids"], keepdims=1),
        helper.make_node("ReduceSum", ["times", "last"], ["sum_times"], keepdims=1),
        helper.make_node("Add", ["sum_ids", "sum_times"], ["sum"]),
    ]
    types = {"FP32": TensorProto.FLOAT, "BYTES": TensorProto.STRING, "INT64": TensorProto.INT64}

    def values(fields: tuple[Field, ...]) -> list[onnx.ValueInfoProto]:
        return [
            helper.make_tensor_value_info(
                f.name, types[f.spec.dtype], ["N", *(d if d > 0 else f"L{f.name}" for d in f.spec.dims)]
            )
            for f in fields
        ]

    constants = [
        numpy_helper.from_array(np.array([1]), "last"),
        helper.make_tensor("empty", TensorProto.STRING, [1], [b""]),
    ]
    graph = helper.make_graph(nodes, "g", values(CONTRACT.inputs), values(CONTRACT.outputs), constants)
    opsets = [helper.make_opsetid("", 19)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()


@pytest.fixture(scope="module")
def strict(engine_home: EngineHome, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    root = tmp_path_factory.mktemp("strict")
    put(root / "repository", "strict", model(), config_pbtxt("strict", CONTRACT))
    with keeping(engine_home.root, root / "repository", root) as make:
        yield make("strict").start().ready()


def request(
    X: tuple[float, ...] = (0.05, 1.0, 1.0),
    city: str = "Bern",
    note: str = "",
    ids: tuple[int, ...] = (1, 2),
    times: tuple[float, ...] = (0.5, 0.5),
) -> dict[str, Tensor]:
    return {
        "X": Tensor("FP32", (len(X) // 3, 3), X),
        "city": Tensor("BYTES", (1, 1), (city,)),
        "note": Tensor("BYTES", (1, 1), (note,)),
        "ids": Tensor("INT64", (1, len(ids)), ids),
        "times": Tensor("FP32", (1, len(times)), times),
    }


@pytest.mark.parametrize(
    "accepted",
    [
        {"X": (0.0, math.nan, 0.0)},
        {"X": (0.1, -1e30, 1.0)},
        {"city": "Örebro"},
        {"note": "12345678"},
        {"note": "äöüß"},
        {"ids": (1, 9, 9, 9), "times": (0.0, 1.0, 2.0, 3.0)},
        {"ids": (), "times": ()},
    ],
    ids=str,
)
def test_what_the_contract_accepts_is_answered(strict: Kept, accepted: dict) -> None:
    asked = request(**accepted)
    found = strict.infer(asked)
    assert found["text"] == asked["city"]
    np.testing.assert_array_equal(np.float32(found["Y"].data), np.float32(asked["X"].data))
    assert found["sum"].data == (sum(asked["ids"].data) + sum(asked["times"].data),)


REFUSED = [
    ({"X": (0.2, 1.0, 1.0)}, "input 'X': row 0, column 0 ('age') is 0.2; numbers from 0 to 0.1 are accepted"),
    ({"X": (-1.0, 1.0, 1.0)}, "input 'X': row 0, column 0 ('age') is -1.0; numbers from 0 to 0.1 are accepted"),
    (
        {"X": (math.nan, 1.0, 1.0)},
        "input 'X': row 0, column 0 ('age') is NaN; NaN is accepted only in column 1 ('income')",
    ),
    ({"X": (0.0, math.inf, 1.0)}, "input 'X': row 0, column 1 ('income') is Infinity; infinities are not accepted"),
    ({"X": (0.0, 1.0, 2.0)}, "input 'X': row 0, column 2 ('member') is 2.0; accepted are 0, 1"),
    ({"city": "bern"}, "input 'city': row 0, column 0 is 'bern'; accepted are 'Bern', 'Oslo', 'Örebro'"),
    ({"city": "x" * 99}, f"input 'city': row 0, column 0 is '{'x' * 40}…'; accepted are 'Bern'"),
    ({"note": "123456789"}, "input 'note': row 0, column 0 is '123456789'; texts of at most 8 bytes are accepted"),
    ({"note": "äöüßä"}, "input 'note': row 0, column 0 is 'äöüßä'; texts of at most 8 bytes are accepted"),
    ({"ids": (1, 10)}, "input 'ids': row 0, column 1 is 10; numbers from 1 to 9 are accepted"),
    ({"ids": (1, 2, 3)}, "input 'times' has 2 values and 'ids' has 3; equally many are accepted"),
    ({"ids": (1,) * 5, "times": (1.0,) * 5}, "input 'ids' has 5 values along axis 1; at most 4 are accepted"),
    ({"times": (1.0, math.nan)}, "input 'times': row 0, column 1 is NaN; only finite numbers are accepted"),
]


@pytest.mark.parametrize(("values", "said"), REFUSED, ids=[str(v)[:60] for v, _ in REFUSED])
def test_what_it_does_not_accept_is_refused_with_the_place_and_what_is(strict: Kept, values: dict, said: str) -> None:
    with pytest.raises(EngineError) as refusal:
        strict.infer(request(**values))
    assert refusal.value.status == 400
    assert refusal.value.message.startswith(said)


def test_over_grpc_the_same_is_an_invalid_argument(strict: Kept) -> None:
    asked = request(city="Örebro!" * 30)
    inputs = []
    for name, given in asked.items():
        kind = {"FP32": np.float32, "INT64": np.int64, "BYTES": object}[given.dtype]
        inputs.append(triton_grpc.InferInput(name, list(given.shape), given.dtype))
        inputs[-1].set_data_from_numpy(np.array(given.data, dtype=kind).reshape(given.shape))
    with (
        triton_grpc.InferenceServerClient(strict.grpc) as caller,
        pytest.raises(InferenceServerException, match="input 'city': row 0, column 0 is 'Örebro!") as refusal,
    ):
        caller.infer("strict", inputs)
    assert refusal.value.status() == "StatusCode.INVALID_ARGUMENT"


def counts(kept: Kept) -> tuple[int, int]:
    """Requests and executions so far."""
    with triton_http.InferenceServerClient(kept.address) as caller:
        found = caller.get_inference_statistics("strict")["model_stats"][0]
    return int(found["inference_count"]), int(found["execution_count"])


# One for each rule that requests of the same shape can break within one batch.
BAD = [values for values, _ in REFUSED if set(values) & {"X", "city", "note"}]


def test_of_a_batch_only_the_bad_requests_are_refused_each_with_its_own_reason(strict: Kept) -> None:
    said = {str(values): words for values, words in REFUSED}
    gate = threading.Barrier(20)

    def bad(k: int) -> dict | None:
        return BAD[k // 4 % len(BAD)] if k % 4 == 0 else None

    def ask(k: int) -> str:
        if k < 20:
            gate.wait()
        try:
            answer = strict.infer(request(**(bad(k) or {"X": (0.0, float(k), 1.0)})))
        except EngineError as error:
            return f"{error.status} {error.message}"
        return str(answer["Y"].data[1])

    before = counts(strict)
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(ask, range(400)))
    asked, executed = (after - start for after, start in zip(counts(strict), before, strict=True))
    for k, answer in enumerate(answers):
        broken = bad(k)
        assert answer.startswith(f"400 {said[str(broken)]}" if broken else str(float(k)))
    assert asked == 400
    assert executed < asked, "no batch ever formed"


def test_one_bad_row_is_named_by_its_place_in_its_own_request(strict: Kept) -> None:
    rows = {
        "X": Tensor("FP32", (2, 3), (0.0, 1.0, 1.0, 0.0, 1.0, 7.0)),
        "city": Tensor("BYTES", (2, 1), ("Bern", "Oslo")),
        "note": Tensor("BYTES", (2, 1), ("", "")),
        "ids": Tensor("INT64", (2, 1), (1, 1)),
        "times": Tensor("FP32", (2, 1), (1.0, 1.0)),
    }
    with pytest.raises(EngineError, match=r"'X': row 1, column 2 \('member'\) is 7\.0; accepted are 0, 1 "):
        strict.infer(rows)
