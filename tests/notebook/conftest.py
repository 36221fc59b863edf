"""Notebooks run in a child of their own: running one takes over the process."""

import multiprocessing
import os
import sys
import traceback

import matplotlib
import nbformat
import pandas  # noqa: F401 - imported before the fork
import pytest
import sklearn.ensemble
import sklearn.model_selection  # noqa: F401

from taxiway.core.errors import Refused
from taxiway.notebook import candidates, read, rebuild, session

matplotlib.use("Agg")

DATA = """
import numpy as np
from sklearn.linear_model import LogisticRegression, LinearRegression
from sklearn.preprocessing import StandardScaler
from sklearn.pipeline import make_pipeline
rng = np.random.default_rng(0)
X = rng.normal(3.0, 2.0, size=(60, 3))
y = (X.sum(axis=1) > 9).astype(int)
"""


def write(folder, *cells, name="n.ipynb", counts=None):
    notes = [nbformat.v4.new_code_cell(c) for c in cells]
    for note, count in zip(notes, counts or [], strict=False):
        note.execution_count = count
    nbformat.write(nbformat.v4.new_notebook(cells=notes), folder / name)
    return folder / name


def torch_summary(run):
    """The modules that could be shipped, and what was asked of them."""
    names = {id(b.thing): b.name for b in run.bindings}
    calls = [
        [
            names.get(id(c.owner), "?"),
            c.cell,
            c.rows["training"],
            c.rows["inputs"] and {n: list(v.shape) for n, v in c.rows["inputs"].items()},
        ]
        for c in run.calls
        if c.method == "forward"
    ]
    return {"listed": [c.line() for c in candidates.candidates(run)], "calls": calls}


def summary(run, model, where):
    """What a build would go on with."""
    found = candidates.candidates(run)
    lines = {"listed": [c.line() for c in found], "cells": [b.cell for b in run.bindings]}
    chosen = candidates.choose(found, model, where)
    lines["chosen"] = chosen.label
    if chosen.is_onnx:
        return lines
    rebuilt = rebuild.rebuild(chosen, run.calls)
    answers = rebuilt.estimator.predict(rebuilt.table(rebuilt.rows)).tolist()
    return lines | {
        "steps": list(rebuilt.steps),
        "names": list(rebuilt.names),
        "train": plain(rebuilt.train),
        "rows": plain(rebuilt.rows),
        "answers": answers,
    }


def plain(table):
    """The rows of any form as lists."""
    return table.to_numpy().tolist() if hasattr(table, "iloc") else table.tolist()


def child(pipe, path, model, of_torch=False):
    """Run the notebook at `path` in this process and send what came of it."""
    sys.stdin = open(os.devnull)  # noqa: SIM115, PTH123 - as a build has it
    os.chdir(path.parent)
    try:
        run = session.run(read.read(path), lambda cell: None)
        said = torch_summary(run) if of_torch else summary(run, model, path.name)
    except Refused as no:
        said = {"refused": list(no.reasons), "code": no.code}
    except BaseException:
        said = {"bug": traceback.format_exc()}
    pipe.send(said)


class Notebooks:
    def __init__(self, folder, context):
        self.folder = folder
        self.context = context

    def torch(self, *cells):
        """The summary of a notebook with modules of PyTorch."""
        return self.run(*cells, of_torch=True)

    def run(self, *cells, model=None, of_torch=False):
        """The summary of a notebook, or `{"refused": reasons, "code": ...}`."""
        receive, send = self.context.Pipe(duplex=False)
        process = self.context.Process(target=child, args=(send, write(self.folder, *cells), model, of_torch))
        process.start()
        send.close()
        try:
            said = receive.recv()
        finally:
            process.join()
        assert "bug" not in said, said["bug"]
        return said

    def refused(self, *cells, model=None):
        """Code and text of the refusal."""
        said = self.run(*cells, model=model)
        assert "refused" in said, said
        return said["code"], "\n".join(said["refused"])


@pytest.fixture(scope="session")
def context():
    """Children come from a server process that has everything heavy imported and nothing else going on."""
    found = multiprocessing.get_context("forkserver")
    found.set_forkserver_preload(["tests.notebook.conftest"])
    return found


@pytest.fixture
def notebooks(tmp_path, context):
    return Notebooks(tmp_path, context)
