"""Who may call."""

import http.client
import json
import time

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.e2e.conftest import EXAMPLES

pytestmark = pytest.mark.processes


def ask(site, token, model="risk", path=None, method="POST", **headers):
    request = site.json("request", "risk")["body"] if method == "POST" else None
    connection = http.client.HTTPConnection(site.platform.address, timeout=10)
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    connection.request(method, path or f"/v2/models/{model}/infer", json.dumps(request) if request else None, headers)
    response = connection.getresponse()
    data = response.read()
    connection.close()
    return response.status, json.loads(data) if data else {}


def forged(site, key=None, algorithm="RS256", **claims):
    good = {"iss": "taxiway/local", "aud": "taxiway", "sub": "u1", "exp": int(time.time()) + 600, **claims}
    return jwt.encode(good, key, algorithm=algorithm)


def test_a_good_token_is_let_in_and_every_other_one_gets_a_401_with_a_reason(live, token):
    assert ask(live, token)[0] == 200
    stranger = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    key = (live.state / "keys/issuer.key").read_bytes()
    head, body, signature = token.split(".")
    bad = {
        "missing": None,
        "empty": "",
        "no token at all": "abc",
        "expired": forged(live, key, exp=int(time.time()) - 600),
        "tampered": ".".join([head, body[:-4] + ("AAAA" if body[-4:] != "AAAA" else "BBBB"), signature]),
        "wrong audience": forged(live, key, aud="another"),
        "wrong issuer": forged(live, key, iss="another"),
        "another's key": forged(live, stranger),
        "alg none": forged(live, None, "none"),
        "symmetric": forged(live, "x" * 32, "HS256"),
    }
    for name, text in bad.items():
        status, answer = ask(live, text)
        assert (name, status, answer.get("code")) == (name, 401, 401)
        assert isinstance(answer["error"], str)


def test_identity_cannot_be_claimed_by_a_header(live, token):
    line = ask(live, token, **{"x-user": "root", "x-app": "other", "x-request-id": "spoof-1"})
    assert line[0] == 200

    def entry():
        for text in reversed((live.state / "log/access.log").read_text().splitlines()):
            found = json.loads(text)
            if found.get("request_id") == "spoof-1":
                return found
        return None

    from tests.e2e.conftest import eventually

    assert eventually(lambda: entry() is not None, 15)
    assert (entry()["user"], entry()["app"], entry()["model"]) == ("u1", "web", "risk")


def test_only_an_operators_token_may_pin_a_revision(live, token):
    assert ask(live, token, **{"x-model-version": "2"})[0] in (401, 403)
    operator = live.platform.operator_token(now=int(time.time()))
    status, answer = ask(live, operator, **{"x-model-version": "2"})
    assert (status, answer["model_version"]) == (200, "2")


@pytest.mark.parametrize(
    "path",
    [
        "/v2/repository/index",
        "/v2/repository/models/risk/unload",
        "/v2/models/risk/config",
        "/v2/models/risk/stats",
        "/v2/models/stats",
        "/v2/models/risk/trace/setting",
        "/v2/trace/setting",
        "/v2/logging",
        "/v2/systemsharedmemory/status",
        "/v2/cudasharedmemory/status",
        "/v2/models/risk/generate",
        "/metrics",
        "/",
        "/v2/health/../repository/index",
        "/v2/models/risk/../../repository/index",
        "/v2/models/risk%2f..%2f..%2frepository%2findex",
    ],
)
def test_nothing_else_of_the_engine_can_be_reached(live, token, path):
    for method in ("GET", "POST"):
        status, _ = ask(live, token, path=path, method=method)
        assert status in (400, 404, 405), (method, path)


def test_an_external_issuers_keys_can_be_used_instead(tmp_path, builds, engine_home):
    from tests.e2e.conftest import ended, made

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key()))
    jwks = tmp_path / "jwks.json"
    jwks.write_text(json.dumps({"keys": [{**public, "kid": "k1", "use": "sig", "alg": "RS256"}]}))
    issuer = ("--issuer", "https://id.example", "--audience", "models", "--jwks", str(jwks))
    site = made(tmp_path / "state", builds, *issuer)
    try:
        site.taxiway("ship", str(EXAMPLES / "risk/notebook.ipynb"))
        refused = site.taxiway("token", "--user", "u1", check=False)
        assert (refused.returncode, "https://id.example" in refused.stderr) == (1, True)
        claims = {"iss": "https://id.example", "aud": "models", "sub": "u1", "exp": int(time.time()) + 600}
        token = jwt.encode(claims, key, algorithm="RS256", headers={"kid": "k1"})
        connection = http.client.HTTPConnection(site.platform.address, timeout=10)
        connection.request("GET", "/v2/models/risk", headers={"Authorization": f"Bearer {token}"})
        assert connection.getresponse().status == 200
        connection.close()
    finally:
        ended(site, builds)
