"""Findings as a whole: places, silencing, and notebooks that nobody here wrote."""

import contextlib
import json
import time

import nbformat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taxiway.core.errors import Refused
from taxiway.notebook import findings, read, sarif
from taxiway.notebook.rules import RULES
from tests.notebook.conftest import write


def all_found(path):
    return findings.findings(read.read(path))


def found(tmp_path, *cells, counts=None):
    skipped = ("unpinned-import", "undefined-name")
    return [
        (f.kind, f.cell, f.line) for f in all_found(write(tmp_path, *cells, counts=counts)) if f.kind not in skipped
    ]


@pytest.mark.parametrize(
    ("source", "kind", "line"),
    [
        ("x = 1\nprint(x)", "print", 2),
        ("display(df)", "print", 1),
        ("ax.hist(x)", "plot", 1),
        ("plt.show()", "plot", 1),
        ("import numpy as np\n\nnp.random.seed(1)", "global-seed", 3),
        ("import random\nrandom.seed(1)", "global-seed", 2),
        ("import torch\ntorch.manual_seed(0)", "global-seed", 2),
        ("p = '/home/anna/x.csv'", "absolute-path", 1),
        ("p = r'C:\\data\\x.csv'", "absolute-path", 1),
        ("p = '~/x.csv'", "absolute-path", 1),
        ("%matplotlib inline", "magic", 1),
        ("!ls", "shell", 1),
        ("x = !ls", "shell", 1),
        ("%%time\nx = 1", "magic", 1),
    ],
)
def test_what_does_not_belong_into_a_service_is_found_with_cell_and_line(tmp_path, source, kind, line):
    assert found(tmp_path, "y = 1", source) == [(kind, 2, line)]


@pytest.mark.parametrize(
    "source",
    ["rng = np.random.default_rng(1)", "logger.info('x')", "p = 'data/x.csv'", "p = '/'", "model.fit(X)", "# print(x)"],
)
def test_what_is_harmless_is_not_found(tmp_path, source):
    assert found(tmp_path, source) == []


def test_cells_executed_out_of_order_are_found_once_each(tmp_path):
    assert found(tmp_path, "a", "b", "c", counts=[1, 5, 3]) == [("execution-order", 3, 1)]
    assert found(tmp_path, "a", "b", "c", counts=[1, None, 3]) == []


def test_a_cell_that_does_not_parse_does_not_hide_the_others(tmp_path):
    assert found(tmp_path, "def broken(:", "print(1)", "x = = 2") == [
        ("syntax-error", 1, 1),
        ("print", 2, 1),
        ("syntax-error", 3, 1),
    ]


def test_a_stored_error_is_noted(tmp_path):
    path = write(tmp_path, "1 / 0")
    nodes = nbformat.read(path, 4)
    nodes.cells[0].outputs = [nbformat.v4.new_output("error", ename="ZeroDivisionError", evalue="x", traceback=[])]
    nbformat.write(nodes, path)
    assert [(f.kind, f.message) for f in all_found(path)] == [
        ("stored-error", "its stored output is an error (ZeroDivisionError)")
    ]


# --- silencing ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cell",
    [
        "print(1)  # taxiway: ignore[print] it is the output of this job",
        "x = 1\n# taxiway: ignore[print] it is the output of this job\nprint(1)",
        "# taxiway: ignore[print] a report\nx = 1\n\nprint(1)\nprint(2)",
        "print('/home/a/b')  # taxiway: ignore[print, absolute-path] an example",
    ],
)
def test_a_remark_with_a_reason_silences_its_rules_where_it_stands(tmp_path, cell):
    assert found(tmp_path, cell) == []


def test_a_remark_says_nothing_of_other_lines_cells_and_rules(tmp_path):
    remark = "print(1)  # taxiway: ignore[print] here only"
    assert found(tmp_path, f"{remark}\nprint(2)", "print(3)") == [("print", 1, 2), ("print", 2, 1)]
    assert ("plot", 1, 1) in found(tmp_path, "plt.show()  # taxiway: ignore[print] no")


