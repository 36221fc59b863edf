"""A real Envoy in front of stand-in engines, to be started and stopped by the tests."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from taxiway.gateway import render, tokens
from taxiway.gateway.desired import Address, Backend, Desired, Issuer, ModelTraffic
from taxiway.gateway.envoy import Admin, command
from taxiway.gateway.publish import Published, publish, write_offline

UPSTREAM = Path(__file__).with_name("upstream.py")
BODY = {"inputs": [{"name": "X", "shape": [1, 3], "datatype": "FP32", "data": [1.0, 2.5, -3]}]}


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on at the moment."""
    held = [socket.socket() for _ in range(count)]
    for one in held:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


def wait_for(what: Callable[[], bool], seconds: float = 10.0) -> None:
    """Return as soon as `what` holds; fail when it does not in time."""
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until, "not in time"
        time.sleep(0.005)


def listening(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Gateway:
    """Envoy with its folder; `engines` maps `model@n` to a stand-in's backend."""

    home: Path
    desired: Desired
    process: subprocess.Popen[bytes] | None = None
    engines: dict[str, tuple[Backend, subprocess.Popen[bytes]]] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return self.home / "xds"

    @property
    def admin(self) -> Admin:
        return Admin(self.home / "admin.sock")

    @property
    def port(self) -> int:
        return self.desired.listen.port

    def engine(self, revision: str) -> Backend:
        """A stand-in for `revision` (`model@n`), started if need be."""
        if revision not in self.engines:
            one, two = free_ports(2)
            process = subprocess.Popen([sys.executable, str(UPSTREAM), revision, str(one), str(two)])
            number = int(revision.partition("@")[2])
            backend = Backend(number, Address("127.0.0.1", one), Address("127.0.0.1", two))
            self.engines[revision] = (backend, process)
            wait_for(lambda: listening(one) and listening(two))
        return self.engines[revision][0]

    def stop_engine(self, revision: str) -> None:
        stop(self.engines.pop(revision)[1])

    def model(self, name: str, split: dict[int, int], *idle: int, timeout_ms: int = 10_000) -> ModelTraffic:
        numbers = sorted({*split, *idle})
        return ModelTraffic(name, tuple(self.engine(f"{name}@{n}") for n in numbers), split, timeout_ms)

    def want(self, *models: ModelTraffic, **changes: Any) -> Desired:
        self.desired = replace(self.desired, models=models, **changes)
        return self.desired

    def publish(self, *models: ModelTraffic, **changes: Any) -> Published:
        return publish(self.want(*models, **changes), self.folder, self.admin.path, log=self.home / "envoy.log")

    def start(self) -> None:
        bootstrap = self.home / "bootstrap.json"
        bootstrap.write_text(render.bootstrap(self.folder, self.admin.path))
        with (self.home / "envoy.log").open("ab") as log:
            self.process = subprocess.Popen(command(bootstrap), stderr=log)
        wait_for(lambda: self.admin.ready() and listening(self.port))

    def stop(self) -> None:
        if self.process is not None:
            stop(self.process)
            self.process = None

    def close(self) -> None:
        self.stop()
        for _, process in self.engines.values():
            stop(process)

    def token(self, audience: str = "models", issuer: str = "https://callers", **changes: Any) -> str:
        values = {"user": "u1", "app": "web", "ttl_s": 600, "now": int(time.time()), **changes}
        return tokens.issue(self.home / "keys", issuer=issuer, audience=audience, **values)

    def operator(self) -> str:
        return self.token("operate", "https://operators", user="ada", role="operator")

    def ask(
        self,
        method: str = "POST",
        path: str = "/v2/models/risk/infer",
        body: Any = None,
        headers: dict[str, str] | None = None,
        token: str | None = "",
    ) -> Answer:
        """One request; the caller's own token unless another, or None for none, is given."""
        sent = dict(headers or {})
        if token is not None:
            sent["authorization"] = f"Bearer {token or self.token()}"
        if body is None and method == "POST":
            body = BODY
        data = json.dumps(body).encode() if isinstance(body, dict | list) else body
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=15)
        try:
            # An answer may come, and the rest of the body be refused, while the body is being sent.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.request(method, path, data, sent)
            got = connection.getresponse()
            return Answer(got.status, {k.lower(): v for k, v in got.getheaders()}, got.read())
        finally:
            connection.close()

    def received(self, revision: str) -> Any:
        """What the stand-in got last."""
        return self._of_engine(revision, "/last")

    def served(self, revision: str) -> int:
        """How many requests the stand-in got."""
        return int(self._of_engine(revision, "/count"))

    def _of_engine(self, revision: str, path: str) -> Any:
        connection = http.client.HTTPConnection(str(self.engines[revision][0].http), timeout=5)
        try:
            connection.request("GET", path)
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()

    def log(self) -> list[dict[str, Any]]:
        """The access log so far."""
        path = Path(self.desired.access_log)
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@contextmanager
def gateway_in(home: Path) -> Iterator[Gateway]:
    keys = home / "keys"
    tokens.make_keys(keys)
    jwks = tokens.jwks(keys)
    desired = Desired(
        listen=Address("127.0.0.1", free_ports(1)[0]),
        callers=Issuer("callers", "https://callers", "models", jwks),
        operators=Issuer("operators", "https://operators", "operate", jwks),
        models=(),
        access_log=str(home / "access.log"),
    )
    gateway = Gateway(home, desired)
    try:
        yield gateway
    finally:
        gateway.close()


def serving(gateway: Gateway, *models: ModelTraffic) -> Gateway:
    """Write the files for `models` and start Envoy on them."""
    write_offline(gateway.want(*models), gateway.folder)
    gateway.start()
    return gateway
