import pytest

from taxiway.notebook import outputs
from taxiway.notebook.read import Cell, Output


def changes(stored, got, kind="stream"):
    return outputs.compare([Cell(1, "x", 1, (Output(kind, stored),))], {1: got})


@pytest.mark.parametrize(
    ("stored", "got"),
    [
        ("accuracy 0.95", "accuracy 0.95"),
        ("accuracy 0.950", "accuracy 0.9496"),
        ("accuracy 0.9500000001", "accuracy 0.95000000010000001"),
        ("took 3.2 s", "took 14 s"),
        ("<Figure at 0x7f00>", "<Figure at 0x7fff>"),
        ("2020-01-01 10:00:00 done", "2026-12-01 11:30:59 done"),
        ("a  b\n\n c", "a b\nc"),
        ("UserWarning: old", ""),
        ("", "anything"),
        ("100%|####| 5/5 [00:01, 3.1 it/s]\nloss 1", "loss 1"),
    ],
)
def test_what_any_two_runs_differ_in_is_no_change(stored, got):
    assert changes(stored, got) == ()


@pytest.mark.parametrize(
    ("stored", "got"),
    [
        ("accuracy 0.95", "accuracy 0.93"),
        ("accuracy 0.950", "accuracy 0.9312"),
        ("(569, 30)", "(568, 30)"),
        ("good", "bad"),
        ("a\nb", "a"),
        ("nan", "0.5"),
    ],
)
def test_other_numbers_and_words_are(stored, got):
    (change,) = changes(stored, got)
    assert change.cell == 1
    assert change.message.startswith("the notebook shows ")


def test_cells_that_were_not_run_or_stored_nothing_say_nothing():
    assert outputs.compare([Cell(1, "x"), Cell(2, "y", 1, (Output("stream", "1"),))], {1: "5"}) == ()
    assert changes("0.5", "0.6", kind="error") == ()
