"""A model file as a session, and whether the configuration describes its graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import onnxruntime as ort

# ONNX tensor type -> the type's name in config.pbtxt
TYPES = {
    "tensor(float)": "TYPE_FP32",
    "tensor(double)": "TYPE_FP64",
    "tensor(float16)": "TYPE_FP16",
    "tensor(int8)": "TYPE_INT8",
    "tensor(int16)": "TYPE_INT16",
    "tensor(int32)": "TYPE_INT32",
    "tensor(int64)": "TYPE_INT64",
    "tensor(uint8)": "TYPE_UINT8",
    "tensor(uint16)": "TYPE_UINT16",
    "tensor(uint32)": "TYPE_UINT32",
    "tensor(uint64)": "TYPE_UINT64",
    "tensor(bool)": "TYPE_BOOL",
    "tensor(string)": "TYPE_STRING",
}
# optimization { graph { level } } of the native backend -> ONNX Runtime's own names
_LEVELS = {-1: "ORT_ENABLE_BASIC", 0: "ORT_ENABLE_ALL", 1: "ORT_ENABLE_EXTENDED", 2: "ORT_DISABLE_ALL"}

Config = Mapping[str, Any]


def session(config: Config, directory: Path) -> ort.InferenceSession:
    """Load the version's model file; raises what ONNX Runtime raises, with the file's name in front."""
    options = ort.SessionOptions()
    # One thread: parallelism comes from batches and processes, and threads of several models would fight.
    options.intra_op_num_threads = int(_parameter(config, "intra_op_thread_count", "1"))
    options.inter_op_num_threads = int(_parameter(config, "inter_op_thread_count", "1"))
    if _parameter(config, "execution_mode", "0") == "1":
        options.execution_mode = ort.ExecutionMode.ORT_PARALLEL
    level = int(config.get("optimization", {}).get("graph", {}).get("level", 0))
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, _LEVELS.get(level, _LEVELS[0]))
    options.enable_cpu_mem_arena = _parameter(config, "enable_mem_arena", "1") in ("1", "true")
    options.enable_mem_pattern = _parameter(config, "enable_mem_pattern", "1") in ("1", "true")
    # Fatal only: what a request did wrong goes into its answer, and must not fill the log.
    options.log_severity_level = 4
    path = model_file(config, directory)
    try:
        return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise RuntimeError(f"{'/'.join(path.parts[-3:])} cannot be loaded: {readable(error)}") from None


def model_file(config: Config, directory: Path) -> Path:
    """`model.onnx` (or the configured name) of the version's folder; may itself be a folder with external data."""
    path = directory / (config.get("default_model_filename") or "model.onnx")
    return path / "model.onnx" if path.is_dir() else path


def _parameter(config: Config, key: str, default: str) -> str:
    return str(config.get("parameters", {}).get(key, {}).get("string_value") or default)


def readable(error: Exception) -> str:
    """ONNX Runtime's message without the code and node numbers in front."""
    text = str(error)
    for mark in ("Status Message: ", "[ONNXRuntimeError] : "):
        if mark in text:
            text = text.split(mark, 1)[1]
    return text.strip()[:1000]


def mismatches(config: Config, graph: ort.InferenceSession) -> list[str]:
    """What the configuration says that is not so in the graph; empty when they agree."""
    batched = int(config["max_batch_size"]) > 0
    found = _compare("input", config["input"], graph.get_inputs(), batched)
    found += _compare("output", config["output"], graph.get_outputs(), batched)
    named = {entry["name"] for entry in config["input"]}
    missing = [node.name for node in graph.get_inputs() if node.name not in named]
    return found + [f"the model's input '{name}' is missing in the configuration" for name in missing]


def _compare(kind: str, entries: Sequence[Config], nodes: Sequence[Any], batched: bool) -> list[str]:
    by_name = {node.name: node for node in nodes}
    found = []
    for entry in entries:
        node = by_name.get(entry["name"])
        if node is None:
            found.append(f"the model has no {kind} '{entry['name']}'; its {kind}s are {', '.join(by_name)}")
        else:
            found += _compare_one(kind, entry, node, batched)
    return found


def _compare_one(kind: str, entry: Config, node: Any, batched: bool) -> list[str]:
    name = entry["name"]
    if node.type not in TYPES:
        return [f"{kind} '{name}' is {node.type}, which the engine cannot carry (scikit-learn: export with zipmap off)"]
    if TYPES[node.type] != entry["data_type"]:
        return [f"{kind} '{name}' is {TYPES[node.type]} in the model and {entry['data_type']} in the configuration"]
    declared = entry["reshape"].get("shape", []) if "reshape" in entry else entry["dims"]
    have = ([-1] if batched else []) + [int(d) for d in declared]
    want = [d if isinstance(d, int) and d >= 0 else -1 for d in node.shape or []]
    fits = len(want) == len(have) and all(-1 in (a, b) or a == b for a, b in zip(want, have, strict=True))
    # A graph without a declared shape takes any.
    return [] if fits or not want else [f"{kind} '{name}' has shape {want} in the model and {have} as configured"]
