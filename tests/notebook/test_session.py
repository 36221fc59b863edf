import pytest

from tests.notebook.conftest import DATA

FIT = "model = LogisticRegression().fit(X, y)\nmodel.predict(X)"


@pytest.mark.parametrize(
    ("cell", "line", "error", "advice"),
    [
        ("x = 1\n1 / 0", 2, "ZeroDivisionError: division by zero", ""),
        ("x = later + 1", 1, "NameError", "defined only later, in cell 3; move that cell up"),
        ("x = never + 1", 1, "NameError", "run the notebook top to bottom"),
        ("def broken(:", 1, "SyntaxError", ""),
        ("import nothing_like_this", 1, "ModuleNotFoundError", "install that library"),
        ("open('no.csv')", 1, "FileNotFoundError", "put the file next to the notebook"),
        ("input('name? ')", 1, "", "a build has nobody to answer"),
        ("def f():\n    raise ValueError('deep')\n\nf()", 4, "ValueError: deep", ""),
        ("%%time\n\n1 / 0", 3, "ZeroDivisionError", ""),
        ("%%time\nx = 1\nx / 0", 3, "ZeroDivisionError", ""),
        ("%%capture\n\nx = 1\nx / 0", 4, "ZeroDivisionError", ""),
        ("import sys\nsys.exit(3)", 2, "SystemExit", ""),
        ("raise ValueError", 1, "ValueError: no message", ""),
    ],
)
def test_a_cell_that_fails_is_named_with_line_source_and_advice(notebooks, cell, line, error, advice):
    code, said = notebooks.refused("a = 1", cell, "later = 1")
    assert code == "cell-error"
    assert f"n.ipynb: cell 2, line {line}: {error}" in said
    assert cell.splitlines()[line - 1].strip() in said
    assert advice in said


def test_what_works_in_jupyter_works_here(notebooks):
    (notebooks.folder / "data.csv").write_text("1,2\n")
    (notebooks.folder / "helper.py").write_text("VALUE = 7\n")
    said = notebooks.run(
        "%pip install nothing-like-this\n!pip install nothing-like-this\n%matplotlib inline",
        "%%time\nimport helper\nassert helper.VALUE == 7",
        "%%capture out\nprint('x' * 100)",
        "assert out.stdout.startswith('xx')\nname = !echo taxiway\nassert name == ['taxiway']",
        "assert open('data.csv').read() == '1,2\\n'\nassert __name__ == '__main__'",
        "import os\nos.mkdir('sub')\nos.chdir('sub')",
        "1 + 1",
        "assert _ == 2\nprint('y' * 1_000_000)",
        "class Mine:\n    pass\n\nimport pickle\nassert type(pickle.loads(pickle.dumps(Mine()))) is Mine",
        DATA,
        FIT,
    )
    assert said["chosen"] == "model@11"