def test_what_is_wrong_with_a_remark_is_found_itself(tmp_path):
    assert found(tmp_path, "print(1)  # taxiway: ignore[print]") == [("ignore-without-reason", 1, 1)]
    path = write(tmp_path, "print(1)  # taxiway: ignore[prnt] because")
    assert [f.message for f in all_found(path) if f.kind == "unknown-ignore"] == [
        "there is no rule 'prnt'; did you mean 'print'?"
    ]
    assert found(tmp_path, "x = 1  # taxiway: ignore[print] because") == [("unused-ignore", 1, 1)]


# --- SARIF -------------------------------------------------------------------------------------------------------


def test_sarif_leads_to_the_line_of_the_file(tmp_path):
    path = write(tmp_path, "x = 1\n\ny = 'ä'", "x = 1\nprint(x)\nprint(x, 'ä')")
    text = path.read_text()
    made = sarif.sarif({"n.ipynb": all_found(path)}, {"n.ipynb": sarif.file_lines(text)})
    assert json.loads(json.dumps(made)) == made
    assert made["version"] == "2.1.0"
    (run,) = made["runs"]
    assert [r["id"] for r in run["tool"]["driver"]["rules"]] == list(RULES)
    for result in run["results"]:
        (place,) = result["locations"]
        line = place["physicalLocation"]["region"]["startLine"]
        assert "print(x" in text.splitlines()[line - 1]
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "print"
    assert [r["locations"][0]["logicalLocations"][0]["name"] for r in run["results"]] == [
        "cell 2, line 2",
        "cell 2, line 3",
    ]


# --- anything ----------------------------------------------------------------------------------------------------


def test_five_thousand_cells_take_time_in_proportion(tmp_path):
    def seconds(count):
        cells = [f"x{i} = {i}\ny{i} = x{i} + 1\nprint(y{i})" for i in range(count)]
        path = write(tmp_path, *cells, name=f"{count}.ipynb")
        notebook = read.read(path)
        begin = time.perf_counter()
        assert len(findings.findings(notebook)) == count
        return time.perf_counter() - begin

    seconds(50)
    # Five times as many cells; a quadratic rule would take 25 times as long.
    assert seconds(5000) < 12 * seconds(1000) + 1


@pytest.mark.parametrize(
    "source",
    ["\0", "x = 1\0", "(" * 5000, "x = '" + "a" * 1_000_000 + "'", "%", "!", "?", "%%", "\\", "'''", "\t\n  x", "a?b"],
    ids=range(12),
)
def test_no_cell_is_too_odd_to_be_looked_at(tmp_path, source):
    kinds = {kind for kind, _, _ in found(tmp_path, source or " ", "print(1)")}
    assert "print" in kinds


SOURCES = st.text(alphabet=st.sampled_from("abx=()[]{}:,.'\"\n %!?#@0123/\\\t"), max_size=60)
VALUES = st.recursive(st.none() | st.integers() | st.text(max_size=8), lambda s: st.lists(s, max_size=3), max_leaves=6)


@settings(max_examples=120, deadline=None)
@given(sources=st.lists(SOURCES, min_size=1, max_size=4))
def test_any_text_in_cells_gives_findings_or_none(tmp_path_factory, sources):
    path = write(tmp_path_factory.mktemp("any"), *sources, "x = 1")
    for finding in all_found(path):
        assert 1 <= finding.cell <= len(sources) + 1
        assert finding.line >= 1


@settings(max_examples=120, deadline=None)
@given(
    version=st.integers(2, 5),
    cells=st.lists(
        st.dictionaries(st.sampled_from(["cell_type", "source", "outputs", "execution_count", "input"]), VALUES),
        max_size=3,
    ),
    metadata=VALUES,
)
def test_any_json_that_claims_to_be_a_notebook_is_read_or_refused(tmp_path_factory, version, cells, metadata):
    path = tmp_path_factory.mktemp("json") / "n.ipynb"
    path.write_text(json.dumps({"nbformat": version, "nbformat_minor": 0, "metadata": metadata, "cells": cells}))
    with contextlib.suppress(Refused):
        findings.findings(read.read(path))
