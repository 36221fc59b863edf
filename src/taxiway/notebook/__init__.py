"""A notebook in, its fitted models and what is known about their rows out.

`read.py` takes the file apart, `findings.py` and `imports.py` read it without running it, `session.py` runs it top
to bottom while `record.py` keeps what went into and came out of every model and transformer, `candidates.py` lists
what could be shipped, `rebuild.py` puts a separate scaler and model back into one pipeline and proves that it gives
the notebook's own answers. Nothing here knows of ONNX export, revisions or engines.
"""
