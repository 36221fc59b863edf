"""Where Triton's Python stub enters: it looks for `TritonPythonModel` in `<backends>/onnxruntime/model.py`."""

import numpy

# The stub's binary interface predates numpy 2: arrays would arrive with wrong values and no error.
if int(numpy.__version__.split(".", 1)[0]) >= 2:
    raise RuntimeError(f"numpy {numpy.__version__}: the engine's environment needs numpy 1.26")

from taxiway_onnx.serve import TritonPythonModel  # type: ignore[import-not-found]

__all__ = ["TritonPythonModel"]
