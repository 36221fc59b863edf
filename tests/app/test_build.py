import fcntl
import json
import os
import py_compile
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import nbformat
import numpy as np
import pytest

from taxiway.app.assemble import contents
from taxiway.app.build import builder, guard, guarded, interpreter
from taxiway.app.build.builder import build, is_built
from taxiway.catalog.manifest import NUMBER
from taxiway.core import digest
from taxiway.core.errors import Refused
from taxiway.proof import graph
from taxiway.proof.ort import Served

pytestmark = pytest.mark.processes

EXAMPLES = Path(__file__).parents[2] / "examples"
FIT = """
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
X, y = load_iris(return_X_y=True)
clf = LogisticRegression(max_iter=500).fit(X, y)
"""
# Says in a file who it is, and what it has started: one child of its own group, one that went its own way.
STARTS = """
import os, subprocess, time
one = subprocess.Popen(["sleep", "600"])
two = subprocess.Popen(["sleep", "600"], start_new_session=True)
with open("pids.part", "w") as file:
    file.write(f"{os.getpid()} {os.getppid()} {one.pid} {two.pid}")
os.rename("pids.part", "pids")
"""


def write(path, *cells):
    nodes = nbformat.v4.new_notebook()
    nodes.cells = [nbformat.v4.new_code_cell(cell, id=f"cell-{i}") for i, cell in enumerate(cells)]
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(nodes, path)
    return path


def quiet(notebook, into, **more):
    return build(notebook, into=into, progress=lambda line: None, **({"model": None} | more))


def refused(notebook, into, **more):
    """The refusal of a build that must fail, after nothing was found left of it."""
    with pytest.raises(Refused) as no:
        quiet(notebook, into, **more)
    assert left(into) == []
    return no.value


def left(into):
    return sorted(p.name for p in into.iterdir()) if into.is_dir() else []


def alive(pid):
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def wait_for(condition, seconds=20.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def pids(folder):
    wait_for((folder / "pids").exists)
    return [int(word) for word in (folder / "pids").read_text().split()]


def read(built, name):
    return json.loads((built.folder / f"{name}.json").read_text())


@pytest.fixture(scope="module")
def twice(tmp_path_factory):
    """Each example built two times, each time from a copy in another folder into another folder."""
    root = tmp_path_factory.mktemp("twice")

    def one(source, copy):
        notebook = root / copy / source.parent.name / source.name
        notebook.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, notebook)
        return quiet(notebook, root / f"into-{copy}")

    sources = [
        EXAMPLES / "risk/notebook.ipynb",
        EXAMPLES / "risk/notebook_v2.ipynb",
        EXAMPLES / "recommend/notebook.ipynb",
    ]
    with ThreadPoolExecutor(2) as pool:
        made = list(pool.map(one, sources * 2, ["a"] * 3 + ["b"] * 3))
    return dict(zip(("risk", "risk_v2", "recommend"), zip(made[:3], made[3:], strict=True), strict=True))


def fields(fields):
    return [(f.name, f.spec.dtype, f.spec.dims, f.finite, f.max_length) for f in fields]


@pytest.mark.parametrize("name", ["risk", "risk_v2"])
def test_a_classifier_on_a_table_gets_the_contract_of_its_columns_and_classes(twice, name):
    built, _ = twice[name]
    assert fields(built.contract.inputs) == [("X", "FP32", (30,), True, None)]
    assert fields(built.contract.outputs) == [
        ("label", "INT64", (1,), True, None),
        ("probabilities", "FP32", (2,), True, None),
    ]
    columns = built.contract.inputs[0].columns
    assert (len(columns), columns[0], columns[-1]) == (30, "mean radius", "worst fractal dimension")
    assert built.contract.outputs[1].columns == ("0", "1")
    # Raw measurements, not what the notebook's scaler made of them.
    assert built.contract.inputs[0].observed == (0.0, 4254.0)


