"""A Python step as the stub sees it: a real process that answers, refuses, fails, and ends."""

import json
import os
import pickle
import sys
import threading
from multiprocessing import Pipe

import cloudpickle
import numpy as np
import pytest

from taxiway.engine.backends.onnxruntime.taxiway_onnx import frames
from taxiway.engine.backends.onnxruntime.taxiway_onnx.rules import BadRequest
from taxiway.engine.backends.onnxruntime.taxiway_onnx.step import Step, StepError
from taxiway.engine.backends.onnxruntime.taxiway_onnx.worker import Step as Transform

pytestmark = pytest.mark.processes

X = {"name": "X", "dtype": "FP32", "width": 2, "column": None}
MATRIX = {"table": {"form": "matrix", "dtype": "<f8"}, "gives": [X]}
TEXTS = {"table": {"form": "texts"}, "gives": [{"name": "text", "dtype": "BYTES", "width": 1, "column": None}]}
FRAME = {
    "table": {
        "form": "frame",
        "columns": [
            {"name": "age", "dtype": "float64", "tensor": "age", "place": 0},
            {"name": "city", "dtype": "object", "tensor": "city", "place": 0},
        ],
    },
    "gives": [
        {"name": "years", "dtype": "INT64", "width": 1, "column": "years"},
        {"name": "town", "dtype": "BYTES", "width": 1, "column": "town"},
    ],
}


def folder(tmp_path, transform, spec, name="step"):
    """A step whose transformer does what the function `transform` does."""
    made = tmp_path / name
    made.mkdir()
    code = {"transform": lambda self, rows: transform(rows)}
    (made / "step.pkl").write_bytes(cloudpickle.dumps(type("Made", (), code)()))
    (made / "step.json").write_text(json.dumps(spec))
    return made


@pytest.fixture
def started(tmp_path):
    steps = []

    def start(transform, spec=MATRIX):
        steps.append(Step(sys.executable, folder(tmp_path, transform, spec, f"step{len(steps)}")))
        return steps[-1]

    yield start
    for step in steps:
        step.close()


@pytest.mark.parametrize(
    "tensors",
    [
        {"X": np.array([[1.5, np.nan], [np.inf, -0.0]], np.float32)},
        {"a": np.empty((0, 3), np.float32), "b": np.array([[2**53 + 1]], np.int64)},
        {"t": np.array([["Crème", ""], ["東京 🙂", "\x00"]], dtype=object)},
        {"t": np.empty((0, 1), dtype=object)},
        {},
    ],
    ids=["floats", "none and whole", "texts", "no texts", "nothing"],
)
def test_tensors_arrive_as_they_were_sent(tensors):
    here, there = Pipe()
    sender = threading.Thread(target=frames.send, args=(here, tensors), kwargs={"ask": 1})
    sender.start()
    got, note = frames.receive(there)
    sender.join()
    assert note == {"ask": 1}
    assert got.keys() == tensors.keys()
    for name, values in tensors.items():
        assert got[name].dtype == values.dtype
        assert got[name].shape == values.shape
        assert got[name].tobytes() == values.tobytes() if values.dtype != object else (got[name] == values).all()


def test_a_step_takes_the_form_it_was_fitted_on_and_gives_tensors(started):
    doubled = started(lambda rows: rows * 2)
    assert doubled.gives == [X]
    assert doubled.inputs() == [{"name": "X", "data_type": "TYPE_FP32", "dims": [2]}]
    answer = doubled({"X": np.array([[1, 2.5]], np.float32)})["X"]
    assert answer.dtype == np.float32
    assert answer.tolist() == [[2.0, 5.0]]
    upper = started(lambda texts: np.array([t.upper() for t in texts], dtype=object), TEXTS)
    assert upper({"text": np.array([["é"], ["b"]], dtype=object)})["text"].tolist() == [["É"], ["B"]]
    named = started(lambda t: t.assign(years=t.age + 1, town=t.city + "!"), FRAME)
    got = named({"age": np.array([[3.0]], np.float32), "city": np.array([["Ulm"]], dtype=object)})
    assert {n: v.tolist() for n, v in got.items()} == {"years": [[4]], "town": [["Ulm!"]]}
    assert named.inputs()[1] == {"name": "town", "data_type": "TYPE_STRING", "dims": [1]}


def test_sparse_answers_are_written_out():
    from scipy import sparse

    class Sparse:
        def transform(self, rows):
            return sparse.csr_matrix(rows)

    assert Transform(Sparse(), MATRIX)({"X": np.eye(2, dtype=np.float32)})["X"].tolist() == [[1, 0], [0, 1]]


def test_values_that_it_does_not_accept_are_the_callers_and_all_else_is_not(started):
    def picky(rows):
        if rows[0, 0] < 0:
            raise ValueError("negative\nnumbers")
        if rows[0, 0] > 1:
            raise KeyError("bug")
        return rows[:0] if rows[0, 0] == 1 else rows

    step = started(picky)

    def ask(value):
        return step({"X": np.full((1, 2), value, np.float32)})

    with pytest.raises(BadRequest, match="does not accept these values: ValueError: negative numbers"):
        ask(-1)
    with pytest.raises(StepError, match="failed: KeyError: 'bug'"):
        ask(2)
    with pytest.raises(StepError, match="gives 0 rows for 1"):
        ask(1)
    assert ask(0.5)["X"].tolist() == [[0.5, 0.5]]


def test_a_process_that_ends_is_told_of_and_closing_leaves_none(started):
    step = started(lambda rows: os._exit(3))
    with pytest.raises(StepError, match="has ended"):
        step({"X": np.ones((1, 2), np.float32)})
    with pytest.raises(StepError, match="has ended"):
        step({"X": np.ones((1, 2), np.float32)})
    other = started(lambda rows: rows)
    other.close()
    assert other.process.returncode is not None


def test_a_step_that_cannot_be_loaded_says_why(tmp_path):
    made = folder(tmp_path, lambda rows: rows, MATRIX)
    (made / "step.pkl").write_bytes(b"cno_such_module\nThing\n.")
    with pytest.raises(StepError, match="cannot be loaded: ModuleNotFoundError"):
        Step(sys.executable, made)
    (made / "step.pkl").write_bytes(pickle.dumps(1)[:-1])
    with pytest.raises(StepError, match="cannot be loaded"):
        Step(sys.executable, made)
    (made / "step.json").unlink()
    with pytest.raises(StepError, match="cannot be loaded: FileNotFoundError"):
        Step(sys.executable, made)


def test_it_tells_what_it_has_loaded(started):
    step = started(lambda rows: rows)
    assert {"numpy", "cloudpickle"} <= set(step.modules())
    assert "sklearn" not in step.modules()
