"""The gates that a model passes on its way to production, one subject a module; pure: bytes in, mistakes out.

Gate 2 is here (`validate.py`): a Triton model repository, looked at as `{path: bytes}`, with every mistake told at once
and in its place. `layout.py` looks at names and folders, `config.py` at the text of config.pbtxt, `serving.py` at what
it says, `graph.py` at the ONNX model, `agree.py` at both together, `pickles.py` at files that are programs. Nothing
here touches a disk, loads a pickle, or knows of revisions.
"""
