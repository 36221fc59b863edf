"""Every command and every program that the documents show is run, in the order in which they show them."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.e2e.conftest import left_behind

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[2]
# Blocks that a test cannot run within itself: they run the tests, or are what a test is about elsewhere.
ELSEWHERE = {"make demo", "make test", "make unit", "make check", "make stop"}
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(document):
    found = BLOCK.findall((ROOT / document).read_text())
    return [(kind, text) for kind, text in found if not all(_is_elsewhere(line) for line in text.splitlines())]


def _is_elsewhere(line):
    return line.partition("#")[0].strip() in ELSEWHERE | {""}


def documents():
    found = (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "examples/README.md")
    return sorted(str(p.relative_to(ROOT)) for p in found)


@pytest.fixture
def folder(tmp_path):
    """A copy of what the documents speak of, and a state folder that belongs to it alone."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    (tmp_path / ".venv").symlink_to(Path(sys.prefix))
    yield tmp_path
    run(tmp_path, "sh", "taxiway down")
    assert left_behind(tmp_path / ".taxiway") == []


def run(folder, kind, text):
    env = {k: v for k, v in os.environ.items() if k != "TAXIWAY_STATE"}
    env["PATH"] = f"{Path(sys.prefix) / 'bin'}{os.pathsep}{env['PATH']}"
    command = ["bash", "-euo", "pipefail", "-c", text] if kind == "sh" else [sys.executable, "-c", text]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"
    return done.stdout


def test_every_shown_command_works(folder, engine_home):
    shown = {document: blocks(document) for document in documents()}
    for kind, text in shown.pop("README.md"):
        run(folder, kind, text)
    run(folder, "sh", "taxiway up")
    for document in shown.values():
        for kind, text in document:
            run(folder, kind, text)


def test_the_documents_show_commands():
    assert len(blocks("README.md")) >= 1
    assert [kind for kind, _ in blocks("examples/README.md")] == ["sh", "python"]


def test_links_between_documents_lead_somewhere():
    for document in documents():
        for target in re.findall(r"\]\(([^)#:]+)\)", (ROOT / document).read_text()):
            assert ((ROOT / document).parent / target).exists(), f"{document}: {target}"
