import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx_models import chain, made

from taxiway.core.errors import Refused
from taxiway.proof import ort
from taxiway.proof.ort import VERSION, Served


@pytest.mark.parametrize("data", [b"", b"no model at all", chain(kind="NoSuchOperator").SerializeToString()])
def test_what_does_not_load_is_refused_with_the_version_that_was_asked(data):
    with pytest.raises(Refused, match=f"ONNX Runtime {VERSION} does not load the model") as no:
        Served(data)
    assert no.value.code == "does-not-load"
    assert len(str(no.value)) < 700


def test_answers_come_by_name():
    nodes = [helper.make_node("Neg", ["x"], ["minus"]), helper.make_node("Abs", ["x"], ["size"])]
    served = Served(made(nodes, [("x", ["N", 2])], [("minus", ["N", 2]), ("size", ["N", 2])]).SerializeToString())
    answer = served.run({"x": np.array([[1, -2]], dtype=np.float32)})
    assert {n: v.tolist() for n, v in answer.items()} == {"minus": [[-1, 2]], "size": [[1, 2]]}
    assert served.scalars == frozenset()


def test_tensors_of_one_value_a_row_are_taken_and_given_as_a_column():
    served = Served(chain(dims=("N",)).SerializeToString())
    assert served.scalars == {"x", "y"}
    answer = served.run({"x": np.array([[1], [2], [3]], dtype=np.float32)})["y"]
    assert answer.tolist() == [[-1], [-2], [-3]]


def test_only_such_tensors_are_reshaped():
    nodes = [helper.make_node("ReduceSum", ["x", "last"], ["y"], keepdims=0)]
    stored = [helper.make_tensor("last", TensorProto.INT64, [1], [-1])]
    served = Served(made(nodes, [("x", ["N", 3])], [("y", ["N"])], stored=stored).SerializeToString())
    assert served.scalars == {"y"}
    assert served.run({"x": np.ones((2, 3), np.float32)})["y"].tolist() == [[3], [3]]


def test_a_column_of_one_value_that_the_graph_has_as_a_column_stays_one():
    served = Served(chain(dims=("N", 1)).SerializeToString())
    assert served.scalars == frozenset()
    assert served.run({"x": np.ones((3, 1), np.float32)})["y"].shape == (3, 1)


def test_what_no_rows_do_is_found_out_in_a_process_of_its_own():
    """ONNX Runtime's LSTM ends the process that asks it about no rows."""
    import torch

    from taxiway.proof import pytorch

    class Recurrent(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = torch.nn.LSTM(4, 5, batch_first=True)

        def forward(self, rows):
            return self.lstm(rows)[0][:, -1]

    feeds = {"rows": np.ones((3, 2, 4), dtype=np.float32)}
    model = pytorch.export(Recurrent().eval(), [feeds], scripted=False).SerializeToString()
    assert ort.empty(model, feeds, frozenset()) == "crashes"
    linear = pytorch.export(torch.nn.Linear(4, 2).eval(), [{"input": np.ones((3, 4), np.float32)}], scripted=False)
    asked = {"input": np.ones((3, 4), dtype=np.float32)}
    assert ort.empty(linear.SerializeToString(), asked, frozenset()) == "answers nothing"
    assert ort.empty(b"no model", asked, frozenset()) == "fails"