def test_a_ranker_built_by_hand_gets_the_contract_of_its_graph(twice):
    built, _ = twice["recommend"]
    assert fields(built.contract.inputs) == [
        ("user_id", "INT64", (1,), True, None),
        ("item_ids", "INT64", (-1,), True, 512),
    ]
    assert fields(built.contract.outputs) == [("scores", "FP32", (-1,), True, 512)]


@pytest.mark.parametrize("name", ["risk", "risk_v2", "recommend"])
def test_the_model_answers_its_golden_samples(twice, name):
    built, _ = twice[name]
    served = Served((built.folder / "model.onnx").read_bytes())
    assert served.scalars == built.scalars
    assert 2 <= len(built.golden) <= 16
    for sample in built.golden:
        feeds = {
            n: np.array(t.data, dtype={"FP32": "f4", "INT64": "i8"}[t.dtype]).reshape(t.shape)
            for n, t in sample.inputs.items()
        }
        for output, values in served.run(feeds).items():
            wanted = sample.outputs[output]
            assert values.shape == wanted.shape
            assert np.allclose(values.ravel(), wanted.data, rtol=sample.rtol, atol=sample.atol)


@pytest.mark.parametrize(("name", "rows"), [("risk", 569), ("risk_v2", 569), ("recommend", 7)])
def test_parity_holds_on_every_row_that_the_notebook_showed_the_model(twice, name, rows):
    found = read(twice[name][0], "parity")
    assert (found["rows"], found["label_flips"]) == (rows, 0)
    assert found["max_abs_error"] < 1e-5
    assert found["onnxruntime_least"] == graph.least_runtime((twice[name][0].folder / "model.onnx").read_bytes())
    assert tuple(map(int, found["onnxruntime_least"].split("."))) <= (1, 19, 2)


def test_the_lineage_says_what_the_model_came_from(twice):
    built, _ = twice["risk"]
    lineage = read(built, "lineage")
    source = EXAMPLES / "risk/notebook.ipynb"
    assert lineage["notebook"] == "notebook.ipynb"
    assert lineage["notebook_digest"] == digest.of_bytes(source.read_bytes())
    assert (lineage["model"], lineage["class"]) == ("model@6", "GradientBoostingClassifier")
    assert lineage["score"] == pytest.approx(0.958, abs=0.001)
    assert lineage["data_digest"].startswith("sha256:")
    assert {"scikit-learn", "pandas", "numpy", "onnxruntime"} <= set(lineage["libraries"])
    assert lineage["git_commit"] is None
    pins = (built.folder / "requirements.txt").read_text().split()
    assert pins == [f"{n}=={v}" for n, v in sorted(lineage["libraries"].items())]


@pytest.mark.parametrize("name", ["risk", "risk_v2", "recommend"])
def test_two_builds_in_two_places_ship_the_same_bytes(twice, name):
    one, two = twice[name]
    assert one.folder != two.folder
    first, second = contents("model", one), contents("model", two)
    assert list(first) == list(second)
    assert [path for path in first if first[path] != second[path]] == []
    assert f"repository/model/{NUMBER}/model.onnx" in first


def test_what_is_shipped_is_what_was_built_or_nothing(twice, tmp_path):
    built, _ = twice["recommend"]
    folder = tmp_path / "build"
    shutil.copytree(built.folder, folder)
    moved = builder._read(folder)
    assert contents("model", moved)
    for name in ("model.onnx", "golden.json"):
        before = (folder / name).read_bytes()
        (folder / name).write_bytes(before + b" ")
        with pytest.raises(Refused, match=f"{name} is not what was built"):
            contents("model", moved)
        (folder / name).unlink()
        with pytest.raises(Refused, match=f"{name} cannot be read"):
            contents("model", moved)
        (folder / name).write_bytes(before)


