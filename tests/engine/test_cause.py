"""The sentence that helps, found in what a server wrote."""

import pytest

from taxiway.engine.cause import cause

CHATTER = """\
W1201 05:25:23.901557 4213 pinned_memory_manager.cc:273] "Unable to allocate pinned system memory, pinned memory pool"
I1201 05:25:23.901644 4213 cuda_memory_manager.cc:117] "CUDA memory pool disabled"
E1201 05:25:23.901774 4213 server.cc:241] "CudaDriverHelper has not been initialized."
I1201 05:25:23.903018 4213 model_lifecycle.cc:472] "loading: m:1"
"""


NOT_LOADED = CHATTER + (
    "error: creating server: Invalid argument - load failed for model 'm': version 1 is at UNAVAILABLE state: "
)


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ("", None),
        (CHATTER, None),
        (
            NOT_LOADED + "Internal: RuntimeError: m/1/model.onnx cannot be loaded: no graph\n\nAt:\n  m.py(6)\n;\n",
            "m/1/model.onnx cannot be loaded: no graph",
        ),
        (
            NOT_LOADED + "Invalid argument: instance group m_0 has kind KIND_GPU but no GPUs are available;\n",
            "instance group m_0 has kind KIND_GPU but no GPUs are available",
        ),
        (
            '[libprotobuf ERROR x.cc:337] Error parsing text-format inference.ModelConfig: 3:10: no field "x".\n'
            + CHATTER
            + "error: creating server: Internal - failed to load all models\n",
            'config.pbtxt: 3:10: no field "x".',
        ),
        (
            CHATTER + "/e/stub: error while loading shared libraries: libpython3.12.so.1.0: cannot open\n",
            "/e/stub: error while loading shared libraries: libpython3.12.so.1.0: cannot open",
        ),
        (
            CHATTER
            + 'E1201 05:25:24.562568 4213 http_server.cc:4713] "failed to start HTTP service: Address in use"\n',
            "failed to start HTTP service: Address in use",
        ),
    ],
    ids=["empty", "chatter", "exception", "refusal", "syntax", "linker", "logged"],
)
def test_the_cause_is_found(log: str, expected: str | None) -> None:
    assert cause(log) == expected
