import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx_models import chain, made

from taxiway.core.errors import Refused
from taxiway.proof import graph, ort


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"opset": 22}, "opset 22"),
        ({"opset": 99}, "opset 99"),
        ({"ir": 11}, "IR version is 11"),
        ({"ir": 99}, "IR version is 99"),
        ({"ml": 6}, r"ai\.onnx\.ml 6"),
    ],
)
def test_a_model_newer_than_the_engine_is_refused_as_too_new_with_what_to_do(change, said):
    with pytest.raises(Refused, match=said) as no:
        graph.finish(chain(**change), own=False)
    assert no.value.code == "onnx-too-new"
    assert "ir_version=8" in no.value.reasons[-1]


def test_everything_too_new_is_said_at_once():
    with pytest.raises(Refused, match=r"opset 22.*ai\.onnx\.ml 6.*IR version is 11"):
        graph.finish(chain(opset=22, ir=11, ml=6), own=False)


@pytest.mark.parametrize("change", [{"opset": 21}, {"ir": 10}, {"ml": 5}])
def test_the_newest_that_the_engine_knows_is_taken(change):
    assert graph.finish(chain(**change), own=False)


def test_an_invalid_model_is_refused():
    model = made([helper.make_node("Neg", ["nowhere"], ["y"])], [("x", ["N", 2])], [("y", ["N", 2])])
    with pytest.raises(Refused, match=r"not valid.*nowhere") as no:
        graph.finish(model, own=False)
    assert no.value.code == "onnx-invalid"


@pytest.mark.parametrize(
    ("opset", "least"), [(21, "1.18.0"), (20, "1.17.0"), (19, "1.15.0"), (18, "1.14.0"), (17, "1.12.0"), (13, "1.11.0")]
)
def test_a_model_is_marked_with_the_least_runtime_that_knows_its_opset(opset, least):
    assert graph.least_runtime(graph.finish(chain(opset=opset), own=False)) == least


def test_marks_stand_next_to_those_of_others_and_are_written_once():
    model = chain()
    helper.set_model_props(model, {"zebra": "1", "author": "me"})
    data = graph.finish(model, own=False)
    again = graph.finish(onnx.load_model_from_string(data), own=False)
    assert again == data
    marks = [(p.key, p.value) for p in onnx.load_model_from_string(data).metadata_props]
    assert marks == [("author", "me"), ("taxiway.onnxruntime.min", "1.12.0"), ("zebra", "1")]


def test_only_models_of_our_own_making_get_our_name():
    model = chain()
    model.producer_name, model.doc_string, model.graph.name = "somebody", "text", "theirs"
    kept = onnx.load_model_from_string(graph.finish(model, own=False))
    assert (kept.producer_name, kept.doc_string, kept.graph.name) == ("somebody", "text", "theirs")
    named = onnx.load_model_from_string(graph.finish(model, own=True))
    assert (named.producer_name, named.doc_string, named.graph.name) == ("taxiway", "", "model")


def test_the_opset_is_that_of_the_default_domain_under_either_of_its_names():
    assert graph.opset(chain(opset=17, ml=3)) == 17
    model = chain(opset=17)
    model.opset_import[0].domain = "ai.onnx"
    assert graph.opset(model) == 17


def test_outputs_are_renamed_through_the_whole_graph():
    nodes = [helper.make_node("Neg", ["x"], ["a"]), helper.make_node("Neg", ["a"], ["b"])]
    model = made(nodes, [("x", ["N", 2])], [("a", ["N", 2]), ("b", ["N", 2])])
    graph.rename_outputs(model, {"a": "first", "b": "b"})
    assert [o.name for o in model.graph.output] == ["first", "b"]
    answer = ort.Served(graph.finish(model, own=True)).run({"x": rows([[1, 2]])})
    assert answer["first"].tolist() == [[-1, -2]]
    assert answer["b"].tolist() == [[1, 2]]


def test_an_inner_tensor_that_has_the_wanted_name_gives_way():
    nodes = [
        helper.make_node("Neg", ["x"], ["label"]),
        helper.make_node("Abs", ["label"], ["label_inner"]),
        helper.make_node("Neg", ["label_inner"], ["y"]),
    ]
    model = made(nodes, [("x", ["N", 2])], [("y", ["N", 2])])
    graph.rename_outputs(model, {"y": "label"})
    assert [o.name for o in model.graph.output] == ["label"]
    assert ort.Served(graph.finish(model, own=True)).run({"x": rows([[1, -2]])})["label"].tolist() == [[-1, -2]]


def test_a_stored_tensor_that_has_the_wanted_name_gives_way():
    stored = helper.make_tensor("label", TensorProto.FLOAT, [1], [5.0])
    model = made(
        [helper.make_node("Add", ["x", "label"], ["y"])], [("x", ["N", 2])], [("y", ["N", 2])], stored=[stored]
    )
    graph.rename_outputs(model, {"y": "label"})
    assert ort.Served(graph.finish(model, own=True)).run({"x": rows([[1, 2]])})["label"].tolist() == [[6, 7]]


def test_two_outputs_may_swap_their_names():
    nodes = [helper.make_node("Neg", ["x"], ["a"]), helper.make_node("Abs", ["x"], ["b"])]
    model = made(nodes, [("x", ["N", 2])], [("a", ["N", 2]), ("b", ["N", 2])])
    graph.rename_outputs(model, {"a": "b", "b": "a"})
    answer = ort.Served(graph.finish(model, own=True)).run({"x": rows([[1, -2]])})
    assert answer["b"].tolist() == [[-1, 2]]
    assert answer["a"].tolist() == [[1, 2]]


def rows(values):
    return np.array(values, dtype=np.float32)
