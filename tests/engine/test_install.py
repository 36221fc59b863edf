"""Making, finding and renewing the engine's environment."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from taxiway.core.errors import Refused
from taxiway.engine import home as homes
from taxiway.engine.home import EngineHome, locate
from taxiway.engine.install import install
from taxiway.engine.python import find


def stand_in(path: Path, facts: dict | None) -> Path:
    """Something that answers like a Python with these facts (None: not at all)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\nexit 127\n" if facts is None else f"#!/bin/sh\necho '{json.dumps(facts)}'\n")
    path.chmod(0o755)
    return path


def python(root: Path, version: tuple[int, int, int], *, library: bool = True) -> dict:
    name = f"libpython{version[0]}.{version[1]}.so.1.0"
    (root / "lib").mkdir(parents=True, exist_ok=True)
    if library:
        (root / "lib" / name).touch()
    executable = str(root / "bin" / "python")
    return {"version": version, "executable": executable, "prefix": str(root), "libdir": None, "multiarch": None}


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine whose own Python is 3.13 and which has nothing on PATH, in pyenv or in uv."""
    monkeypatch.setattr("taxiway.engine.python.sys.version_info", (3, 13, 0))
    monkeypatch.setattr("taxiway.engine.python._SYSTEM_LIBRARIES", ())
    for name in ("PYENV_ROOT", "UV_PYTHON_INSTALL_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    return tmp_path


@pytest.mark.parametrize(
    "place",
    [
        "path/python3.12",
        "path/python3.11",
        "home/.pyenv/versions/3.12.1/bin/python3.12",
        "home/.local/share/uv/python/cpython-3.12.4-linux-x86_64-gnu/bin/python3.12",
    ],
)
def test_a_python_is_found_wherever_people_put_one(elsewhere: Path, place: str) -> None:
    minor = 12 if place.endswith("12") else 11
    stand_in(elsewhere / place, python(elsewhere / "root", (3, minor, 4)))
    found = find()
    assert (found.version, found.series) == ((3, minor, 4), f"3.{minor}")
    assert found.library == elsewhere / "root/lib" / f"libpython3.{minor}.so.1.0"


def test_a_shim_that_does_not_run_does_not_hide_the_python_behind_it(elsewhere: Path) -> None:
    stand_in(elsewhere / "path/python3.12", None)
    stand_in(elsewhere / "home/.pyenv/versions/3.12.1/bin/python3.12", python(elsewhere / "root", (3, 12, 1)))
    assert find().version == (3, 12, 1)


def test_no_python_is_refused_with_all_that_was_looked_at(elsewhere: Path) -> None:
    with pytest.raises(Refused, match=r"no python3.12 or python3.11 on PATH, in pyenv or in uv"):
        find()
    stand_in(elsewhere / "path/python3.12", None)
    stand_in(elsewhere / "path/python3.11", python(elsewhere / "static", (3, 11, 2), library=False))
    with pytest.raises(Refused) as refusal:
        find()
    text = str(refusal.value)
    assert f"{elsewhere}/path/python3.12 (does not run)" in text
    assert f"{elsewhere}/path/python3.11 (no libpython3.11.so.1.0 in" in text
    assert "uv python install 3.12" in text


def test_a_named_python_leaves_no_choice(elsewhere: Path) -> None:
    stand_in(elsewhere / "path/python3.12", python(elsewhere / "root", (3, 12, 1)))
    named = stand_in(elsewhere / "mine", python(elsewhere / "new", (3, 13, 0)))
    with pytest.raises(Refused, match=r"mine \(is Python 3.13\)"):
        find(named)


def test_a_borrowed_library_is_the_last_resort(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    system = elsewhere / "system"
    python(system, (3, 12, 0))
    monkeypatch.setattr("taxiway.engine.python._SYSTEM_LIBRARIES", (str(system / "lib"),))
    stand_in(elsewhere / "path/python3.12", python(elsewhere / "static", (3, 12, 1), library=False))
    assert find().library.parent == system / "lib"
    stand_in(elsewhere / "path/python3.11", python(elsewhere / "whole", (3, 11, 2)))
    assert find().version == (3, 11, 2)


def test_an_absent_engine_is_refused_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"there is none yet. Run `taxiway engine install`"):
        locate(tmp_path)
    (tmp_path / "current.json").write_text("{")
    with pytest.raises(Refused, match="there is none yet"):
        locate(tmp_path)


def test_the_default_home_can_be_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TAXIWAY_ENGINE_HOME", str(tmp_path))
    assert homes.default_home() == tmp_path
    monkeypatch.delenv("TAXIWAY_ENGINE_HOME")
    assert homes.default_home() == Path(sys.prefix) / "engine"


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        ({"platform.machine": lambda: "aarch64"}, "runs on Linux x86_64; this is linux aarch64"),
        ({"os.confstr": lambda _: "glibc 2.31"}, "needs glibc 2.35 or newer; this system has glibc 2.31"),
        ({"os.confstr": lambda _: None}, "this system has another C library. "),
    ],
)
def test_a_machine_that_cannot_run_it_is_refused_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, patch: dict, words: str
) -> None:
    for name, value in patch.items():
        monkeypatch.setattr(f"taxiway.engine.install.{name}", value)
    with pytest.raises(Refused, match=words):
        install(tmp_path / "home", progress=print)
    assert not (tmp_path / "home").exists()


def test_a_full_disk_is_refused_before_anything_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("taxiway.engine.install._SPACE", 10**18)
    with pytest.raises(Refused, match="set TAXIWAY_ENGINE_HOME to a folder on another disk"):
        install(tmp_path, progress=print)


@pytest.mark.processes
def test_what_pip_said_last_is_in_the_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    with pytest.raises(Refused, match=r"(?s)Could not install the engine's packages.*No matching distribution"):
        install(tmp_path, progress=print)
    with pytest.raises(Refused, match="there is none yet"):
        locate(tmp_path)


@pytest.mark.processes
def test_an_interrupted_install_is_done_again_and_two_at_once_make_one(tmp_path: Path) -> None:
    script = (
        "import sys, pathlib; from taxiway.engine.install import install;"
        "install(pathlib.Path(sys.argv[1]), progress=print)"
    )
    first = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], start_new_session=True)
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("env-*/venv/bin/python3")) and time.monotonic() < deadline:
        time.sleep(0.01)
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    with pytest.raises(Refused):
        locate(tmp_path)

    said: list[str] = []
    made: list[EngineHome] = []
    threads = [threading.Thread(target=lambda: made.append(install(tmp_path, progress=said.append))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made[0] == made[1] == locate(tmp_path)
    assert said.count("the engine is installed") == 1
    assert "waiting for another installation of the engine to finish" in said
    renewed(tmp_path, made[0])
    damaged(tmp_path)


def renewed(home: Path, before: EngineHome) -> None:
    """Changed backend sources renew the backends alone, beside those in use; the ones before those go."""
    said: list[str] = []
    stamp = homes.read_stamp(home)
    assert stamp
    older = stamp.__class__(**{**{f: getattr(stamp, f) for f in stamp.__slots__}, "sources": "sha256:older"})
    homes.write_stamp(home, older)
    with pytest.raises(Refused, match="its backends were made by another version"):
        locate(home)
    after = install(home, progress=said.append)
    assert said == ["refreshing the engine's backends"]
    assert after.environment == before.environment
    assert (after.backends / "onnxruntime/model.py").read_text() == (homes.SOURCES / "onnxruntime/model.py").read_text()
    assert not (after.backends / "onnxruntime/__init__.py").exists()
    assert os.access(after.backends / "python/triton_python_backend_stub", os.X_OK)
    said.clear()
    assert install(home, progress=said.append) == after
    assert said == []


def damaged(home: Path) -> None:
    """A file that has gone is noticed."""
    locate(home).server.unlink()
    with pytest.raises(Refused, match="bin/tritonserver has gone"):
        locate(home)
