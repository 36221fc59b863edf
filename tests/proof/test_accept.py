import json

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from taxiway.catalog.pbtxt import CONTRACT_PARAMETER, enforced
from taxiway.core.contract import Column, Contract, Field
from taxiway.core.tensor import TensorSpec
from taxiway.engine.backends.onnxruntime.taxiway_onnx import parameter, rules
from taxiway.proof.accept import accepted

FLOATS = st.floats(width=32, min_value=-10, max_value=10) | st.just(float("nan")) | st.just(float("inf"))
BOUND = st.none() | st.integers(-5, 5).map(float)


@st.composite
def columns(draw):
    low, high = draw(BOUND), draw(BOUND)
    if low is not None and high is not None and low > high:
        low, high = high, low
    return Column("c", nullable=draw(st.booleans()), minimum=low, maximum=high)


@st.composite
def contracts(draw):
    table = (draw(columns()), draw(columns()))
    finite = draw(st.booleans()) and not any(c.nullable for c in table)
    number = Field(
        TensorSpec("X", "FP32", (2,)),
        columns=("a", "b"),
        finite=finite,
        infinite=not finite and draw(st.booleans()),
        table=table,
    )
    allowed = draw(st.none() | st.lists(st.sampled_from(["a", "bb", "ccc"]), min_size=1, unique=True).map(tuple))
    text = Field(TensorSpec("t", "BYTES", (1,)), max_bytes=draw(st.integers(1, 4)), table=(Column(allowed=allowed),))
    return Contract((number, text), ())


@settings(max_examples=300, deadline=None)
@given(
    contract=contracts(),
    numbers=st.lists(st.tuples(FLOATS, FLOATS), min_size=1, max_size=5),
    texts=st.lists(st.sampled_from(["", "a", "bb", "ccc", "dddd", "éé"]), min_size=5, max_size=5),
)
def test_the_proof_and_the_engine_let_the_same_rows_through(contract, numbers, texts):
    feeds = {
        "X": np.array(numbers, dtype=np.float32),
        "t": np.array(texts[: len(numbers)], dtype=object)[:, None],
    }
    config = {
        "max_batch_size": 8,
        "input": [
            {"name": "X", "data_type": "TYPE_FP32", "dims": ["2"]},
            {"name": "t", "data_type": "TYPE_STRING", "dims": ["1"]},
        ],
        "parameters": {CONTRACT_PARAMETER: {"string_value": json.dumps(enforced(contract))}},
    }
    engine = parameter.read(config)
    passed = []
    for i in range(len(numbers)):
        try:
            rules.enforce(engine, {n: v[i : i + 1] for n, v in feeds.items()})
            passed.append(i)
        except rules.BadRequest:
            continue
    assert accepted(contract, feeds) == passed
