"""From a notebook to a live endpoint."""

import http.client
import json
import shutil
import signal
import subprocess
import sys

import nbformat
import pytest

from taxiway.app.build import builder
from taxiway.catalog import store
from taxiway.core.revision import Revision
from tests.e2e.conftest import EXAMPLES, eventually

pytestmark = pytest.mark.processes

NOTEBOOK = str(EXAMPLES / "risk/notebook.ipynb")


def ask(site, model="risk", headers=None):
    request = site.json("request", model)
    connection = http.client.HTTPConnection(site.platform.address, timeout=10)
    connection.request(
        "POST",
        f"/v2/models/{model}/infer",
        json.dumps(request["body"]),
        {"Authorization": f"Bearer {request['token']}", **(headers or {})},
    )
    response = connection.getresponse()
    answer = json.loads(response.read())
    connection.close()
    return response, answer


def test_a_first_revision_answers_and_its_answer_is_the_notebooks(site):
    done = site.json("ship", NOTEBOOK)
    assert (done["model"], done["revision"], done["new"], done["answering"]) == ("risk", 1, True, True)
    assert done["parity"]["label_flips"] == 0
    assert done["digest"].startswith("sha256:")
    response, answer = ask(site)
    assert response.status == 200
    assert answer["model_version"] == "1"
    stored = store.load(site.platform.places.catalog, Revision("risk", 1))
    golden = min(stored.golden(), key=lambda g: len(json.dumps(g.to_json())))
    probabilities = next(o for o in answer["outputs"] if o["name"] == "probabilities")
    assert probabilities["data"] == pytest.approx(golden.outputs["probabilities"].data, abs=1e-5)


def test_shipping_again_changes_nothing_and_shipping_another_holds_it_at_zero(site):
    first = site.json("ship", NOTEBOOK)
    again = site.json("ship", NOTEBOOK)
    assert (again["revision"], again["digest"], again["new"]) == (first["revision"], first["digest"], False)
    other = site.taxiway("ship", str(EXAMPLES / "risk/notebook_v2.ipynb"), "--name", "risk")
    assert "held at 0 %; move it: taxiway traffic risk 2=100" in other.stdout
    assert [(r["number"], r["carried_percent"], r["state"]) for r in site.model()["revisions"]] == [
        (1, 100, "ready"),
        (2, 0, "ready"),
    ]


def test_a_ship_that_was_killed_anywhere_is_finished_by_the_next_one(site):
    words = [sys.executable, "-m", "taxiway.entry.cli", "ship", NOTEBOOK, "--state", str(site.state)]
    for step in ("[2/6]", "[3/6]", "[5/6]"):
        process = subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        for line in process.stderr:
            if step in line:
                break
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stderr.close()
    done = site.json("ship", NOTEBOOK)
    assert (done["revision"], done["answering"]) == (1, True)
    assert ask(site)[0].status == 200


def test_two_ships_at_once_make_one_revision(site):
    words = [sys.executable, "-m", "taxiway.entry.cli", "ship", NOTEBOOK, "--json", "--state", str(site.state)]
    both = [subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) for _ in range(2)]
    answers = [json.loads(p.communicate(timeout=240)[0]) for p in both]
    assert [p.returncode for p in both] == [0, 0]
    assert {a["revision"] for a in answers} == {1}
    assert len(site.model()["revisions"]) == 1


def test_a_plan_says_the_steps_and_touches_nothing(tmp_path):
    state = tmp_path / "never"
    done = subprocess.run(
        [sys.executable, "-m", "taxiway.entry.cli", "ship", NOTEBOOK, "--plan", "--state", str(state)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0
    assert "as model 'risk'" in done.stdout
    assert done.stdout.count("\n") == 7
    assert not state.exists()


@pytest.mark.parametrize(
    ("first", "said"),
    [
        (0, "risk@2 cannot answer: row-1: output 'probabilities'"),  # seen by the engine's keeper
        (1, "risk@2: the engine does not give the known answers"),
    ],
)
def test_golden_answers_that_differ_stop_a_revision_before_any_traffic(site, spoiled, first, said):
    site.taxiway("ship", NOTEBOOK)
    spoiled(first)
    refused = site.taxiway("ship", NOTEBOOK, check=False)
    assert refused.returncode == 1
    assert said in refused.stderr
    assert eventually(lambda: site.revision(2)["state"] == "asleep")
    assert site.revision(1)["carried_percent"] == 100
    assert ask(site)[0].status == 200


@pytest.fixture
def spoiled(site):
    """Builds whose golden answers, from number `first` on, are not those of their model: a wrong export."""

    def spoil(first):
        for golden in (site.state / "work").glob("*/golden.json"):
            text = json.loads(golden.read_text())
            if "probabilities" not in text[0]["outputs"]:
                continue  # another test's model
            for sample in text[first:]:
                sample["outputs"]["probabilities"]["data"].reverse()
            golden.write_text(json.dumps(text))
            (golden.parent / builder._SUMS).write_text(json.dumps(builder._sums(golden.parent)))

    yield spoil
    shutil.rmtree(site.state / "work")  # no other test may inherit them
    (site.state / "work").mkdir()


def test_a_notebook_that_cannot_be_shipped_is_refused_and_nothing_is_stored(site, tmp_path):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("x = 1\n1 / 0")])
    nbformat.write(notebook, tmp_path / "broken.ipynb")
    refused = site.taxiway("ship", str(tmp_path / "broken.ipynb"), check=False)
    assert refused.returncode == 1
    assert "ZeroDivisionError" in refused.stderr
    as_json = site.taxiway("ship", str(tmp_path / "nowhere.ipynb"), "--json", check=False)
    assert as_json.returncode == 1
    assert json.loads(as_json.stdout)["refused"]["reasons"]
    assert site.status()["models"] == []


def test_a_model_with_a_list_of_any_length_ships_and_answers(shared):
    response, answer = ask(shared, "recommend")
    assert response.status == 200
    (scores,) = answer["outputs"]
    request = shared.json("request", "recommend")["body"]
    items = next(i for i in request["inputs"] if i["name"] == "item_ids")
    assert scores["shape"] == items["shape"]
    for length in (1, 7, 100):
        body = {
            "inputs": [
                {"name": "user_id", "datatype": "INT64", "shape": [1, 1], "data": [0]},
                {"name": "item_ids", "datatype": "INT64", "shape": [1, length], "data": [i % 5 for i in range(length)]},
            ]
        }
        connection = http.client.HTTPConnection(shared.platform.address, timeout=10)
        headers = {"Authorization": f"Bearer {shared.token()}"}
        connection.request("POST", "/v2/models/recommend/infer", json.dumps(body), headers)
        (scores,) = json.loads(connection.getresponse().read())["outputs"]
        connection.close()
        assert scores["shape"] == [1, length]