READS = """
import glob
import numpy as np
from sklearn.linear_model import LogisticRegression
import prepare
table = np.loadtxt("data.csv", delimiter=",") * prepare.FACTOR
extra = sum(float(open(name).read()) for name in glob.glob("more/*.txt"))
try:
    extra += float(open("../shared.txt").read())
except FileNotFoundError:
    pass
with open("cache.txt", "w") as file:
    file.write(str(np.random.default_rng().normal()))
open("cache.txt").read()
clf = LogisticRegression().fit(table[:, :2] + extra, table[:, 2])
"""


def test_a_build_is_found_again_until_something_that_it_read_changes(tmp_path):
    notebook = write(tmp_path / "here/n.ipynb", READS)
    here, into = notebook.parent, tmp_path / "into"
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.normal(size=(40, 2)), np.arange(40) % 2])
    np.savetxt(here / "data.csv", rows, delimiter=",")
    (here / "prepare.py").write_text("FACTOR = 1.0\n")
    (here / "more").mkdir()
    (here / "more/a.txt").write_text("0.5")

    def current():
        return is_built(notebook, model=None, into=into)

    assert not current()
    py_compile.compile(str(here / "prepare.py"))  # from now on it is read in place of its source
    first = quiet(notebook, into)
    said = []
    assert build(notebook, model=None, into=into, progress=said.append).summary == first.summary
    assert said == ["built already from the same notebook, data and libraries"]

    for path, text in {
        "data.csv": "1,2,0\n3,4,1\n",
        "prepare.py": "FACTOR = 2.0\n",
        "more/a.txt": "0.25",
        "more/b.txt": "0.25",
        "../shared.txt": "1",
    }.items():
        before = (here / path).read_text() if (here / path).exists() else None
        (here / path).write_text(text)
        assert not current(), path
        if before is None:
            (here / path).unlink()
        else:
            (here / path).write_text(before)
        assert current(), path

    for other in ("unrelated.csv", "more/.hidden", "cache.txt"):
        (here / other).write_text("new")
        assert current(), other
    shutil.copytree(here, tmp_path / "there")
    assert is_built(tmp_path / "there/n.ipynb", model=None, into=into)
    (tmp_path / "there/data.csv").write_text("1,2,0\n3,4,1\n")
    assert not is_built(tmp_path / "there/n.ipynb", model=None, into=into)
    assert not is_built(notebook, model="clf", into=into)
    write(notebook, READS, "1 + 1")
    assert not current()


def test_a_build_is_made_again_when_a_library_that_it_names_has_another_version(twice):
    built, _ = twice["risk"]
    notebook = built.folder.parent.parent / "a/risk/notebook.ipynb"
    mine = interpreter.own()
    assert is_built(notebook, model=None, into=built.folder.parent, python=mine)
    other = replace(mine, packages={**mine.packages, "matplotlib": "0.1"})
    assert not is_built(notebook, model=None, into=built.folder.parent, python=other)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A small notebook and its build."""
    root = tmp_path_factory.mktemp("plain")
    notebook = write(root / "n.ipynb", FIT)
    return notebook, quiet(notebook, root / "into")


def test_a_damaged_build_is_made_again(plain, tmp_path):
    notebook, built = plain
    folder = tmp_path / built.folder.name

    def fresh():
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(built.folder, folder)

    def current():
        return is_built(notebook, model=None, into=tmp_path)

    fresh()
    assert current()
    for name in (
        "model.onnx",
        "build.json",
        "contract.json",
        "golden.json",
        "inputs.json",
        "sums.json",
        "requirements.txt",
    ):
        for damage in (lambda p: p.unlink(), lambda p: p.write_bytes(p.read_bytes()[:-20])):
            fresh()
            damage(folder / name)
            assert not current(), name
    for text in ("{}", "[]", "null"):
        fresh()
        (folder / "sums.json").write_text(text)
        assert not current(), text
    fresh()
    (folder / "golden.json").write_text("[{")
    (folder / "model.onnx").unlink()
    again = quiet(notebook, tmp_path)
    assert contents("model", again) == contents("model", built)
    assert left(tmp_path) == [built.folder.name]


def test_a_silently_wrong_conversion_is_refused_with_its_rows_and_the_way_out_that_is_told_works(tmp_path):
    fit = """
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
X, y = load_breast_cancer(return_X_y=True)
X = X[:, :5] / X[:, :5].max(axis=0)
model = CalibratedClassifierCV(LogisticRegression(max_iter=500), method="isotonic", cv=3).fit(X, y)
"""
    no = refused(write(tmp_path / "as is/n.ipynb", fit), tmp_path / "into")
    assert no.code == "parity"
    assert no.reasons[0].startswith("model@1: ")
    rows = [line for line in no.reasons if line.startswith("row ")]
    assert 1 <= len(rows) <= 5
    assert all("the notebook's model says [" in line and "input [" in line for line in rows)
    assert "for calibration, use sigmoid" in no.reasons[-1]
    sigmoid = write(tmp_path / "sigmoid/n.ipynb", fit.replace("isotonic", "sigmoid"))
    assert read(quiet(sigmoid, tmp_path / "into"), "parity")["rows"] == 569


def test_made_rows_are_part_of_the_proof_and_told_by_kind(tmp_path):
    fit = """
