"""The status page and the control API."""

import http.client
import json

import pytest

pytestmark = pytest.mark.processes


def call(site, method, path, body=None, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", site.platform.settings.console_port, timeout=30)
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    response = connection.getresponse()
    data = response.read()
    connection.close()
    return response.status, data


@pytest.fixture
def secret(live):
    return {"Authorization": f"Bearer {(live.state / 'keys/api-token').read_text().strip()}"}


def test_the_page_and_the_command_tell_the_same(live):
    status, page = call(live, "GET", "/")
    assert status == 200
    assert b"<h1>Taxiway" in page
    said = json.loads(call(live, "GET", "/api/status")[1])
    assert said == live.status()
    assert json.loads(call(live, "GET", "/api/models/risk/history")[1]) == live.json("history", "risk")


def test_traffic_can_be_moved_and_rolled_back_with_the_platforms_token(live, secret):
    status, body = call(live, "POST", "/api/models/risk/traffic", {"split": {"2": 100}, "reason": "by api"}, **secret)
    assert (status, json.loads(body)["after"]) == (200, {"2": 100.0})
    status, body = call(live, "POST", "/api/models/risk/rollback", {}, **secret)
    assert (status, json.loads(body)["after"]) == (200, {"1": 100.0})


def test_without_the_token_or_from_another_site_nothing_is_changed(live, secret):
    before = live.json("history", "risk")
    assert call(live, "POST", "/api/models/risk/rollback", {})[0] == 401
    assert call(live, "POST", "/api/models/risk/rollback", {}, Authorization="Bearer x")[0] == 401
    assert call(live, "POST", "/api/models/risk/rollback", {}, **secret, Host="evil.example")[0] == 400
    assert call(live, "GET", "/api/status", Host="evil.example")[0] == 400
    assert live.json("history", "risk") == before


@pytest.mark.parametrize(
    ("action", "body", "code", "said"),
    [
        ("traffic", {"split": {"1": 50}}, 400, "add up to 50"),
        ("traffic", {"split": [1]}, 400, "'split'"),
        ("traffic", {}, 400, "'split'"),
        ("traffic", {"split": {"9": 100}}, 409, "no revision 9"),
        ("traffic", {"split": {"1": 100}, "reason": 5}, 400, "'reason'"),
        ("rollback", {"to": "x"}, 400, "'to'"),
        ("rollback", {"to": 9}, 409, "no revision 9"),
        ("destroy", {}, 404, "traffic, rollback"),
    ],
)
def test_a_wrong_call_is_refused_with_what_is_right(live, secret, action, body, code, said):
    status, answer = call(live, "POST", f"/api/models/risk/{action}", body, **secret)
    assert (status, said in json.loads(answer)["error"]) == (code, True), answer
