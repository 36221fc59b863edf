"""Ask a server, or the gateway in front of it, over the Open Inference Protocol v2 (HTTP, JSON tensors)."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from typing import Any

from taxiway.core.errors import NotAccepted
from taxiway.core.sample import Tensor


class EngineError(NotAccepted):
    """The answer was not an inference. `status` is the HTTP status, 0 when no answer came."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


def infer(
    address: str,
    model: str,
    inputs: Mapping[str, Tensor],
    *,
    version: int | None = None,
    timeout_s: float = 10.0,
    headers: Mapping[str, str] | None = None,
) -> dict[str, Tensor]:
    """Outputs by name from the server at `address` (host:port); raises `EngineError`.

    NaN and infinities travel as the bare words that the engine's JSON uses for them. FP16 tensors cannot:
    the engine takes those in binary form only.
    """
    body = {
        "inputs": [
            {"name": name, "datatype": t.dtype, "shape": list(t.shape), "data": list(t.data)}
            for name, t in inputs.items()
        ]
    }
    headers = {"Content-Type": "application/json", **(headers or {})}
    text = _call(address, "POST", f"{_path(model, version)}/infer", json.dumps(body).encode(), headers, timeout_s)
    try:
        return {output["name"]: Tensor.from_json(output) for output in json.loads(text)["outputs"]}
    except (ValueError, KeyError, TypeError) as error:
        raise EngineError(200, f"{address}: the answer is not an inference: {error}") from None


def model_ready(address: str, model: str, *, version: int | None = None, timeout_s: float = 2.0) -> bool:
    """Does the server say that it can serve the model? An unreachable server cannot."""
    try:
        _call(address, "GET", f"{_path(model, version)}/ready", None, {}, timeout_s)
    except EngineError:
        return False
    return True


def model_metadata(
    address: str,
    model: str,
    *,
    version: int | None = None,
    timeout_s: float = 10.0,
    headers: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Names, types and shapes of the model's tensors, as the protocol gives them; raises `EngineError`."""
    value = json.loads(_call(address, "GET", _path(model, version), None, dict(headers or {}), timeout_s))
    return dict(value)


def executions(address: str, model: str, *, timeout_s: float = 2.0) -> int | None:
    """How many batches the model has executed since it was loaded; None when the server does not say."""
    try:
        value = json.loads(_call(address, "GET", f"{_path(model, None)}/stats", None, {}, timeout_s))
        return sum(int(entry["execution_count"]) for entry in value["model_stats"])
    except (EngineError, ValueError, KeyError, TypeError):
        return None


def _path(model: str, version: int | None) -> str:
    return f"/v2/models/{model}" + (f"/versions/{version}" if version is not None else "")


def _call(
    address: str, method: str, path: str, body: bytes | None, headers: Mapping[str, str], timeout_s: float
) -> bytes:
    host, _, port = address.rpartition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=timeout_s)
    try:
        connection.request(method, path, body, dict(headers))
        response = connection.getresponse()
        text = response.read()
    except (OSError, http.client.HTTPException) as error:
        raise EngineError(0, f"{address} did not answer {method} {path}: {error or type(error).__name__}") from None
    finally:
        connection.close()
    if response.status != 200:
        raise EngineError(response.status, _message(text) or f"{address} answered {response.status} to {path}")
    return text


def _message(text: bytes) -> str:
    try:
        value = json.loads(text)
        return str(value["error"])
    except (ValueError, KeyError, TypeError):
        return text.decode("utf-8", "replace").strip()[:500]
