"""ONNX Runtime in this process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import onnxruntime

from taxiway.core.errors import Refused

VERSION: Final = str(onnxruntime.__version__)


class Session:
    """A loaded model; `run` gives outputs by name."""

    def __init__(self, model: bytes) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        try:
            self._session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # ONNX Runtime has a dozen kinds
            raise Refused(f"the exported model does not load: {str(error)[:500]}", code="does-not-load") from error
        self.outputs = [o.name for o in self._session.get_outputs()]

    def run(self, feed: Mapping[str, Any]) -> dict[str, Any]:
        """Outputs by name for one batch."""
        return dict(zip(self.outputs, self._session.run(None, dict(feed)), strict=True))

    def run_in_batches(self, feed: Mapping[str, Any], size: int) -> dict[str, Any]:
        """The same, `size` rows at a time, put together again."""
        rows = len(next(iter(feed.values())))
        parts = [self.run({k: v[i : i + size] for k, v in feed.items()}) for i in range(0, rows, size)]
        return {name: np.concatenate([p[name] for p in parts]) for name in self.outputs}
