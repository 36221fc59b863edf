import json
from pathlib import Path

import pytest
from tests.notebook.conftest import write

from taxiway.entry.cli import main

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_findings_are_shown_by_cell_with_severity_and_fix(capsys):
    assert main(["check", str(EXAMPLES / "risk/notebook.ipynb")]) == 0
    said = capsys.readouterr().out
    assert "1 warning" in said
    assert "cell 2\n    line 1    warning  absolute-path:" in said
    assert "fix: " in said


@pytest.mark.parametrize(("level", "code"), [("error", 0), ("warning", 1), ("note", 1), ("never", 0)])
def test_what_fails_is_settable(level, code, capsys):
    assert main(["check", str(EXAMPLES / "risk/notebook.ipynb"), "--fail-on", level]) == code


def test_errors_fail_by_default(tmp_path, capsys):
    assert main(["check", str(write(tmp_path, "breakpoint()"))]) == 1


def test_json_holds_everything_and_a_notebook_that_cannot_be_read_hides_no_other(tmp_path, capsys):
    good, bad = write(tmp_path, "print(1)"), tmp_path / "bad.ipynb"
    bad.write_text("{")
    assert main(["check", str(bad), str(good), "--json", "--fail-on", "never"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert "is not a notebook" in said["unreadable"][str(bad)][0]
    (finding,) = said["notebooks"][str(good)]
    assert (finding["kind"], finding["cell"], finding["line"], finding["severity"]) == ("print", 1, 1, "note")
    assert finding["why"]
    assert finding["fix"]


def test_sarif_goes_to_a_file_or_to_standard_output(tmp_path, capsys):
    path = write(tmp_path, "print(1)")
    assert main(["check", str(path), "--sarif", str(tmp_path / "out.sarif")]) == 0
    capsys.readouterr()
    assert main(["check", str(path), "--sarif", "-"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads((tmp_path / "out.sarif").read_text())
    assert main(["check", str(path), "--sarif", str(tmp_path / "no/where")]) == 1


def test_all_rules_can_be_listed(capsys):
    assert main(["check", "--rules"]) == 0
    assert "test-not-transformed" in capsys.readouterr().out
    assert main(["check"]) == 2
