"""The local issuer, and the check of key sets from elsewhere."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from taxiway.core.errors import Refused, Usage
from taxiway.gateway import tokens

NOW = 1_800_000_000


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys") / "issuer"
    tokens.make_keys(folder)
    return folder


def issue(keys: Path, **changes: Any) -> str:
    values = {"issuer": "https://i", "audience": "models", "user": "u1", "app": "web", "ttl_s": 60, "now": NOW}
    return tokens.issue(keys, **{**values, **changes})


def test_a_token_says_who_asks_and_verifies_with_the_published_key(keys: Path) -> None:
    token = issue(keys, role="operator")
    published = jwt.PyJWKSet.from_json(tokens.jwks(keys))
    key = published[jwt.get_unverified_header(token)["kid"]]
    options: Any = {"verify_exp": False, "verify_iat": False}
    claims = jwt.decode(token, key, algorithms=["RS256"], audience="models", issuer="https://i", options=options)
    assert claims == {
        "iss": "https://i",
        "aud": "models",
        "sub": "u1",
        "app": "web",
        "role": "operator",
        "iat": NOW,
        "exp": NOW + 60,
    }


def test_only_the_owner_may_read_the_private_key_and_nothing_else_is_left(keys: Path) -> None:
    assert sorted(p.name for p in keys.iterdir()) == ["issuer.jwks.json", "issuer.key"]
    assert stat.S_IMODE((keys / "issuer.key").stat().st_mode) == 0o600


def test_making_keys_again_keeps_the_ones_that_are_there(keys: Path) -> None:
    before = tokens.jwks(keys)
    tokens.make_keys(keys)
    assert tokens.jwks(keys) == before


def test_the_published_keys_are_public(keys: Path) -> None:
    assert tokens.read_jwks(tokens.jwks(keys)) == tokens.jwks(keys)
    assert set(json.loads(tokens.jwks(keys))["keys"][0]) == {"kty", "n", "e", "use", "alg", "kid"}


@pytest.mark.parametrize("changes", [{"ttl_s": 0}, {"ttl_s": 10**9}, {"user": ""}, {"app": ""}])
def test_a_token_that_cannot_be_is_not_issued(keys: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(Usage):
        issue(keys, **changes)


def test_without_a_key_there_is_no_token(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="there is no issuer key"):
        issue(tmp_path)


@pytest.mark.parametrize("content", [b"", b"not a key"])
def test_a_broken_key_file_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "issuer.key").write_bytes(content)
    with pytest.raises(Refused, match=r"issuer\.key is not a private key"):
        issue(tmp_path)


def key_set(*keys: Any) -> str:
    return json.dumps({"keys": [json.loads(k) if isinstance(k, str) else k for k in keys]})


RSA = rsa.generate_private_key(65537, 2048)
EC = ec.generate_private_key(ec.SECP256R1())
OKP = ed25519.Ed25519PrivateKey.generate()


def test_public_keys_of_every_kind_are_taken() -> None:
    text = key_set(
        RSAAlgorithm.to_jwk(RSA.public_key()),
        ECAlgorithm.to_jwk(EC.public_key()),
        OKPAlgorithm.to_jwk(OKP.public_key()),
    )
    assert tokens.read_jwks(text) == text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not JSON"),
        ("[]", "at least one public key"),
        ("{}", "at least one public key"),
        ('{"keys": []}', "at least one public key"),
        ('{"keys": ["k"]}', r"keys\[0\]: is not an object"),
        (key_set({"kty": "oct", "k": "c2VjcmV0"}), r"keys\[0\]: is a shared secret"),
        (key_set(RSAAlgorithm.to_jwk(RSA)), r"keys\[0\]: holds the private key \(d, p, q"),
        (key_set(ECAlgorithm.to_jwk(EC)), r"keys\[0\]: holds the private key \(d\)"),
        (key_set(OKPAlgorithm.to_jwk(OKP)), "holds the private key"),
        (key_set(RSAAlgorithm.to_jwk(RSA.public_key()), {"kty": "RSA", "e": "AQAB"}), r"keys\[1\]: RSA key without n"),
        (key_set({"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}), "cannot be read as a EC key"),
        (key_set({"kty": "PGP"}), "kty 'PGP' is none of RSA, EC, OKP"),
    ],
)
def test_a_key_set_that_is_unsafe_or_unreadable_is_refused(text: str, said: str) -> None:
    with pytest.raises(Refused, match=said):
        tokens.read_jwks(text)
