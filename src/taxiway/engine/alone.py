"""One installation at a time, and its commands with it."""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from taxiway.core.errors import Refused


@contextmanager
def alone(lock: Path, what: str, progress: Callable[[str], None]) -> Iterator[None]:
    """Hold `lock`; waits for whoever holds it, saying that another installation of `what` goes on.

    Commands that `run` starts meanwhile hold it too: when this process is killed, whoever comes next waits for the
    command that it left, which still writes where they would begin anew.
    """
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress(f"waiting for another installation of {what} to finish")
            fcntl.flock(file, fcntl.LOCK_EX)
        os.set_inheritable(file.fileno(), True)
        yield


def run(argv: list[str], aim: str) -> None:
    """Run a command of an installation; raises `Refused` with the end of what it said."""
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, close_fds=False)
    if done.returncode != 0:
        tail = "\n".join(f"    {line}" for line in done.stdout.strip().splitlines()[-12:])
        raise Refused(f"Could not {aim}: `{' '.join(argv)}` ended with code {done.returncode}:\n{tail}")
