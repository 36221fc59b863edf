import json

import nbformat
import pytest

from taxiway.core.errors import Refused
from taxiway.notebook import imports, read
from tests.notebook.conftest import write


def test_the_code_cells_are_counted_from_one_and_the_file_stays_as_it_is(tmp_path):
    path = write(tmp_path, "a = 1", "", "b = 2", counts=[3, None, 1])
    before = path.read_bytes()
    notebook = read.read(path)
    assert [(c.number, c.source, c.count) for c in notebook.cells] == [(1, "a = 1", 3), (2, "b = 2", 1)]
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("print(1)", "no-notebook", "a notebook is JSON"),
        ("[" * 5000, "no-notebook", "a notebook is JSON"),
        ("\x00\x01", "no-notebook", "a notebook is JSON"),
        ("[]", "no-notebook", "nbformat"),
        ('{"nbformat": "four"}', "no-notebook", "nbformat"),
        ('{"nbformat": 4, "cells": 5}', "no-notebook", "cannot be read|not a notebook"),
        ('{"nbformat": 4, "cells": [{"cell_type": "code"}]}', "no-notebook", "not a notebook"),
        ('{"nbformat": 4, "metadata": {}, "cells": []}', "no-model", "no code"),
        ('{"nbformat": 4, "metadata": {"kernelspec": {"language": "R"}}, "cells": []}', "not-python", "written in r"),
    ],
)
def test_what_is_no_python_notebook_is_refused(tmp_path, text, code, said):
    path = tmp_path / "n.ipynb"
    path.write_text(text)
    with pytest.raises(Refused, match=said) as no:
        read.read(path)
    assert no.value.code == code
    assert str(path) in str(no.value)


def test_what_is_not_there_or_no_file_is_refused(tmp_path):
    for path in (tmp_path / "none.ipynb", tmp_path):
        with pytest.raises(Refused, match=str(path)) as no:
            read.read(path)
        assert no.value.code == "no-notebook"


def test_old_formats_and_sources_in_lines_are_read(tmp_path):
    cell = {"cell_type": "code", "input": ["a = 1\n", "b = 2"], "language": "python", "outputs": []}
    old = {
        "nbformat": 3,
        "nbformat_minor": 0,
        "metadata": {},
        "worksheets": [{"cells": [cell]}],
    }
    (tmp_path / "old.ipynb").write_text(json.dumps(old))
    assert read.read(tmp_path / "old.ipynb").cells[0].source == "a = 1\nb = 2"
    new = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("x")])
    new.cells[0]["source"] = ["c = 1\n", "d = 2"]
    (tmp_path / "lines.ipynb").write_text(json.dumps(new))
    assert read.read(tmp_path / "lines.ipynb").cells[0].source == "c = 1\nd = 2"


def test_imports_are_pinned_but_not_the_standard_library_nor_files_next_to_the_notebook(tmp_path):
    code = "import os, numpy as np\n%matplotlib inline\nfrom sklearn.svm import SVC\nimport helper"
    path = write(tmp_path, code, "def broken(")
    found = imports.pinned(read.read(path), also=("nbformat",))
    assert list(found) == ["nbformat", "numpy", "scikit-learn"]
    assert found["nbformat"] == nbformat.__version__
    assert imports.modules(read.read(path)) == {"numpy", "sklearn", "helper"}
