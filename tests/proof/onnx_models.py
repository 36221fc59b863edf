"""Small ONNX models by hand."""

from onnx import TensorProto, helper


def made(nodes, inputs, outputs, *, opset=17, ir=8, stored=(), ml=None):
    """A model; `inputs` and `outputs` are (name, dims) or (name, dims, type), floats unless said."""

    def info(name, dims, kind=TensorProto.FLOAT):
        return helper.make_tensor_value_info(name, kind, dims)

    graph = helper.make_graph(nodes, "by hand", [info(*i) for i in inputs], [info(*o) for o in outputs], list(stored))
    opsets = [helper.make_opsetid("", opset)] + ([helper.make_opsetid("ai.onnx.ml", ml)] if ml else [])
    return helper.make_model(graph, opset_imports=opsets, ir_version=ir)


def chain(kind="Neg", dims=("N", 2), **more):
    """One node `kind` from `x` to `y`, both of `dims`."""
    return made([helper.make_node(kind, ["x"], ["y"])], [("x", list(dims))], [("y", list(dims))], **more)


def over_the_batch():
    """`y = x - mean of x over all rows`: what a row gets depends on the others."""
    nodes = [
        helper.make_node("ReduceMean", ["x"], ["mean"], axes=[0], keepdims=1),
        helper.make_node("Sub", ["x", "mean"], ["y"]),
    ]
    return made(nodes, [("x", ["N", 2])], [("y", ["N", 2])])
