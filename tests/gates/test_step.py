"""Gate 2 on models with a Python step in front."""

import json
import pickle

import pytest

from taxiway.catalog.pbtxt import config_pbtxt
from taxiway.gates.mistake import Machine, Target
from taxiway.gates.validate import validate
from tests.gates.repositories import contract, model

SPEC = {
    "format": 1,
    "python": "3.12.1",
    "table": {"form": "matrix", "dtype": "<f8"},
    "gives": [{"name": "X", "dtype": "FP32", "width": 3, "column": None}],
}
CONFIG = config_pbtxt("m", contract(), step=True).replace('name: "X"', 'name: "raw"').encode()
GOOD = {
    "m/config.pbtxt": CONFIG,
    "m/1/model.onnx": model(),
    "m/1/step/step.pkl": pickle.dumps(print),
    "m/1/step/step.json": json.dumps(SPEC).encode(),
    "m/1/step/requirements.txt": b"numpy==2.1.0\nscikit-learn==1.5.2\n",
}


def texts(files, own=True):
    found = validate(files, target=Target(), machine=Machine(4, 8 << 30, False), own=own)
    return [f"{m.path}:{m.line} {m.severity} {m.message}" for m in found]


def spec(**changes):
    return {"m/1/step/step.json": json.dumps(SPEC | changes).encode()}


def test_a_step_of_our_own_is_in_order_and_its_inputs_need_not_be_the_graphs():
    assert texts(GOOD) == []


def test_a_strangers_step_is_a_program():
    found = texts({**GOOD, "m/1/step/step.pkl": pickle.dumps(exec)}, own=False)
    assert any("step.pkl" in m and "error loading it would run" in m for m in found), found


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"m/1/step/step.pkl": None}, "step.pkl:0 error m/config.pbtxt asks for a Python step"),
        ({"m/1/step/requirements.txt": None}, "requirements.txt:0 error m/config.pbtxt asks"),
        ({"m/1/step/requirements.txt": b"numpy==2.1.0\npandas>=2\n"}, "txt:2 error 'pandas>=2' is no exact"),
        ({"m/1/step/step.json": b"[" * 99999}, "step.json:0 error this describes no Python step"),
        (spec(format=9), "step.json:0 error this describes no Python step"),
        (spec(gives=[SPEC["gives"][0] | {"name": "Z"}]), "model.onnx:0 error the Python step does not give input 'X'"),
        (spec(gives=[SPEC["gives"][0] | {"name": "Z"}]), "model.onnx:0 error the model has no input 'Z'"),
        (spec(gives=[SPEC["gives"][0] | {"dtype": "INT64"}]), "gives 'X' as TYPE_INT64, the model takes TYPE_FP32"),
        (spec(gives=[SPEC["gives"][0] | {"width": 4}]), "gives [-1, 4] as 'X', the model has [-1, 3]"),
        ({"m/config.pbtxt": CONFIG.replace(b"taxiway_step", b"other")}, "step.pkl:0 warning nothing reads this file"),
    ],
    ids=range(10),
)  # fmt: skip
def test_a_mistake_of_a_step_is_told(files, said):
    changed = {path: data for path, data in {**GOOD, **files}.items() if data is not None}
    found = texts(changed)
    assert any(said in m for m in found), found
