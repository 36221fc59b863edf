"""Being asked to stop, as something that a waiting keeper notices at once."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Stop:
    """`asked` turns true on SIGTERM or SIGINT; `fd` becomes readable then, and whenever `wake` is called."""

    def __init__(self) -> None:
        self.asked = False
        self.fd, self._write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def wake(self) -> None:
        """Let whoever waits look again. Safe in threads and signal handlers."""
        with suppress(BlockingIOError):
            os.write(self._write, b"!")

    def wait(self, timeout_s: float) -> None:
        """Sleep, unless woken."""
        select.select([self.fd], [], [], max(0.0, timeout_s))
        self.calm()

    def calm(self) -> None:
        """Forget earlier calls of `wake`; being asked to stop is not forgotten."""
        with suppress(BlockingIOError):
            while os.read(self.fd, 512):
                pass

    def close(self) -> None:
        os.close(self.fd)
        os.close(self._write)


@contextmanager
def stop_signals() -> Iterator[Stop]:
    """Turn SIGTERM and SIGINT into a `Stop`, for the main thread of a process."""
    stop = Stop()

    def ask(*_: object) -> None:
        stop.asked = True
        stop.wake()

    before = {number: signal.signal(number, ask) for number in (signal.SIGTERM, signal.SIGINT)}
    signal.pthread_sigmask(signal.SIG_UNBLOCK, before)  # see __main__.py
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        stop.close()
