"""Environments for Python steps: made once, whole or not at all, and by the right Python."""

import os
import signal
import subprocess
import sys
import threading
import time
from importlib import metadata

import pytest

from taxiway.core.errors import Refused
from taxiway.engine import python, steps
from taxiway.engine.alone import alone
from taxiway.engine.steps import Need

SERIES = f"{sys.version_info[0]}.{sys.version_info[1]}"
NUMPY = f"numpy=={metadata.version('numpy')}\n"
SMALL = Need(SERIES, NUMPY)

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """An engine's home with the environment of SMALL, made by two at once."""
    home = tmp_path_factory.mktemp("home")
    found, said = [], []
    both = [
        threading.Thread(target=lambda: found.append(steps.install(home, SMALL, progress=said.append)))
        for _ in range(2)
    ]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert len(set(found)) == 1
    assert len(found) == 2
    assert len([line for line in said if line.startswith("installing")]) == 1
    return home


def test_what_is_there_is_found_and_not_made_again(home):
    said = []
    assert steps.install(home, SMALL, progress=said.append) == steps.located(home, SMALL)
    assert said == []
    assert steps.located(home, Need(SERIES, NUMPY + "scipy==1.0\n")) is None


def test_one_that_was_interrupted_is_begun_anew(home):
    wanted = Need(SERIES, "packaging==26.0\n" + NUMPY)
    left = home / "steps" / wanted.key
    left.mkdir(parents=True)
    (left / "half").touch()
    assert steps.located(home, wanted) is None
    assert steps.install(home, wanted, progress=lambda _: None).is_file()
    assert not (left / "half").exists()


def test_a_command_that_a_killed_installation_left_keeps_the_next_one_waiting(tmp_path):
    code = (
        "import os, sys; from pathlib import Path; from taxiway.engine.alone import alone, run\n"
        "with alone(Path(sys.argv[1]), 'it', print):\n"
        "    run(['sh', '-c', 'echo $$ > ' + sys.argv[2] + '; exec cat ' + sys.argv[3]], 'wait')\n"
    )
    lock, pid, pipe = tmp_path / "lock", tmp_path / "pid", tmp_path / "pipe"
    os.mkfifo(pipe)
    first = subprocess.Popen([sys.executable, "-c", code, str(lock), str(pid), str(pipe)])
    writer = os.open(pipe, os.O_RDWR)
    deadline = time.monotonic() + 30
    while not (pid.exists() and pid.read_text().strip()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    first.kill()
    first.wait()
    said = threading.Event()
    done = threading.Event()

    def second():
        with alone(lock, "it", lambda _: said.set()):
            done.set()

    waiting = threading.Thread(target=second)
    waiting.start()
    assert said.wait(30)
    assert not done.is_set()
    os.kill(int(pid.read_text()), signal.SIGKILL)
    assert done.wait(30)
    waiting.join()
    os.close(writer)


def test_what_cannot_be_installed_is_said_and_leaves_none(home):
    wanted = Need(SERIES, "taxiway-has-no-such-package==1.0\n")
    with pytest.raises(Refused, match="Could not install what the model's Python step needs"):
        steps.install(home, wanted, progress=lambda _: None)
    assert steps.located(home, wanted) is None


def test_a_series_that_is_not_here_is_refused_with_the_way_to_get_it(home):
    with pytest.raises(Refused, match=r"needs Python 3.99, and none was found. Install one: .*python3.99"):
        steps.install(home, Need("3.99", NUMPY), progress=lambda _: None)
    assert python.of_series(SERIES).is_file()


def test_a_folder_without_a_step_needs_nothing_and_a_broken_one_is_refused(tmp_path):
    assert steps.need(tmp_path) is None
    (tmp_path / "step").mkdir()
    with pytest.raises(Refused, match="cannot be read"):
        steps.need(tmp_path)
    (tmp_path / "step/step.json").write_text('{"python": "3.12.4"}')
    (tmp_path / "step/requirements.txt").write_text("a==1\nb==2\n")
    found = steps.need(tmp_path)
    assert found is not None
    assert (found.series, dict(found.pins)) == ("3.12", {"a": "1", "b": "2"})
    assert found.key == Need("3.12", "b==2\na==1\n").key
