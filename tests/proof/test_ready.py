import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper
from onnx_models import chain, made

from taxiway.core.errors import Refused
from taxiway.proof import ready
from taxiway.proof.contract import contract
from taxiway.proof.golden import golden
from taxiway.proof.graph import least_runtime
from taxiway.proof.ort import Served
from taxiway.proof.parity import compare, same_in_batches, tolerance


def taken(model):
    return ready.ready(model.SerializeToString())


TWO = made(
    [helper.make_node("Add", ["a", "b"], ["sum"]), helper.make_node("Sub", ["a", "b"], ["rest"])],
    [("a", ["N", "M"]), ("b", ["N", "M"])],
    [("sum", ["N", "M"]), ("rest", ["N", "M"])],
)
A, B = np.array([[1, 2], [3, 4]], np.float32), np.array([[5, 5], [5, 5]], np.float32)


def test_a_model_is_taken_with_its_names_dims_and_types():
    model = taken(TWO)
    assert (model.inputs, model.outputs) == (("a", "b"), ("sum", "rest"))
    assert model.dims == dict.fromkeys(("a", "b", "sum", "rest"), (-1,))
    assert {str(d) for d in model.dtypes.values()} == {"float32"}
    assert least_runtime(model.model) == "1.12.0"


def test_dims_are_those_of_one_row_and_open_ones_are_open():
    assert taken(chain(dims=(None, 30))).dims["x"] == (30,)
    assert taken(chain(dims=("N", "M", 4))).dims["x"] == (-1, 4)


@pytest.mark.parametrize("dims", [(1, 2), (64, 2)])
def test_a_fixed_batch_is_refused_by_name_with_what_to_do(dims):
    with pytest.raises(Refused, match="no free batch axis in x, y") as no:
        taken(chain(dims=dims))
    assert no.value.code == "fixed-batch"
    assert "['N', 30]" in no.value.reasons[-1]


def test_only_what_is_fixed_is_named():
    nodes = [helper.make_node("Neg", ["x"], ["y"])]
    with pytest.raises(Refused, match=r"batch axis in y:"):
        taken(made(nodes, [("x", ["N", 2])], [("y", [1, 2])]))


def test_stored_values_are_no_inputs_even_where_the_graph_lists_them():
    stored = helper.make_tensor("w", TensorProto.FLOAT, [2], [1.0, 2.0])
    nodes = [helper.make_node("Mul", ["x", "w"], ["y"])]
    model = taken(made(nodes, [("x", ["N", 2]), ("w", [2])], [("y", ["N", 2])], stored=[stored]))
    assert model.inputs == ("x",)


def test_a_model_that_is_too_new_is_refused():
    with pytest.raises(Refused) as no:
        taken(chain(ir=11))
    assert no.value.code == "onnx-too-new"


def test_an_output_that_is_no_tensor_is_refused_as_such():
    sequence = helper.make_value_info("y", helper.make_sequence_type_proto(helper.make_tensor_type_proto(1, ["N"])))
    model = chain()
    model.graph.output[0].CopyFrom(sequence)
    with pytest.raises(Refused, match=r"(?s)y is of type sequence,.*zipmap") as no:
        taken(model)
    assert no.value.code == "not-servable"


def test_a_type_that_requests_cannot_carry_is_refused_as_such():
    nodes = [helper.make_node("Cast", ["x"], ["y"], to=TensorProto.BFLOAT16)]
    with pytest.raises(Refused, match="y is of type BFLOAT16") as no:
        taken(made(nodes, [("x", ["N", 2])], [("y", ["N", 2], TensorProto.BFLOAT16)]))
    assert no.value.code == "not-servable"


def test_runs_become_cases_by_name_whatever_order_was_asked_for():
    (case,) = ready.cases(taken(TWO), [({"b": B, "a": A}, ["rest", "sum"], [A - B, A + B])])
    assert list(case.expected) == ["sum", "rest"]
    assert case.expected["rest"].tolist() == (A - B).tolist()
    assert case.rows == 2


def test_runs_that_ask_for_some_outputs_only_are_left_out():
    whole = ({"a": A, "b": B}, None, [A + B, A - B])
    part = ({"a": A[:1], "b": B[:1]}, ["sum"], [(A + B)[:1]])
    assert [c.rows for c in ready.cases(taken(TWO), [part, whole, part])] == [2]


@pytest.mark.parametrize(
    "runs",
    [
        [],
        [({"a": A, "b": B}, ["sum"], [A + B])],
        [({"a": A[:0], "b": B[:0]}, None, [A[:0], A[:0]])],
    ],
    ids=["never", "some outputs", "no rows"],
)
def test_without_a_run_for_all_outputs_nothing_is_known_to_be_right(runs):
    with pytest.raises(Refused, match="never runs the ONNX model") as no:
        ready.cases(taken(TWO), runs)
    assert no.value.code == "no-samples"
    assert "run it in the notebook" in no.value.reasons[-1]


@pytest.mark.parametrize(("b", "answer"), [(B[:1], A), (B, A[:1])], ids=["input", "output"])
def test_tensors_whose_first_axis_is_not_the_row_are_refused(b, answer):
    with pytest.raises(Refused, match="has 1, a has 2") as no:
        ready.cases(taken(TWO), [({"a": A, "b": b}, None, [answer, answer])])
    assert no.value.code == "batch-dependent"


def test_one_value_a_row_is_a_column_in_cases_contract_and_samples():
    data = chain(dims=("N",))
    x = np.array([1, 2, 3], np.float32)
    (answer,) = onnxruntime.InferenceSession(data.SerializeToString()).run(None, {"x": x})
    model = taken(data)
    (case,) = ready.cases(model, [({"x": x}, None, [answer])])
    assert case.feeds["x"].shape == case.expected["y"].shape == (3, 1)
    fields = contract([case], {}, model.dims)
    assert fields.inputs[0].spec.dims == fields.outputs[0].spec.dims == (1,)
    served = Served(model.model)
    limits = tolerance([case])
    found = compare([case], [served.run(case.feeds)], limits)
    assert found.offences == ()
    assert same_in_batches(case, served.run, limits)
    assert golden([case], found.good, limits)[0].inputs["x"].shape == (1, 1)


def test_lists_and_the_runtimes_own_values_are_taken_as_the_graphs_types():
    model = taken(chain())
    own = onnxruntime.OrtValue.ortvalue_from_numpy(A)
    cases = ready.cases(model, [({"x": [[1, 2], [3, 4]]}, None, [-A]), ({"x": own}, None, [-A])])
    for case in cases:
        assert case.feeds["x"].dtype == np.float32
        assert case.feeds["x"].tolist() == A.tolist()


def test_text_is_taken_as_text():
    nodes = [helper.make_node("Identity", ["x"], ["y"])]
    text = TensorProto.STRING
    model = taken(made(nodes, [("x", ["N"], text)], [("y", ["N"], text)]))
    for given in (np.array(["é", "b"]), ["é", "b"], np.array(["é".encode(), b"b"])):
        (case,) = ready.cases(model, [({"x": given}, None, [np.array(["é", "b"], object)])])
        assert case.feeds["x"].tolist() == [["é"], ["b"]]
        assert Served(model.model).run(case.feeds)["y"].tolist() == [["é"], ["b"]]
