"""A request that works, to paste."""

from __future__ import annotations

import json
import shlex
import time
from dataclasses import dataclass
from typing import Any

from taxiway.app.wire import Platform
from taxiway.catalog import store
from taxiway.core.errors import Refused
from taxiway.core.revision import Revision


@dataclass(frozen=True, slots=True)
class Request:
    """A real request of the revision that answers, and a token that lasts an hour."""

    url: str
    token: str
    body: dict[str, Any]

    def curl(self) -> str:
        """The request as one shell line."""
        line = ["curl", "-sS", self.url, "-H", f"Authorization: Bearer {self.token}"]
        line += ["-H", "Content-Type: application/json", "-d", json.dumps(self.body, separators=(",", ":"))]
        return shlex.join(line)


def example_request(platform: Platform, model: str) -> Request:
    """The smallest golden sample of the revision with the largest share; raises `Refused` when none answers."""
    state = platform.state().model(model)
    if not state.split:
        raise Refused(f"no revision of {model} answers yet; see: taxiway status")
    number = max(state.split, key=lambda n: state.split[n])
    stored = store.load(platform.places.catalog, Revision(model, number))
    sample = min(stored.golden(), key=lambda g: len(json.dumps(g.to_json())))
    body = {"inputs": [{"name": name, **tensor.to_json()} for name, tensor in sample.inputs.items()]}
    token = platform.token("demo", "curl", 3600, now=int(time.time()))
    return Request(f"{platform.url}/v2/models/{model}/infer", token, body)
