"""Keepers as real processes, and the end of whatever a test leaves."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from taxiway.core.sample import Tensor
from taxiway.engine import client, proc, server, status
from taxiway.engine.spec import EngineSpec
from taxiway.engine.status import Status


@dataclass
class Kept:
    """A keeper that runs as a process of its own."""

    spec: EngineSpec
    env: dict[str, str]
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> "Kept":
        file = self.spec.status_file.with_name(f"{self.spec.status_file.stem}.spec")
        file.write_text(json.dumps(self.spec.to_json()))
        log = file.with_suffix(".keeper").open("ab")
        argv = [sys.executable, "-m", "taxiway.engine", str(file)]
        self.process = subprocess.Popen(argv, stdout=log, stderr=log, env=self.env)
        log.close()
        return self

    @property
    def said(self) -> str:
        return self.spec.status_file.with_name(f"{self.spec.status_file.stem}.keeper").read_text()

    @property
    def status(self) -> Status:
        found = status.read(self.spec.status_file)
        assert found, self.said
        return found

    @property
    def address(self) -> str:
        ports = self.status.ports
        assert ports
        return f"127.0.0.1:{ports.http}"

    @property
    def grpc(self) -> str:
        ports = self.status.ports
        assert ports
        return f"127.0.0.1:{ports.grpc}"

    def until(self, true: Callable[[Status], bool], seconds: float = 60) -> Status:
        """The first status that `true` holds for."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            found = status.read(self.spec.status_file)
            if found and true(found):
                return found
            time.sleep(0.02)
        raise AssertionError(f"never so: {status.read(self.spec.status_file)}\n{self.said}")

    def ready(self) -> "Kept":
        self.until(lambda s: s.state == "ready")
        return self

    def replaced(self, run: str) -> Status:
        """The status once another run than `run` serves."""
        return self.until(lambda s: s.state == "ready" and s.run != run)

    def kill(self) -> None:
        assert self.process
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        assert self.process
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=30)

    def infer(self, inputs: dict[str, Tensor], timeout_s: float = 10) -> dict[str, Tensor]:
        return client.infer(self.address, self.spec.model, inputs, timeout_s=timeout_s)

    def left(self) -> tuple[list[int], list[str]]:
        """Processes and shared-memory segments of the last run."""
        return left(self.status.run)


def left(run: str) -> tuple[list[int], list[str]]:
    """Processes and shared-memory segments of a run."""
    segments = [path.name for path in Path("/dev/shm").glob(f"{run}_*")]
    return proc.members(f"{run}_"), segments


Keep = Callable[..., Kept]


@contextmanager
def keeping(home: Path, repository: Path, folder: Path) -> Iterator[Keep]:
    kept: list[Kept] = []

    def keep(model: str, *, env: dict[str, str] | None = None, **changes: object) -> Kept:
        # Read anew by whoever starts a process, so that a test cannot leak its environment into the next.
        values = {
            "model": model,
            "number": 1,
            "repository": repository,
            "home": home,
            "status_file": folder / f"{model}.json",
            "log_file": folder / f"{model}.log",
            "start_deadline_s": 30,
            **changes,
        }
        one = Kept(EngineSpec(**values), {**os.environ, **(env or {})})
        kept.append(one)
        return one

    try:
        yield keep
    finally:
        for one in kept:
            if one.process and one.process.poll() is None:
                one.process.kill()
                one.process.wait()
            last = status.read(one.spec.status_file)
            if last:
                server.clear(last.run, last.pid)
