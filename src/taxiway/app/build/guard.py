"""Stands over the process that runs a notebook: `python -m taxiway.app.build.guard SPEC`.

It adopts whatever the notebook starts (what is sent to the background or into a session of its own, too), bounds the
log, and ends everything as soon as the notebook's process has ended or nobody waits for it any more. It imports next
to nothing, so that no library that hangs, crashes or holds the interpreter's lock can keep it from doing so.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

import psutil

from taxiway.app.build.lifeline import adopt_orphans

# Of what a notebook prints, this much from its beginning and this much from its end are kept.
LOG_HEAD: Final = 1 << 20
LOG_TAIL: Final = 1 << 16
_LAST_WORDS: Final = 8
_CHUNK: Final = 1 << 16


def main(spec: dict[str, Any]) -> int:
    """Run the build process to its end, and say `{"ended": exit code, "last_words": [...]}`; always 0."""
    adopt_orphans()
    output, theirs = os.pipe()
    command = [spec["python"], "-P", "-m", spec["module"], json.dumps(spec)]
    process = subprocess.Popen(
        command,
        env=_environment(Path(spec["python"]), spec["lent"]),
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        pass_fds=(spec["events"],),
        start_new_session=True,
    )
    os.close(theirs)
    log = Log(Path(spec["out"]) / "build.log")
    _until_over(process.pid, output, spec["lifeline"], log)
    code = end_all(process.pid)
    process.returncode = code
    os.set_blocking(output, False)
    with contextlib.suppress(BlockingIOError):
        while data := os.read(output, _CHUNK):
            log.write(data)
    log.close()
    with contextlib.suppress(BrokenPipeError):
        os.write(spec["events"], (json.dumps({"ended": code, "last_words": log.last_words()}) + "\n").encode())
    return 0


def _environment(python: Path, lent: str | None) -> dict[str, str]:
    """Ours, or for another Python: its own, with Taxiway lent to it."""
    if lent is None:
        return dict(os.environ)
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONHOME", "VIRTUAL_ENV", "PYTHONPATH")}
    path = os.pathsep.join([str(python.parent), *filter(None, [kept.get("PATH")])])
    return kept | {"PYTHONPATH": lent, "PATH": path, "PYTHONDONTWRITEBYTECODE": "1"}


class Log:
    """A file of bounded size: the beginning and the end of what is written. A full disk loses the log, no more."""

    def __init__(self, path: Path) -> None:
        self._size = 0
        self._tail = b""
        with contextlib.suppress(OSError):
            path.touch()
        self._path = path

    def write(self, data: bytes) -> None:
        """Take the next bytes."""
        if self._size < LOG_HEAD:
            self._append(data[: LOG_HEAD - self._size])
        self._size += len(data)
        self._tail = (self._tail + data)[-LOG_TAIL:]

    def close(self) -> None:
        """Put the end behind the beginning."""
        beyond = self._size - LOG_HEAD
        if beyond > LOG_TAIL:
            self._append(f"\n... {beyond - LOG_TAIL} bytes left out ...\n".encode())
        if beyond > 0:
            self._append(self._tail[-beyond:])

    def last_words(self) -> list[str]:
        """The last lines, each cut to a length that can be read."""
        return [line[:500] for line in self._tail.decode(errors="replace").strip().splitlines()[-_LAST_WORDS:]]

    def _append(self, data: bytes) -> None:
        with contextlib.suppress(OSError), self._path.open("ab") as file:
            file.write(data)


def _until_over(pid: int, output: int, lifeline: int, log: Log) -> None:
    """Feed the log until the process has ended or the lifeline breaks."""
    ended = os.pidfd_open(pid)
    poll = select.poll()
    for descriptor in (output, lifeline, ended):
        poll.register(descriptor, select.POLLIN)
    ready: set[int] = set()
    while not ready & {lifeline, ended}:
        ready = {descriptor for descriptor, _ in poll.poll()}
        if output in ready:
            data = os.read(output, _CHUNK)
            log.write(data)
            if not data:
                poll.unregister(output)
    os.close(ended)


def end_all(pid: int) -> int:
    """Kill every descendant, again until none is left (five seconds at most); the exit code of `pid`."""
    code = -signal.SIGKILL
    deadline = time.monotonic() + 5
    me = psutil.Process()
    while (left := me.children(recursive=True)) and time.monotonic() < deadline:
        for process in left:
            # One that has ended already keeps its own exit code.
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        with contextlib.suppress(ChildProcessError):
            while (reaped := os.waitpid(-1, os.WNOHANG))[0]:
                if reaped[0] == pid:
                    code = os.waitstatus_to_exitcode(reaped[1])
        time.sleep(0.005)
    return code


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
