"""Environments for Python steps: made once, whole or not at all, and by the right Python."""

import sys
import threading
from importlib import metadata

import pytest

from taxiway.core.errors import Refused
from taxiway.engine import python, steps
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