import numpy as np, pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
rng = np.random.default_rng(0)
table = pd.DataFrame({"age": rng.integers(18, 80, 300).astype(float), "city": rng.choice(["Köln", "Ulm"], 300)})
table.loc[::17, "age"] = np.nan
table["note"] = "not looked at"
numbers = make_pipeline(SimpleImputer(), StandardScaler())
encode = make_column_transformer((numbers, ["age"]), (OneHotEncoder(), ["city"]))
model = make_pipeline(encode, RandomForestClassifier(20, random_state=0))
model.fit(table, (table.age > 40) ^ (table.city == "Ulm"))
"""
    built = quiet(write(tmp_path / "n.ipynb", fit), tmp_path / "into")
    assert [(f.name, f.spec.dtype, f.spec.dims) for f in built.contract.inputs] == [
        ("age", "FP32", (1,)),
        ("city", "BYTES", (1,)),
    ]
    made = read(built, "parity")["made"]
    assert {kind: figures["differing"] for kind, figures in made.items()} == dict.fromkeys(made, 0)
    assert made["tie"]["rows"] > 30
    assert made["missing"]["rows"] >= 1
    # The encoder refuses cities that it does not know, so the contract does.
    assert made["unseen"] == {"rows": 0, "refused": 0, "differing": 0, "flips": 0, "max_abs_error": 0.0}
    (unused,) = [f for f in read(built, "report") if f["kind"] == "unused-column"]
    assert "note" in unused["message"]
    replayed = sum(len(next(iter(c["inputs"].values()))["data"]) for c in read(built, "replay"))
    assert replayed == read(built, "parity")["rows"] + sum(figures["rows"] for figures in made.values())


def test_rows_that_the_notebooks_own_model_answers_otherwise_in_float32_are_reported(tmp_path):
    fit = """
