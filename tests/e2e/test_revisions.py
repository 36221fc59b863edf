"""What can be learned about a revision, and notebooks of every framework from file to answer."""

import http.client
import json
import re
import shutil

import psutil
import pytest

from tests.e2e.conftest import EXAMPLES, ended, eventually, made

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def platform(tmp_path_factory, builds, engine_home):
    """One platform for the models of this file."""
    site = made(tmp_path_factory.mktemp("frameworks") / "state", builds)
    yield site
    ended(site, builds)


def ask(site, model, change=None):
    request = site.json("request", model)
    body = request["body"]
    if change is not None:
        change({i["name"]: i for i in body["inputs"]})
    connection = http.client.HTTPConnection(site.platform.address, timeout=10)
    headers = {"Authorization": f"Bearer {request['token']}"}
    connection.request("POST", f"/v2/models/{model}/infer", json.dumps(body), headers)
    response = connection.getresponse()
    answer = json.loads(response.read())
    connection.close()
    return response.status, answer


@pytest.mark.parametrize(
    ("example", "inputs", "outputs"),
    [
        ("churn", {"age", "months", "monthly fee", "plan", "city"}, {"label", "probabilities"}),
        ("price", {"X"}, {"prediction"}),
        ("digits", {"image"}, {"probabilities", "digit"}),
        ("reviews", {"text"}, {"label", "probabilities"}),
    ],
    ids=["xgboost", "lightgbm", "pytorch", "python step"],
)
def test_a_notebook_of_each_framework_ships_and_answers(platform, example, inputs, outputs):
    done = platform.json("ship", str(EXAMPLES / example / "notebook.ipynb"))
    assert done["parity"]["label_flips"] == 0
    status, answer = ask(platform, example)
    assert status == 200, answer
    assert {o["name"] for o in answer["outputs"]} == outputs
    facts = platform.json("revision", "show", f"{example}@{done['revision']}")
    assert {f["name"] for f in facts["contract"]["inputs"]} == inputs
    assert facts["engine_parity"]["rows"] > 200
    assert facts["engine_parity"]["label_flips"] == 0
    assert facts["unaltered"] is True
    assert all(kind["differing"] == 0 for kind in facts["parity"]["made"].values())


def test_text_and_missing_numbers_travel_through_the_gateway(platform):
    platform.json("ship", str(EXAMPLES / "churn/notebook.ipynb"))

    def other(inputs):
        inputs["city"]["data"] = ["東京"]
        inputs["plan"]["data"] = [""]

    status, answer = ask(platform, "churn", other)
    assert status == 200, answer


def test_a_python_step_is_part_of_the_revision_and_survives_its_process(platform):
    done = platform.json("ship", str(EXAMPLES / "reviews/notebook.ipynb"))
    name = f"reviews@{done['revision']}"
    assert [f for f in done["report"] if f["kind"] == "python-step"]
    shown = platform.json("revision", "show", name)
    assert {"scikit-learn", "numpy", "cloudpickle"} <= set(shown["python_step"]["requirements"])
    assert "a Python step, on Python 3." in platform.taxiway("revision", "show", name).stdout
    assert platform.json("validate", name) == []

    def text(value):
        def change(inputs):
            inputs["text"]["data"] = [value]

        return change

    status, before = ask(platform, "reviews", text("très bon, KÖSTLICH 東京 🙂 https://example.org/x"))
    assert status == 200, before
    assert before["outputs"][0]["data"] == ["liked"]
    status, answer = ask(platform, "reviews", text("x" * 100_000))
    assert status == 400, answer
    (pid,) = [
        p.pid
        for p in psutil.process_iter()
        if str(platform.state) in (c := " ".join(p.cmdline())) and "taxiway_onnx.worker" in c
    ]
    restarts = platform.revision(done["revision"], "reviews")["restarts"]
    psutil.Process(pid).kill()
    assert eventually(lambda: platform.revision(done["revision"], "reviews")["restarts"] > restarts, 60)
    platform.settled()
    status, after = ask(platform, "reviews", text("très bon, KÖSTLICH 東京 🙂 https://example.org/x"))
    assert status == 200, after
    assert after["outputs"] == before["outputs"]


def test_a_step_is_refused_where_the_configuration_says_so(platform, tmp_path):
    shutil.copy(EXAMPLES / "reviews/notebook.ipynb", tmp_path / "n.ipynb")
    (tmp_path / "taxiway.yaml").write_text("model: reviews-no\nexport: {python_step: false}\n")
    no = platform.taxiway("ship", str(tmp_path / "n.ipynb"), check=False)
    assert no.returncode == 1
    assert "cannot be converted to ONNX" in no.stderr


def test_the_page_of_a_revision_says_what_was_proved(platform):
    done = platform.json("ship", str(EXAMPLES / "churn/notebook.ipynb"))
    page = platform.taxiway("revision", "show", f"churn@{done['revision']}").stdout
    assert done["digest"] in page
    assert re.search(r"the notebook's rows +1500 ", page)
    assert re.search(r"made: tie +\d+ ", page)
    assert re.search(r"through the engine +\d+ ", page)
    assert "xgboost-cpu" in page


def test_what_differs_between_two_revisions_is_told_by_subject(site):
    site.json("ship", str(EXAMPLES / "risk/notebook.ipynb"), "--model", "model")
    site.json("ship", str(EXAMPLES / "risk/notebook_v2.ipynb"), "--name", "risk")
    found = site.json("diff", "risk@1", "risk@2")
    assert found["model"]["class"] == {"before": "GradientBoostingClassifier", "after": "LogisticRegression"}
    assert found["features"] == {}
    assert found["contract"] == {}
    assert "repository/risk/{number}/model.onnx" in found["files"]
    assert found["metrics"]["score"]["before"] != found["metrics"]["score"]["after"]
    text = site.taxiway("diff", "risk@1", "risk@2").stdout
    assert "class: GradientBoostingClassifier -> LogisticRegression" in text
    assert "do not differ" in site.taxiway("diff", "risk@1", "risk@1").stdout
    no = site.taxiway("revision", "show", "risk@9", check=False)
    assert no.returncode == 1
    assert "revisions of 'risk': 1, 2" in no.stderr


