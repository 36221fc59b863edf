"""What a person can say about the proof, and what the evidence says of it."""

from dataclasses import replace

import numpy as np
import pytest
from onnx import TensorProto, helper

from taxiway.app.build import builder
from taxiway.app.build.interpreter import own
from taxiway.app.build.options import Options
from taxiway.app.build.prove import proved
from taxiway.app.build.subject import MadeCase, Subject
from taxiway.app.config.model import Config, Parity, Serving
from taxiway.app.ship import options_of
from taxiway.core.errors import Refused
from taxiway.notebook.candidates import Candidate
from taxiway.proof import graph
from taxiway.proof.cases import Case

CANDIDATE = Candidate("clf", 3, "Classifier", 1, 0.5, None, None)
X = np.array([[0.25], [0.5], [2.0], [4.0]], np.float32)
LABELS = np.array([[0], [0], [1], [1]])


def model():
    """`y` is X, `label` whether that is above 1."""
    one = helper.make_tensor("one", TensorProto.FLOAT, [1], [1.0])
    nodes = [
        helper.make_node("Identity", ["X"], ["y"]),
        helper.make_node("Greater", ["X", "one"], ["above"]),
        helper.make_node("Cast", ["above"], ["label"], to=TensorProto.INT64),
    ]
    ends = [("X", TensorProto.FLOAT), ("y", TensorProto.FLOAT), ("label", TensorProto.INT64)]
    first, *last = [helper.make_tensor_value_info(name, kind, ["N", 1]) for name, kind in ends]
    made = helper.make_graph(nodes, "g", [first], last, [one])
    return graph.finish(helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), own=True)


def subject(y=X, label=LABELS):
    """A model that is right when it says `y` and `label`."""
    return Subject(model(), (Case({"X": X}, {"y": y, "label": label}),), {}, {}, "sha256:0")


def test_a_difference_that_a_person_allows_is_no_reason_to_refuse():
    other = subject(X + np.float32(0.001))
    with pytest.raises(Refused) as no:
        proved(CANDIDATE, other)
    assert no.value.code == "parity"
    assert "taxiway.yaml" not in str(no.value)
    evidence = proved(CANDIDATE, other, Options(atol=0.01))
    limits = evidence["parity"]["tolerance"]
    assert limits == {"atol": 0.01, "rtol": 1e-4, "tie": 1e-5, "overridden": {"atol": pytest.approx(4e-5, rel=1e-3)}}
    assert {(g["atol"], g["rtol"]) for g in evidence["golden"]} == {(0.01, 1e-4)}
    assert proved(CANDIDATE, other, Options(rtol=0.01))["parity"]["tolerance"]["overridden"] == {"rtol": 1e-4}


def test_a_label_is_the_same_or_refused_whatever_is_allowed():
    with pytest.raises(Refused) as no:
        proved(CANDIDATE, subject(label=1 - LABELS), Options(atol=0.1, rtol=0.1))
    assert no.value.code == "parity"
    said = "taxiway.yaml allows atol 0.1 (not 4e-05), rtol 0.1 (not 0.0001); labels must be the same in any case."
    assert said in no.value.reasons


def test_a_person_can_ask_for_the_very_same_numbers():
    assert "overridden" not in proved(CANDIDATE, subject(X + np.float32(1e-6)))["parity"]["tolerance"]
    with pytest.raises(Refused, match=r"taxiway\.yaml allows atol 0 \(not 4e-05\), rtol 0 \(not 0\.0001\)"):
        proved(CANDIDATE, subject(X + np.float32(1e-6)), Options(atol=0, rtol=0))
    limits = proved(CANDIDATE, subject(), Options(atol=0, rtol=0))["parity"]["tolerance"]
    assert (limits["atol"], limits["rtol"]) == (0.0, 0.0)


def promised(words, made=()):
    """The evidence under what is said of the outputs; `made` are made rows, which the model answers as it should."""
    extra = np.array(made, np.float32).reshape(-1, 1)
    case = Case({"X": extra}, {"y": extra, "label": (extra > 1).astype(np.int64)})
    what = replace(subject(), made=(MadeCase("edge", case),) if made else ())
    return proved(CANDIDATE, what, Options(contract=words))["contract"]["outputs"]


def test_a_promise_about_the_answers_is_recorded_when_nothing_contradicts_it():
    y, label = promised({"outputs": {"y": {"min": 0, "max": 5}, "label": {"allowed": [0, 1]}}}, [0.1, 4.5])
    assert y["table"] == [{"maximum": 5, "minimum": 0}]
    assert label["table"] == [{"allowed": [0, 1]}]


def test_a_promise_that_an_answer_contradicts_is_refused():
    with pytest.raises(Refused, match=r"outputs\.y: max 3 contradicts 1 of the 4 recorded answers, such as 4\.0"):
        promised({"outputs": {"y": {"max": 3}}})
    with pytest.raises(Refused, match=r"outputs\.y: max 5 contradicts 1 of the 2 answers to made rows, such as 6\.0"):
        promised({"outputs": {"y": {"max": 5}}}, [0.1, 6])


def test_a_made_row_that_callers_cannot_send_contradicts_no_promise():
    y, _ = promised({"inputs": {"X": {"max": 5}}, "outputs": {"y": {"max": 5}}}, [0.1, 6])
    assert y["table"] == [{"maximum": 5}]


def key(config, tmp_path):
    """What a build with this configuration is kept under."""
    (tmp_path / "n.ipynb").write_text("{}")
    return builder._key(tmp_path / "n.ipynb", None, own(), options_of(config))


def test_what_decides_the_bytes_of_a_build_decides_where_it_is_kept(tmp_path):
    plain = key(Config(), tmp_path)
    for said in (
        Config(parity=Parity(atol=0.01)),
        Config(parity=Parity(rtol=0.01)),
        Config(parity=Parity(rows=3)),
        Config(serving=Serving(max_batch=3)),
        Config(contract={"outputs": {"y": {"min": 0}}}),
    ):
        assert key(said, tmp_path) != plain
        assert Options.from_json(options_of(said).to_json()) == options_of(said)


def test_what_is_only_written_beside_a_build_needs_no_other_one(tmp_path):
    said = Config(serving=Serving(timeout_ms=7, instances=3, queue_delay_us=5))
    assert key(said, tmp_path) == key(Config(), tmp_path)
