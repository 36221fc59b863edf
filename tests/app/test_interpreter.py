import json
import subprocess
import sys
import sysconfig
from pathlib import Path

import nbformat
import pytest
from tests.app.test_build import FIT, quiet, read, write

from taxiway.app.build import interpreter
from taxiway.app.build.interpreter import Interpreter
from taxiway.core.errors import Refused

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """A virtual environment with nothing in it."""
    folder = tmp_path_factory.mktemp("envs") / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=60)
    return folder


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    """A virtual environment with the libraries of this one, but not Taxiway."""
    folder = tmp_path_factory.mktemp("envs") / "other"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=60)
    (site,) = folder.glob("lib/python*/site-packages")
    # A folder named in a .pth file is searched, but .pth files in it (that of Taxiway's own) are not read.
    (site / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder


def test_what_an_environment_lacks_is_said_with_the_command_that_installs_it(bare, tmp_path):
    with pytest.raises(Refused) as no:
        interpreter.choose(write(tmp_path / "n.ipynb", FIT), python=str(bare))
    assert no.value.code == "missing-packages"
    assert "lacks what a build needs: ipython>=" in no.value.reasons[0]
    assert f"{bare}/bin/python -m pip install 'ipython>=" in no.value.reasons[1]


def test_a_notebook_is_built_in_another_environment_that_knows_nothing_of_taxiway(other, tmp_path):
    missing = subprocess.run([str(other / "bin/python"), "-c", "import taxiway"], capture_output=True, check=False)
    assert missing.returncode != 0
    says = "import sys\nopen('where', 'w').write(sys.prefix)"
    notebook = write(tmp_path / "n.ipynb", says, FIT)
    python = interpreter.choose(notebook, python=str(other))
    assert not python.own
    built = quiet(notebook, tmp_path / "into", python=python)
    assert (tmp_path / "where").read_text() == str(other)
    assert read(built, "parity")["rows"] == 149
    assert read(built, "lineage")["python"] == python.version


def test_the_path_of_a_python_or_of_its_environment_will_do(other, tmp_path):
    notebook = write(tmp_path / "n.ipynb", FIT)
    assert interpreter.choose(notebook, python=str(other)).path == other / "bin/python"
    assert interpreter.choose(notebook, python=str(other / "bin/python")).path == other / "bin/python"
    assert interpreter.choose(notebook).own
    for wrong in (tmp_path / "nowhere", notebook):
        with pytest.raises(Refused) as no:
            interpreter.choose(notebook, python=str(wrong))
        assert no.value.code == "no-python"


def test_a_file_that_runs_but_is_no_python_is_refused_with_what_it_said(tmp_path):
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho 'I am no Python' >&2\nexit 3\n")
    program.chmod(0o755)
    with pytest.raises(Refused, match="I am no Python"):
        interpreter.choose(write(tmp_path / "n.ipynb", FIT), python=str(program))


@pytest.fixture
def kernel(other, tmp_path, monkeypatch):
    """A Jupyter kernel called `Mine` in that environment."""
    folder = tmp_path / "jupyter/kernels/mine"
    folder.mkdir(parents=True)
    argv = [str(other / "bin/python"), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (folder / "kernel.json").write_text(json.dumps({"argv": argv, "language": "python"}))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    return other


def test_the_notebooks_own_kernel_is_its_environment(kernel, tmp_path):
    notebook = write(tmp_path / "n.ipynb", FIT)
    nodes = nbformat.read(notebook, 4)
    nodes.metadata.kernelspec = {"name": "Mine", "display_name": "Mine", "language": "python"}
    nbformat.write(nodes, notebook)
    assert interpreter.choose(notebook).path == kernel / "bin/python"
    assert interpreter.choose(write(tmp_path / "m.ipynb", FIT), kernel="mine").path == kernel / "bin/python"
    assert interpreter.choose(notebook, python=sys.executable).own


def test_an_unknown_kernel_is_refused_with_those_that_are_known(kernel, tmp_path):
    with pytest.raises(Refused, match=r"no such Jupyter kernel for Python; known: .*mine"):
        interpreter.choose(write(tmp_path / "n.ipynb", FIT), kernel="theirs")


@pytest.mark.parametrize(
    ("version", "packages", "said"),
    [
        ("3.9.1", {}, "is Python 3.9.1; a build needs 3.11"),
        ("3.12.1", {"onnxruntime": "1.27.0"}, "onnxruntime!=1.27.*"),
        ("3.12.1", {"numpy": "1.24.4"}, "numpy>=1.26"),
        ("3.12.1", {"xgboost": "2.1", "onnxmltools": None}, "onnxmltools"),
        ("3.12.1", {"torch": "2.6", "onnxscript": None}, "onnxscript"),
    ],
)
def test_versions_that_are_too_old_or_known_to_be_wrong_are_named(version, packages, said):
    known = {**interpreter.own().packages, **packages}
    found = Interpreter(Path("/x/python"), version, {k: v for k, v in known.items() if v is not None}, own=False)
    with pytest.raises(Refused) as no:
        interpreter._check(found, "--python x")
    assert said in str(no.value)


def test_our_own_environment_has_all_that_is_needed():
    interpreter._check(interpreter.own(), "here")
