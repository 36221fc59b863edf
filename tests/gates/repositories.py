"""A good repository, and small ways to spoil it."""

from onnx import TensorProto, helper

from taxiway.core.contract import Contract, Field
from taxiway.core.tensor import TensorSpec
from taxiway.gates.mistake import Machine, Target
from taxiway.gates.validate import validate

CONFIG = """name: "m"
platform: "onnxruntime_onnx"
max_batch_size: 8
input [ { name: "X" data_type: TYPE_FP32 dims: [ 3 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 3 ] } ]
instance_group [ { count: 1 kind: KIND_AUTO } ]
dynamic_batching { }
"""


def model(op="Relu", domain="", opset=17, ir=8, batch="N", dtype=TensorProto.FLOAT, marks=None, inside=False):
    """X -> op -> Y, both [batch, 3]; `inside` puts the operator into both branches of an If."""
    node = helper.make_node(op, ["X"], ["Y"], domain=domain)
    if inside:
        flag = helper.make_node("Constant", [], ["flag"], value=helper.make_tensor("", TensorProto.BOOL, [], [True]))
        branch = helper.make_graph([node], "b", [], [helper.make_tensor_value_info("Y", dtype, [batch, 3])])
        node = helper.make_node("If", ["flag"], ["Y"], then_branch=branch, else_branch=branch)
    ends = [helper.make_tensor_value_info(n, dtype, [batch, 3]) for n in "XY"]
    opsets = [helper.make_opsetid("", opset)]
    opsets += [helper.make_opsetid(domain, 1)] if domain else []
    made = helper.make_model(
        helper.make_graph([flag, node] if inside else [node], "g", ends[:1], ends[1:]), opset_imports=opsets
    )
    made.ir_version = ir
    helper.set_model_props(made, marks or {})
    return made.SerializeToString()


GOOD = {"m/config.pbtxt": CONFIG.encode(), "m/1/model.onnx": model()}


def found(files, machine=None, **promised):
    return validate(files, target=Target(), machine=machine or Machine(cores=4), **promised)


def texts(files, **more):
    return [str(m) for m in found(files, **more)]


def with_config(*changes):
    text = CONFIG
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    return GOOD | {"m/config.pbtxt": text.encode()}


def contract(max_batch=128):
    fields = (Field(TensorSpec("X", "FP32", (3,))),)
    return Contract(fields, (Field(TensorSpec("Y", "FP32", (3,))),), max_batch)
