"""Loopback ports that nobody listens on."""

from __future__ import annotations

import socket
from contextlib import ExitStack

from taxiway.engine.status import Ports

_LOOPBACK = "127.0.0.1"


def free(preferred: Ports | None = None) -> Ports:
    """Three free ports, `preferred` if all of them are: what others have noted then stays true.

    Another process may take one before the server does; the server then ends at once and is started anew.
    """
    if preferred and all(_is_free(port) for port in preferred.each()):
        return preferred
    with ExitStack() as held:  # all three open together, so that they differ
        sockets = [held.enter_context(_bound(0)) for _ in range(3)]
        http, grpc, metrics = (s.getsockname()[1] for s in sockets)
    return Ports(http, grpc, metrics)


def _is_free(port: int) -> bool:
    try:
        _bound(port).close()
    except OSError:
        return False
    return True


def _bound(port: int) -> socket.socket:
    listener = socket.socket()
    # Connections of a server that has just ended linger on its port without holding it.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((_LOOPBACK, port))
    except OSError:
        listener.close()
        raise
    return listener