def test_what_is_written_beside_the_notebook_is_enforced_for_each_request(platform, tmp_path):
    shutil.copy(EXAMPLES / "churn/notebook.ipynb", tmp_path / "n.ipynb")
    rules = "contract: {inputs: {age: {min: 18, max: 120}, plan: {allowed: [prepaid, basic, family, business]}}}"
    (tmp_path / "taxiway.yaml").write_text(f"model: churn-ruled\nserving: {{max_batch: 7, timeout_ms: 900}}\n{rules}\n")
    done = platform.json("ship", str(tmp_path / "n.ipynb"))
    assert done["model"] == "churn-ruled"
    assert ask(platform, "churn-ruled")[0] == 200
    routes = [
        text for path in platform.platform.places.gateway.glob("*.json") if "churn-ruled" in (text := path.read_text())
    ]
    assert any('"per_try_timeout": "0.9' in text for text in routes)

    def old(inputs):
        inputs["age"]["data"] = [130.0]

    def unknown(inputs):
        inputs["plan"]["data"] = ["gold"]

    status, answer = ask(platform, "churn-ruled", old)
    assert status == 400
    shown = platform.taxiway("revision", "show", f"churn-ruled@{done['revision']}").stdout
    assert "from 18 to 120" in shown
    assert "one of 4 values" in shown
    assert "do not differ" in platform.taxiway("diff", *[f"churn-ruled@{done['revision']}"] * 2).stdout
    assert "'age'" in answer["error"]
    assert "120" in answer["error"]
    status, answer = ask(platform, "churn-ruled", unknown)
    assert status == 400
    assert "gold" in answer["error"]
    assert "prepaid" in answer["error"]


SAID = """
model: churn-said
serving: {instances: 2, queue_delay_us: 2000, timeout_ms: 15}
parity: {atol: 0.000001}
contract:
  outputs:
    label: {allowed: [0, 1]}
    probabilities: {min: 0, max: 1}
"""


def test_what_is_said_of_serving_proof_and_answers_ships_with_the_revision(platform, tmp_path):
    shutil.copy(EXAMPLES / "churn/notebook.ipynb", tmp_path / "n.ipynb")
    (tmp_path / "taxiway.yaml").write_text(SAID)
    done = platform.json("ship", str(tmp_path / "n.ipynb"))
    assert done["parity"]["tolerance"]["overridden"] == {"atol": 1e-5}
    assert ask(platform, "churn-said")[0] == 200
    first = f"churn-said@{done['revision']}"
    (status,) = [s for r, s in platform.platform.statuses().items() if str(r) == first]
    assert len(status.stubs) == 2
    page = platform.taxiway("revision", "show", first).stdout
    assert "a person has set atol to 1e-06 in taxiway.yaml; left out, it would be 1e-05" in page
    assert re.search(r"output +label .*one of 2 values", page)
    assert re.search(r"output +probabilities .*0: from 0 to 1, 1: from 0 to 1", page)
    found = platform.json("validate", first)
    assert ["every request may wait 2 of the 15 ms" in m["message"] for m in found] == [True]
    # How it is served is no part of the build.
    (tmp_path / "taxiway.yaml").write_text(SAID.replace("instances: 2, queue_delay_us: 2000", "queue_delay_us: 500"))
    again = platform.taxiway("ship", str(tmp_path / "n.ipynb")).stderr
    assert "built already" in again
    changes = platform.taxiway("diff", first, f"churn-said@{done['revision'] + 1}").stdout
    assert re.search(r"-  count: 2\n +\+  count: 1", changes)
    assert "+  max_queue_delay_microseconds: 500" in changes


def test_a_promise_that_the_recorded_answers_contradict_is_refused_at_its_line(platform, tmp_path):
    shutil.copy(EXAMPLES / "churn/notebook.ipynb", tmp_path / "n.ipynb")
    (tmp_path / "taxiway.yaml").write_text("contract:\n  outputs:\n    probabilities: {max: 0.9}\n    lable: {}\n")
    no = platform.taxiway("ship", str(tmp_path / "n.ipynb"), "--name", "churn-no", check=False)
    assert no.returncode == 1
    assert "taxiway.yaml:4:5: contract.outputs.lable: no such output; did you mean 'label'?" in no.stderr
    assert re.search(
        r"taxiway.yaml:3:5: contract.outputs.probabilities.columns.0: max 0.9 contradicts \d+ of", no.stderr
    )


def test_a_rule_that_the_notebooks_own_rows_break_is_refused(platform, tmp_path):
    shutil.copy(EXAMPLES / "churn/notebook.ipynb", tmp_path / "n.ipynb")
    (tmp_path / "taxiway.yaml").write_text("contract: {inputs: {age: {max: 30}, plann: {max_bytes: 9}}}\n")
    no = platform.taxiway("ship", str(tmp_path / "n.ipynb"), "--name", "churn-no", check=False)
    assert no.returncode == 1
    assert "age" in no.stderr
    assert "did you mean 'plan'" in no.stderr
    (tmp_path / "taxiway.yaml").write_text("modell: x\n")
    no = platform.taxiway("ship", str(tmp_path / "n.ipynb"), check=False)
    assert no.returncode == 1
    assert "taxiway.yaml:1:1: unknown key 'modell'; did you mean 'model'?" in no.stderr
