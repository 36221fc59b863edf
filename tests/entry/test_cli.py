import json
import subprocess
import sys

import pytest

from taxiway.core.errors import Refused
from taxiway.entry import cli
from taxiway.entry.cli.token import duration

HEAVY = ("numpy", "sklearn", "onnx", "onnxruntime", "skl2onnx", "IPython", "sqlalchemy", "starlette", "uvicorn")


def test_help_loads_nothing_heavy():
    code = f"import sys, taxiway.entry.cli; print([m for m in {HEAVY!r} + ('taxiway.app',) if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("words", [["--help"], *([c, "--help"] for c in cli.COMMANDS)])
def test_every_command_explains_itself(words, capsys):
    assert cli.main(words) == 0
    assert "usage: taxiway" in capsys.readouterr().out


@pytest.mark.parametrize("words", [[], ["fly"], ["traffic"], ["token"], ["ship"], ["up", "--speed", "9"]])
def test_wrong_words_end_with_2(words, capsys):
    assert cli.main(words) == 2
    assert "usage: taxiway" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command", [["status"], ["traffic", "risk", "1=100"], ["rollback", "risk"], ["history", "risk"]]
)
def test_without_a_platform_the_answer_says_how_to_start_one(command, tmp_path, capsys):
    state = tmp_path / "none"
    assert cli.main([*command, "--state", str(state), "--json"]) == 1
    said = capsys.readouterr()
    assert "taxiway up" in said.err
    assert json.loads(said.out)["refused"]["code"] == "not-running"
    assert not state.exists()


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (Refused("first reason", "second"), 1, "taxiway: first reason\n  second"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (ZeroDivisionError("oops"), 3, "ZeroDivisionError: oops"),
        (OSError(28, "No space left on device", "/state/x"), 1, "taxiway: /state/x: No space left on device; put that"),
        (ConnectionResetError(104, "reset"), 3, "this is a bug of ours"),
    ],
)
def test_each_kind_of_end_has_its_exit_code(monkeypatch, capsys, error, code, said):
    def fail(_words):
        raise error

    monkeypatch.setattr(cli, "_run", fail)
    assert cli.main(["status"]) == code
    assert said in capsys.readouterr().err


def test_durations():
    assert [duration(t) for t in ("90s", "30m", "1h", "7d")] == [90, 1800, 3600, 604800]
    for wrong in ("", "h", "0h", "1", "1w", "-1h", "1.5h", "99999999d"):
        with pytest.raises(Exception, match="--ttl"):
            duration(wrong)
