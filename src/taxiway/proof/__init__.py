"""A model in, its ONNX form and the proof that both answer alike out.

`export.py` converts scikit-learn estimators, `ready.py` takes ONNX models as they are, `graph.py` holds what both
must satisfy; `ort.py` runs the result; `parity.py` compares, `golden.py` picks the samples kept with a revision,
`contract.py` infers what may be sent, `profile.py` describes the data. All but `export.py`, `ready.py`, `graph.py`
and `ort.py` are pure functions of arrays.
"""
