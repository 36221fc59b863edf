"""What the stub calls: load once, answer batches.

A batch runs as one where it can. Requests with a value that breaks the contract are taken out of it and refused; if
the model fails on what is left, those requests run one by one, so that a bad one is answered alone. The caller's
mistakes are INVALID_ARG (HTTP 400), all else is internal (500).
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import triton_python_backend_utils as pb
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument

from . import graph, parameter, rules
from .step import FOLDER, PARAMETER, Step

Feed = dict[str, np.ndarray]


@dataclass(frozen=True)
class Asked:
    """One readable request: its place in the batch, its inputs, the outputs it wants."""

    place: int
    feed: Feed
    outputs: tuple[str, ...]

    @property
    def rows(self) -> int:
        return len(next(iter(self.feed.values())))


class TritonPythonModel:
    """The stub makes one for each model instance."""

    def initialize(self, args: dict[str, str]) -> None:
        """Load the model; raises with every reason why it cannot serve under this configuration."""
        config = json.loads(args["model_config"])
        self.rules = parameter.read(config)
        folder = Path(pb.get_model_dir())
        self.session = graph.session(config, folder)
        self.step = _step(folder) if PARAMETER in config.get("parameters", {}) else None
        wrong = graph.mismatches({**config, "input": self.step.inputs()} if self.step else config, self.session)
        if wrong:
            raise pb.TritonModelException("; ".join(wrong))
        self.batched = int(config["max_batch_size"]) > 0
        self.inputs = [entry["name"] for entry in config["input"]]
        self.optional = {entry["name"] for entry in config["input"] if entry.get("optional")}
        self.outputs = tuple(entry["name"] for entry in config["output"])
        entries = (*config["input"], *config["output"])
        self.text = {entry["name"] for entry in entries if entry["data_type"] == "TYPE_STRING"}

    def finalize(self) -> None:
        """The stub unloads the model."""
        if self.step:
            self.step.close()

    def execute(self, requests: Sequence[Any]) -> list[Any]:
        """One response for each request, in order."""
        responses: list[Any] = [None] * len(requests)
        groups: dict[object, list[Asked]] = {}
        for place, request in enumerate(requests):
            try:
                asked = self._read(place, request)
            except rules.BadRequest as error:
                responses[place] = _refusal(error)
                continue
            except Exception as error:
                responses[place] = _failure(f"the request cannot be read: {error}")
                continue
            groups.setdefault(self._group(asked), []).append(asked)
        for group in groups.values():
            for place, response in self._answer(group).items():
                responses[place] = response
        return responses

    def _read(self, place: int, request: Any) -> Asked:
        feed: Feed = {}
        for name in self.inputs:
            tensor = pb.get_input_tensor_by_name(request, name)
            if tensor is not None:
                value = tensor.as_numpy()
                feed[name] = _decoded(name, value) if name in self.text else value
            elif name not in self.optional:
                raise rules.BadRequest(f"input '{name}' is missing")
        wanted = set(request.requested_output_names())
        return Asked(place, feed, tuple(n for n in self.outputs if not wanted or n in wanted))

    def _group(self, asked: Asked) -> object:
        """Requests with equal groups can run as one batch."""
        if not self.batched:
            return asked.place
        return asked.outputs, tuple((name, value.shape[1:]) for name, value in asked.feed.items())

    def _answer(self, group: list[Asked]) -> dict[int, Any]:
        """Responses by place: requests that break the contract are refused, the others run as one batch."""
        feed = _joined(group)
        if rules.clean(self.rules, feed):
            return self._run(group, feed)
        refused, kept = {}, []
        for asked in group:
            try:
                rules.enforce(self.rules, asked.feed)
                kept.append(asked)
            except rules.BadRequest as error:
                refused[asked.place] = _refusal(error)
        return refused | (self._run(kept, _joined(kept)) if kept else {})

    def _run(self, group: list[Asked], feed: Feed) -> dict[int, Any]:
        """Responses by place to requests that keep the contract; `feed` is theirs together."""
        if len(group) > 1:
            try:
                return dict(zip([asked.place for asked in group], self._together(group, feed), strict=True))
            except Exception as error:  # whose fault it is shows when each request runs alone
                pb.Logger.log_verbose(f"a batch of {len(group)} is run one by one: {error}")
        return {asked.place: self._alone(asked) for asked in group}

    def _together(self, group: list[Asked], feed: Feed) -> list[Any]:
        names = group[0].outputs
        results = self._results(names, feed)
        ends = np.cumsum([asked.rows for asked in group])
        for name, result in zip(names, results, strict=True):
            if len(result) != ends[-1]:
                raise ValueError(f"output '{name}' has {len(result)} rows for {ends[-1]} rows of input")
        starts = [0, *ends[:-1]]
        return [
            self._response(names, [result[start:end] for result in results])
            for start, end in zip(starts, ends, strict=True)
        ]

    def _alone(self, asked: Asked) -> Any:
        try:
            return self._response(asked.outputs, self._results(asked.outputs, asked.feed))
        except rules.BadRequest as error:
            return _refusal(error)
        except InvalidArgument as error:
            return _refusal(f"the model does not accept these values: {graph.readable(error)}")
        except Exception as error:
            return _failure(f"the model failed: {graph.readable(error)}")

    def _results(self, names: Sequence[str], feed: Feed) -> list[Any]:
        return list(self.session.run(names, self.step(feed) if self.step else feed))

    def _response(self, names: Sequence[str], results: Sequence[Any]) -> Any:
        tensors = [
            pb.Tensor(name, _encoded(result) if name in self.text else np.ascontiguousarray(result))
            for name, result in zip(names, results, strict=True)
        ]
        return pb.InferenceResponse(tensors)


def _step(folder: Path) -> Step:
    python = os.environ.get("TAXIWAY_STEP_PYTHON")
    if not python:
        raise pb.TritonModelException(f"the model has a Python step, and no Python for it: {FOLDER}/requirements.txt")
    return Step(python, folder / FOLDER, os.environ.get("TAXIWAY_RUN", ""))


def _joined(group: Sequence[Asked]) -> Feed:
    if len(group) == 1:
        return group[0].feed
    return {name: np.concatenate([asked.feed[name] for asked in group]) for name in group[0].feed}


def _refusal(reason: object) -> Any:
    return pb.InferenceResponse(error=pb.TritonError(str(reason), pb.TritonError.INVALID_ARG))


def _failure(reason: str) -> Any:
    return pb.InferenceResponse(error=pb.TritonError(reason, pb.TritonError.INTERNAL))


def _decoded(name: str, values: np.ndarray) -> np.ndarray:
    try:
        flat = [v.decode("utf-8") if isinstance(v, bytes) else v for v in values.reshape(-1)]
    except UnicodeDecodeError as error:
        raise rules.BadRequest(f"input '{name}' is not UTF-8 text: {error.reason}") from None
    return np.array(flat, dtype=object).reshape(values.shape)


def _encoded(values: Any) -> np.ndarray:
    shaped = np.asarray(values, dtype=object)
    flat = [v.encode("utf-8") if isinstance(v, str) else v for v in shaped.reshape(-1)]
    return np.array(flat, dtype=object).reshape(shaped.shape)
