import os
import signal
import sys
import time

import psutil
import pytest

from taxiway.core.errors import Refused
from taxiway.runtime import supervisord
from taxiway.runtime.program import Program
from taxiway.runtime.supervisord import Supervisor, render_program, until

SLEEPER = (sys.executable, "-c", "import time; time.sleep(600)")


def quiet(_line):
    pass


@pytest.fixture
def supervisor(tmp_path):
    state = tmp_path / "it's a state"
    state.mkdir()
    made = Supervisor(state, state / "run", state / "s.sock", state / "supervisord.log")
    yield made
    supervisord.stop(made, quiet)
    assert supervisord.survivors(state) == []


def sleeper(supervisor, name):
    return Program(name, SLEEPER, supervisor.state / f"{name}.log", stop_s=2)


def running(supervisor, name):
    info = supervisord.processes(supervisor).get(name)
    return info is not None and info.running


@pytest.mark.parametrize("name", ["a ;b", "100%", "two\nlines"])
def test_a_path_that_supervisords_file_format_cannot_hold_is_refused(tmp_path, name):
    with pytest.raises(Refused, match="choose another --state"):
        render_program(Program("p", ("echo",), tmp_path / name))


@pytest.mark.processes
def test_a_killed_program_is_back_and_keeps_its_place(supervisor):
    supervisord.start(supervisor, [sleeper(supervisor, "a")])
    assert until(lambda: running(supervisor, "a"), 15)
    first = supervisord.processes(supervisor)["a"].pid
    os.kill(first, signal.SIGKILL)
    assert until(lambda: running(supervisor, "a") and supervisord.processes(supervisor)["a"].pid != first, 15)


@pytest.mark.processes
def test_programs_come_and_go_without_touching_the_others(supervisor):
    supervisord.start(supervisor, [sleeper(supervisor, "base")])
    assert until(lambda: running(supervisor, "base"), 15)
    base = supervisord.processes(supervisor)["base"].pid
    assert supervisord.sync(supervisor, [sleeper(supervisor, "engine-a")], "engine-") == ["started engine-a"]
    assert supervisord.sync(supervisor, [sleeper(supervisor, "engine-a")], "engine-") == []
    done = supervisord.sync(supervisor, [sleeper(supervisor, "engine-b")], "engine-")
    assert sorted(done) == ["started engine-b", "stopped engine-a"]
    assert set(supervisord.processes(supervisor)) == {"base", "engine-b"}
    assert supervisord.processes(supervisor)["base"].pid == base


@pytest.mark.processes
def test_a_program_that_was_given_up_is_tried_again(supervisor):
    flag = supervisor.state / "may run"
    script = f"import os, sys, time; os.path.exists({str(flag)!r}) or sys.exit(1); time.sleep(600)"
    program = Program("late", (sys.executable, "-c", script), supervisor.state / "late.log")
    supervisord.start(supervisor, [program])
    assert until(lambda: supervisord.processes(supervisor)["late"].state == "FATAL", 60)
    flag.touch()
    assert until(lambda: supervisord.revive(supervisor, now=time.time(), after_s=0.1) == ["late"], 10)
    assert until(lambda: running(supervisor, "late"), 15)


@pytest.mark.processes
def test_what_a_killed_supervisor_leaves_behind_is_found_and_ended(supervisor):
    supervisord.start(supervisor, [sleeper(supervisor, "a")])
    assert until(lambda: running(supervisor, "a"), 15)
    child = supervisord.processes(supervisor)["a"].pid
    boss = int((supervisor.folder / "supervisord.pid").read_text())
    os.kill(boss, signal.SIGKILL)
    assert until(lambda: not supervisord.is_up(supervisor), 10)
    assert [p.pid for p in supervisord.survivors(supervisor.state)] == [child]
    supervisord.stop(supervisor, quiet)
    assert not psutil.pid_exists(child)


def test_without_a_supervisor_the_answer_says_how_to_start_one(tmp_path):
    made = Supervisor(tmp_path, tmp_path, tmp_path / "none.sock", tmp_path / "log")
    assert not supervisord.is_up(made)
    with pytest.raises(Refused, match="taxiway up"):
        supervisord.processes(made)
