"""Notebooks run in a forked child: running one takes over the process, and everything heavy is imported once."""

import json
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
        "train": rebuilt.train.tolist(),
        "rows": rebuilt.rows.tolist(),
        "answers": answers,
    }


class Notebooks:
    def __init__(self, folder):
        self.folder = folder

    def run(self, *cells, model=None):
        """The summary of a notebook, or `{"refused": reasons, "code": ...}`."""
        path = write(self.folder, *cells)
        receive, send = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                sys.stdin = open(os.devnull)  # noqa: SIM115, PTH123 - as a build has it
                os.chdir(self.folder)
                try:
                    said = summary(session.run(read.read(path), lambda cell: None), model, path.name)
                except Refused as no:
                    said = {"refused": list(no.reasons), "code": no.code}
                except BaseException:
                    said = {"bug": traceback.format_exc()}
                with os.fdopen(send, "w") as pipe:
                    json.dump(said, pipe)
            finally:
                os._exit(0)
        os.close(send)
        with os.fdopen(receive) as pipe:
            said = json.loads(pipe.read() or "{}")
        os.waitpid(child, 0)
        assert "bug" not in said, said["bug"]
        return said

    def refused(self, *cells, model=None):
        """Code and text of the refusal."""
        said = self.run(*cells, model=model)
        assert "refused" in said, said
        return said["code"], "\n".join(said["refused"])


@pytest.fixture
def notebooks(tmp_path):
    return Notebooks(tmp_path)
