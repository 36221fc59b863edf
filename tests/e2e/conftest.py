"""Whole platforms: started by the command line, as a person would, and taken down whatever happens."""

import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from taxiway.app import status
from taxiway.app.wire import Platform
from taxiway.engine import status as engine_status

EXAMPLES = Path(__file__).parents[2] / "examples"


@dataclass
class Site:
    """One platform and the command line that is about it."""

    state: Path

    def taxiway(self, *words, check=True, timeout=240):
        done = subprocess.run(
            [sys.executable, "-m", "taxiway.entry.cli", *words, "--state", str(self.state)],
            capture_output=True,
            text=True,
            timeout=timeout,
            env={k: v for k, v in os.environ.items() if k != "TAXIWAY_STATE"},
        )
        if check:
            assert done.returncode == 0, f"taxiway {' '.join(words)}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done

    def json(self, *words, **more):
        return json.loads(self.taxiway(*words, "--json", **more).stdout)

    def status(self):
        """What `taxiway status --json` says, without starting a process for it."""
        return status.to_json(status.collect(self.platform))

    def token(self, user="u1", *more):
        return self.taxiway("token", "--user", user, "--app", "web", *more).stdout.strip()

    @property
    def platform(self):
        return Platform.at(self.state)

    def model(self, name="risk"):
        (found,) = [m for m in self.status()["models"] if m["model"] == name]
        return found

    def revision(self, number, model="risk"):
        (found,) = [r for r in self.model(model)["revisions"] if r["number"] == number]
        return found

    def pid(self, process):
        (found,) = [p for p in self.status()["processes"] if p["name"] == process]
        return found["pid"]

    def settled(self, seconds=60):
        """Wait until the platform calls itself healthy."""
        assert eventually(lambda: self.status().get("healthy"), seconds), self.taxiway("status", check=False).stdout


def eventually(condition, seconds=60.0, every=0.1):
    """Poll until `condition` holds; whether it did."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(every)
    return True


@pytest.fixture(scope="session")
def builds(tmp_path_factory):
    """Finished builds, shared: a platform that begins with them need not run the notebooks again."""
    return tmp_path_factory.mktemp("builds")


def made(state, builds, *up):
    site = Site(state)
    state.mkdir(mode=0o700)
    shutil.copytree(builds, state / "work", dirs_exist_ok=True)
    site.taxiway("up", "--port", "18080", "--console-port", "18081", *up)
    return site


def ended(site, builds):
    site.taxiway("down", check=False)
    shutil.copytree(site.state / "work", builds, dirs_exist_ok=True)
    assert left_behind(site.state) == []


def left_behind(state):
    """Processes that carry the platform's marker, and the shared memory of its engines."""
    marker = f"TAXIWAY_PLATFORM={state}\0".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if marker in (process / "environ").read_bytes() and b"Z (zombie)" not in (process / "status").read_bytes():
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    runs = [s.run for f in (state / "run/engines").glob("*.json") if (s := engine_status.read(f))]
    return found + [str(segment) for run in runs for segment in Path("/dev/shm").glob(f"{run}_*")]


@pytest.fixture
def site(tmp_path, builds, engine_home):
    """A platform of its own for one test, empty."""
    site = made(tmp_path / "state", builds)
    yield site
    ended(site, builds)


@pytest.fixture(scope="session")
def shared(tmp_path_factory, builds, engine_home):
    """One platform for all tests that leave it as they found it: risk@1, risk@2 and recommend@1."""
    site = made(tmp_path_factory.mktemp("platform") / "state", builds)
    try:
        site.taxiway("ship", str(EXAMPLES / "risk/notebook.ipynb"))
        site.taxiway("ship", str(EXAMPLES / "risk/notebook_v2.ipynb"), "--name", "risk")
        site.taxiway("ship", str(EXAMPLES / "recommend/notebook.ipynb"))
        yield site
    finally:
        ended(site, builds)


@pytest.fixture
def live(shared):
    """The shared platform with risk@1 answering alone."""
    if shared.revision(1)["traffic_percent"] != 100:
        shared.taxiway("traffic", "risk", "1=100")
    shared.settled()
    return shared


@pytest.fixture(scope="session")
def token(shared):
    return shared.token()
