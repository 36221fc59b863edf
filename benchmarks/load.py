"""A closed-loop HTTP/1.1 load generator: one process, one thread, `connections` sockets, no request retried.

Each connection sends the same bytes, waits for the whole answer, notes the time and sends again. Its own cost (a few
tens of microseconds of one core per request) is part of every figure measured with it; only ratios are meant.
"""

from __future__ import annotations

import selectors
import socket
import time
from dataclasses import dataclass, field


@dataclass(slots=True)
class Result:
    """`latencies` in seconds, one per answer with status 200; `failed` counts all other ends of a request."""

    seconds: float = 0.0
    failed: int = 0
    latencies: list[float] = field(default_factory=list)

    @property
    def rps(self) -> float:
        return len(self.latencies) / self.seconds

    def quantile_ms(self, q: float) -> float:
        """The q-quantile of the latencies in milliseconds."""
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) - 1, int(q * len(ordered)))] * 1000 if ordered else float("nan")


@dataclass(slots=True)
class _Connection:
    socket: socket.socket
    sent: float = 0.0
    got: bytes = b""


def run(host: str, port: int, request: bytes, connections: int, seconds: float) -> Result:
    """Load `host:port` with `request` for `seconds`."""
    result = Result()
    with selectors.DefaultSelector() as selector:
        held = [_Connection(_opened(host, port)) for _ in range(connections)]
        for connection in held:
            selector.register(connection.socket, selectors.EVENT_READ, connection)
        began = time.perf_counter()
        for connection in held:
            _send(connection, request)
        while (now := time.perf_counter()) - began < seconds:
            for key, _ in selector.select(timeout=0.1):
                _receive(key.data, request, result)
        result.seconds = now - began
        for connection in held:
            connection.socket.close()
    return result


def _opened(host: str, port: int) -> socket.socket:
    opened = socket.create_connection((host, port), timeout=10)
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return opened


def _send(connection: _Connection, request: bytes) -> None:
    connection.got = b""
    connection.sent = time.perf_counter()
    connection.socket.sendall(request)


def _receive(connection: _Connection, request: bytes, result: Result) -> None:
    data = connection.socket.recv(65536)
    if not data:
        raise ConnectionError("the server closed a connection under load")
    got = connection.got = connection.got + data
    end = got.find(b"\r\n\r\n")
    if end < 0 or len(got) < end + 4 + _length(got[:end]):
        return
    if got.startswith(b"HTTP/1.1 200"):
        result.latencies.append(time.perf_counter() - connection.sent)
    else:
        result.failed += 1
    _send(connection, request)


def _length(head: bytes) -> int:
    lower = head.lower()
    at = lower.index(b"content-length:") + 15
    return int(lower[at : (lower + b"\r\n").index(b"\r\n", at)])
