"""The gates that a model passes on its way to production, one subject a module; pure: bytes in, mistakes out.

Gate 2 is here (`validate.py`): a Triton model repository, looked at as `{path: bytes}`, with every mistake told at once
and in its place. `layout.py` looks at names and folders, `config.py` at the text of config.pbtxt (`tokens.py` has its
words), `serving.py` at what it says, `capacity.py` at what it asks of a machine, `graph.py` at the ONNX model,
`external.py` at the weights beside it, `step.py` at the Python step in front of it, `torchscript.py` at PyTorch's,
`agree.py` at configuration and model together, `pickles.py` at files that are programs. Nothing here touches a disk,
loads a pickle, or knows of revisions.
"""