import numpy as np
from sklearn.tree import DecisionTreeRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
X = (1e9 + np.arange(40.0))[:, None]  # in float32 there are two of these numbers only
model = make_pipeline(StandardScaler(), DecisionTreeRegressor(max_depth=1)).fit(X, np.arange(40.0) // 20)
"""
    built = quiet(write(tmp_path / "n.ipynb", fit), tmp_path / "into")
    (remark,) = [f for f in read(built, "report") if f["kind"] == "rounding"]
    assert remark["cell"] == 1
    assert "DecisionTreeRegressor" in remark["message"] or "Pipeline" in remark["message"]
    assert "of 40 rows otherwise (by up to 1" in remark["message"]
    assert remark["message"].endswith("cast the data to float32 before fitting")


def test_data_that_changes_while_the_notebook_runs_is_noted_as_it_was_read(tmp_path):
    reads = """
import os, sqlite3, numpy as np
table = np.loadtxt("data.csv", delimiter=",")
sqlite3.connect("data.db").close()
"""
    grows = "os.system('echo 1,1 >> data.csv')"
    (tmp_path / "data.csv").write_text("1,2\n")
    (tmp_path / "data.db").write_bytes(b"")
    notebook, into = write(tmp_path / "n.ipynb", reads, FIT, grows), tmp_path / "into"
    built = quiet(notebook, into)
    assert not is_built(notebook, model=None, into=into)
    (tmp_path / "data.csv").write_text("1,2\n")
    assert is_built(notebook, model=None, into=into)
    assert set(read(built, "inputs")) == {"data.csv", "data.db"}
    (tmp_path / "data.db").write_bytes(b"more")
    assert not is_built(notebook, model=None, into=into)


NORMALISES = """
import numpy as np, onnxruntime
from onnx import TensorProto, helper
nodes = [
    helper.make_node("ReduceMean", ["x"], ["mean"], axes=[0], keepdims=1),
    helper.make_node("Sub", ["x", "mean"], ["y"]),
]
dims = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["N", 2]) for n in "xy"]
graph = helper.make_graph(nodes, "g", dims[:1], dims[1:])
net = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
session = onnxruntime.InferenceSession(net.SerializeToString())
session.run(None, {"x": np.arange(8, dtype=np.float32).reshape(4, 2)})
"""


def test_a_model_whose_rows_influence_each_other_is_refused(tmp_path):
    no = refused(write(tmp_path / "n.ipynb", NORMALISES), tmp_path / "into")
    assert no.code == "batch-dependent"
    assert "net@1" in no.reasons[0]


def test_of_two_models_one_must_be_chosen_and_is_built_when_it_is(tmp_path):
    two = "from sklearn.tree import DecisionTreeClassifier\ntree = DecisionTreeClassifier(max_depth=2).fit(X, y)"
    notebook = write(tmp_path / "n.ipynb", FIT, two)
    no = refused(notebook, tmp_path / "into")
    assert no.code == "choose-model"
    assert [line.split()[1] for line in no.reasons[1:]] == ["clf@1", "tree@2"]
    built = quiet(notebook, tmp_path / "into", model="tree@2")
    assert built.summary["class"] == "DecisionTreeClassifier"


def test_a_cell_that_fails_is_named_with_its_line(tmp_path):
    no = refused(write(tmp_path / "n.ipynb", FIT, "x = 1\nx / 0"), tmp_path / "into")
    assert no.code == "cell-error"
    assert no.reasons[0] == "n.ipynb: cell 2, line 2: ZeroDivisionError: division by zero"


@pytest.mark.parametrize(
    ("cells", "code"),
    [
        (["x = 1"], "no-model"),
        (["import numpy as np\n" + FIT.replace("fit(X, y)", "fit(np.zeros((4, 2)), [0, 1, 0, 1])")], "no-golden"),
        (
            [
                "import pandas as pd\nfrom sklearn.compose import make_column_transformer\n"
                "from sklearn.linear_model import LogisticRegression\nfrom sklearn.pipeline import make_pipeline\n"
                "from sklearn.preprocessing import OneHotEncoder\n"
                "table = pd.DataFrame({'city': ['a', None, 'a', 'b'], 'size': [1, 2, 3, 4.0]})\n"
                "encode = make_column_transformer((OneHotEncoder(), ['city']), remainder='passthrough')\n"
                "model = make_pipeline(encode, LogisticRegression()).fit(table, [0, 1, 0, 1])"
            ],
            "not-servable",
        ),
        ([FIT.replace("fit(X, y)", "fit(X, y)\nclf.fit(X * 1e39, y)")], "beyond-float32"),
    ],
    ids=["no model", "nothing certain", "missing text", "beyond float32"],
)
def test_what_cannot_be_served_is_refused_with_a_reason_and_what_to_do(tmp_path, cells, code):
    no = refused(write(tmp_path / "n.ipynb", *cells), tmp_path / "into")
    assert no.code == code
    assert "Traceback" not in str(no)
    assert len(str(no)) > 60


def test_a_notebook_that_is_not_there_is_refused(tmp_path):
    assert refused(tmp_path / "nowhere/n.ipynb", tmp_path / "into").code == "no-notebook"


MANY = """
import numpy as np, os
from sklearn.linear_model import LinearRegression
X = np.random.default_rng(0).normal(size=(50, 3))
print("said")
os.write(2, b"said to the log as well")
reg = LinearRegression().fit(X, X @ [1, 2, 3])
reg.score(X[:1], [1.0])  # not defined for one row
"""


def test_a_regressor_is_built_even_when_its_score_is_not_a_number(tmp_path):
    built = quiet(write(tmp_path / "n.ipynb", MANY), tmp_path / "into")
    assert fields(built.contract.outputs) == [("prediction", "FP32", (1,), True, None)]
    assert built.summary["score"] is None
    assert contents("model", built)
    log = (built.folder / "build.log").read_text()
    assert "said\n" in log
    assert "said to the log as well" in log


def test_text_labels_are_served_as_text(tmp_path):
    cells = FIT.replace("fit(X, y)", "fit(X, __import__('numpy').array(['setosa', 'versicolör', 'virginica'])[y])")
    built = quiet(write(tmp_path / "n.ipynb", cells), tmp_path / "into")
    assert built.contract.outputs[0].spec.dtype == "BYTES"
    assert built.contract.outputs[1].columns == ("setosa", "versicolör", "virginica")
    assert {"setosa", "versicolör", "virginica"} == {g.outputs["label"].data[0] for g in built.golden}
    assert contents("model", built)


def test_files_next_to_the_notebook_are_not_taken_for_libraries_of_ours(tmp_path):
    for name in ("taxiway", "skl2onnx", "psutil", "nbformat"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('taken for a library')")
    (tmp_path / "mine.py").write_text("VALUE = 1")
    quiet(write(tmp_path / "n.ipynb", "import mine\nassert mine.VALUE == 1", FIT), tmp_path / "into")


def test_a_notebook_that_hangs_is_stopped_with_everything_it_started(tmp_path):
    # A regular expression that never ends holds the interpreter's lock all the time.
    hangs = "import re\nre.match(r'(a+)+b', 'a' * 80)"
    began = time.monotonic()
    no = refused(write(tmp_path / "n.ipynb", STARTS, hangs), tmp_path / "into", timeout_s=5)
    assert no.code == "timeout"
    assert "still running after 5 s" in no.reasons[0]
    assert time.monotonic() - began < 15
    assert [pid for pid in pids(tmp_path) if alive(pid)] == []


@pytest.mark.parametrize(
    "more",
    [
        "",
        "import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()",
        "import os, time\nif os.fork() == 0:\n    time.sleep(600)",
    ],
    ids=["processes", "a thread that keeps it from ending", "a copy of itself"],
)
def test_what_a_notebook_leaves_running_ends_with_a_build_that_succeeds(tmp_path, monkeypatch, more):
    monkeypatch.setattr(guarded, "_GRACE_S", 2.0)
    began = time.monotonic()
    built = quiet(write(tmp_path / "n.ipynb", STARTS, more or "1", FIT), tmp_path / "into", timeout_s=60)
    assert time.monotonic() - began < 25
    assert [pid for pid in pids(tmp_path) if alive(pid)] == []
    assert contents("model", built)


@pytest.mark.parametrize(
    ("end", "said"),
    [
        ("os._exit(0)", "ended with code 0"),
        ("os.kill(os.getpid(), 9)", "was killed by signal 9"),
        ("os.killpg(0, 9)", "was killed by signal 9"),
        ("os.kill(os.getppid(), 9)", "was killed"),
    ],
    ids=["exits as if all were well", "killed", "kills its group", "kills its guard"],
)
def test_a_notebook_that_kills_its_process_is_refused_with_its_last_words(tmp_path, end, said):
    last = f"import os, time\nprint('first')\nprint('my last words', flush=True)\n{end}\ntime.sleep(600)"
    no = refused(write(tmp_path / "n.ipynb", last), tmp_path / "into", timeout_s=60)
    assert no.code == "build-died"
    assert said in no.reasons[0]
    assert "my last words" in no.reasons or "getppid" in end


BUILD = """
import sys
from pathlib import Path
from taxiway.app.build.builder import build
from taxiway.core.errors import Refused
try:
    built = build(Path(sys.argv[1]), model=None, into=Path(sys.argv[2]), progress=lambda line: print(line, flush=True))
    print(built.folder)
except Refused as error:
    print(error.code, *error.reasons, sep="\\n")
"""


def in_a_process(notebook, into, **more):
    return subprocess.Popen(
        [sys.executable, "-c", BUILD, str(notebook), str(into)], stdout=subprocess.PIPE, text=True, **more
    )


def test_when_the_builder_is_killed_nothing_goes_on_and_nothing_half_is_ever_taken_for_a_build(tmp_path):
    waits = "if os.path.exists('wait'):\n    os.mkdir('waiting')\n    time.sleep(600)"
    notebook, into = write(tmp_path / "n.ipynb", STARTS, FIT, waits), tmp_path / "into"
    (tmp_path / "wait").touch()
    builder = in_a_process(notebook, into)
    started = pids(tmp_path)
    assert len(started) == 4
    wait_for((tmp_path / "waiting").exists)
    assert all(map(alive, started))
    # Somebody else's build goes on, and one more was killed long ago.
    (into / ".build-0123456789ab-mine").mkdir()
    (into / ".build-ba9876543210-gone").mkdir()
    mine = os.open(into / ".lock-0123456789ab", os.O_RDWR | os.O_CREAT)
    fcntl.flock(mine, fcntl.LOCK_EX)

    os.kill(builder.pid, signal.SIGKILL)
    builder.wait()
    wait_for(lambda: not any(map(alive, started)), 10)
    strays = [name for name in left(into) if name.startswith(".build-") and not name.endswith(("mine", "gone"))]
    assert len(strays) == 1
    assert not is_built(notebook, model=None, into=into)

    (tmp_path / "wait").unlink()
    built = quiet(notebook, into)
    assert contents("model", built)
    assert left(into) == [".build-0123456789ab-mine", ".lock-0123456789ab", built.folder.name]
    os.close(mine)


@pytest.mark.parametrize("into", ["file/into", "file"])
def test_a_place_that_cannot_be_written_to_is_refused_before_anything_runs(plain, tmp_path, into):
    (tmp_path / "file").touch()
    with pytest.raises(Refused, match=f"cannot be written to {tmp_path / into}") as no:
        build(plain[0], model=None, into=tmp_path / into, progress=pytest.fail)
    assert no.value.code == "cannot-write"


def test_a_folder_of_somebody_else_is_refused(plain, tmp_path):
    (tmp_path / "into").mkdir(mode=0o500)
    me = os.geteuid()
    if me == 0:
        os.seteuid(65534)  # to root nothing is forbidden
    try:
        with pytest.raises(Refused, match="Permission denied"):
            quiet(plain[0], tmp_path / "into")
    finally:
        os.seteuid(me)


def test_a_disk_that_takes_no_more_is_refused_and_nothing_half_stays(plain, tmp_path):
    def little():
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))

    more = {"env": os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}, "preexec_fn": little}
    said, _ = in_a_process(plain[0], tmp_path / "into", **more).communicate()
    assert said.splitlines()[-2:] == [
        "cannot-write",
        f"the build cannot be written to {tmp_path / 'into'}: File too large",
    ]
    assert left(tmp_path / "into") == []


def test_two_builds_of_the_same_at_once_run_it_once_and_both_succeed(tmp_path):
    counts = "with open('runs', 'a') as file:\n    file.write('x')"
    notebook, into = write(tmp_path / "n.ipynb", counts, FIT), tmp_path / "into"
    builders = [in_a_process(notebook, into) for _ in range(2)]
    said = [b.communicate()[0].splitlines() for b in builders]
    assert said[0][-1] == said[1][-1] == str(into / left(into)[0])
    assert len(left(into)) == 1
    assert (tmp_path / "runs").read_text() == "x"
    assert sum("waiting for another build of the same notebook" in s for s in said) == 1
    assert sum("built already from the same notebook, data and libraries" in s for s in said) == 1


def test_what_a_notebook_prints_takes_little_room_however_much_it_is(tmp_path):
    floods = (
        "import os\nprint('begin', flush=True)\nfor _ in range(1000):\n    os.write(1, b'x' * (1 << 20))\nprint('end')"
    )
    notebook, into = write(tmp_path / "n.ipynb", floods, FIT), tmp_path / "into"
    most, over = [], threading.Event()

    def watch():
        while not over.wait(0.05):
            most.extend(p.stat().st_size for p in into.glob(".build-*/*"))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        built = quiet(notebook, into)
    finally:
        over.set()
        watcher.join()
    log = (built.folder / "build.log").read_bytes()
    assert log.startswith(b"begin\n")
    assert log.rstrip().endswith(b"end")
    assert b" bytes left out " in log
    assert len(log) < guard.LOG_HEAD + guard.LOG_TAIL + 100
    assert max(most) <= guard.LOG_HEAD + guard.LOG_TAIL + 100


@pytest.mark.parametrize("extra", [-1, 0, 1, 1000, 1 << 16, (1 << 16) + 1])
def test_a_log_loses_nothing_but_its_middle(tmp_path, extra):
    data = bytes(i % 251 for i in range(guard.LOG_HEAD + extra))
    log = guard.Log(tmp_path / "log")
    for start in range(0, len(data), 9999):
        log.write(data[start : start + 9999])
    log.close()
    kept = (tmp_path / "log").read_bytes()
    if extra <= guard.LOG_TAIL:
        assert kept == data
    else:
        assert kept == data[: guard.LOG_HEAD] + b"\n... 1 bytes left out ...\n" + data[-guard.LOG_TAIL :]


def test_a_long_last_line_is_cut(tmp_path):
    log = guard.Log(tmp_path / "log")
    log.write(b"one\ntwo\n" + b"y" * 100_000)
    assert [len(line) for line in log.last_words()] == [500]


def test_stored_outputs_that_a_fresh_run_does_not_give_are_reported(tmp_path):
    notebook = write(
        tmp_path / "n.ipynb", FIT, "print('accuracy', round(clf.score(X, y), 2))", "clf.score(X, y)", "print(1)"
    )
    nodes = nbformat.read(notebook, 4)
    new = nbformat.v4.new_output
    nodes.cells[1].outputs = [new("stream", name="stdout", text="accuracy 0.91\n")]
    nodes.cells[2].outputs = [new("execute_result", data={"text/plain": "0.9733333333333334"}, execution_count=3)]
    nodes.cells[3].outputs = [new("stream", name="stdout", text="1\n"), new("stream", name="stderr", text="oh\n")]
    nbformat.write(nodes, notebook)
    built = quiet(notebook, tmp_path / "into")
    changed = [(f["cell"], f["message"]) for f in read(built, "report") if f["kind"] == "output-changed"]
    assert changed == [(2, "the notebook shows 'accuracy 0.91', a fresh run gives 'accuracy 0.97'")]
    silent = FIT + "\n# taxiway: ignore[print] wanted"
    nodes.cells[1].source = "# taxiway: ignore[output-changed, print] the data is newer\n" + nodes.cells[1].source
    nodes.cells[0].source = silent
    nbformat.write(nodes, notebook)
    kinds = {f["kind"] for f in read(quiet(notebook, tmp_path / "into"), "report")}
    assert "output-changed" not in kinds
