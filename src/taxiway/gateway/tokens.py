"""A local issuer of bearer tokens, and the check of key sets that come from elsewhere.

The private key never leaves its folder; what verifies a token is the public half, as a JSON Web Key Set.
"""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key

from taxiway.core.errors import Refused, Usage

_PRIVATE: Final = "issuer.key"
_KEY_SET: Final = "issuer.jwks.json"
_BITS: Final = 2048
_LONGEST_S: Final = 366 * 24 * 3600

# What a public key of each kind must have, and what betrays a private one.
_PUBLIC_MEMBERS: Final = {"RSA": ("n", "e"), "EC": ("crv", "x", "y"), "OKP": ("crv", "x")}
_PRIVATE_MEMBERS: Final = ("d", "p", "q", "dp", "dq", "qi", "oth", "k")


def make_keys(folder: Path) -> None:
    """Make the issuer's key in `folder` unless there is one, and write its public half as a key set beside it.

    The key is readable by its owner alone.
    """
    if not (folder / _PRIVATE).exists():
        folder.mkdir(parents=True, exist_ok=True)
        text = generate_private_key(public_exponent=65537, key_size=_BITS).private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        _write(folder / _PRIVATE, text, 0o600)
    key = _private_key(folder)
    public = {"keys": [{**_public(key), "use": "sig", "alg": "RS256", "kid": _kid(key)}]}
    _write(folder / _KEY_SET, json.dumps(public, sort_keys=True).encode(), 0o644)


def jwks(folder: Path) -> str:
    """The issuer's public key as the text of a key set. Raises `Refused` when there is none."""
    try:
        return (folder / _KEY_SET).read_text()
    except FileNotFoundError:
        raise Refused(f"token: there is no key set at {folder / _KEY_SET}; it is made by 'taxiway up'") from None


def issue(
    folder: Path,
    *,
    issuer: str,
    audience: str,
    user: str,
    app: str,
    ttl_s: int,
    now: int,
    role: str | None = None,
) -> str:
    """A signed token for `user` of `app`, valid from `now` (seconds since the epoch) for `ttl_s` seconds.

    Raises `Usage` for values that cannot be, `Refused` when there is no key.
    """
    if not 1 <= ttl_s <= _LONGEST_S:
        raise Usage(f"token: a lifetime of {ttl_s} s is not between 1 s and {_LONGEST_S} s")
    if not user or not app:
        raise Usage("token: a user and an app are needed, for instance --user u1 --app web")
    key = _private_key(folder)
    claims: dict[str, Any] = {"iss": issuer, "aud": audience, "sub": user, "app": app, "iat": now, "exp": now + ttl_s}
    if role is not None:
        claims["role"] = role
    return jwt.encode(claims, key, algorithm="RS256", headers={"kid": _kid(key)})


def read_jwks(text: str) -> str:
    """`text` if it is a key set of public keys only, else `Refused` with what is wrong with it."""
    try:
        value = json.loads(text)
    except ValueError as error:
        raise Refused(f"key set: not JSON ({error}); expected a JSON Web Key Set") from None
    keys = value.get("keys") if isinstance(value, dict) else None
    if not isinstance(keys, list) or not keys:
        raise Refused('key set: expected {"keys": [...]} with at least one public key')
    wrong = [f"key set: keys[{i}]: {fault}" for i, key in enumerate(keys) if (fault := _fault(key))]
    if wrong:
        raise Refused(*wrong)
    return text


def _write(path: Path, data: bytes, mode: int) -> None:
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    aside.unlink(missing_ok=True)
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        os.fsync(descriptor)
    aside.rename(path)


def _fault(key: Any) -> str:
    """What is wrong with one key of a set; empty when nothing is."""
    if not isinstance(key, dict):
        return "is not an object"
    kind = key.get("kty")
    if kind == "oct":
        return "is a shared secret: whoever can check tokens could make them; give public keys only"
    if kind not in _PUBLIC_MEMBERS:
        return f"kty {kind!r} is none of {', '.join(_PUBLIC_MEMBERS)}"
    private = [m for m in _PRIVATE_MEMBERS if m in key]
    if private:
        return f"holds the private key ({', '.join(private)}); replace the pair and give its public half only"
    missing = [m for m in _PUBLIC_MEMBERS[kind] if not isinstance(key.get(m), str) or not key[m]]
    if missing:
        return f"{kind} key without {', '.join(missing)}"
    try:
        jwt.PyJWK(key)
    except Exception as error:  # the library raises many kinds for a key it cannot read
        return f"cannot be read as a {kind} key ({error})"
    return ""


def _private_key(folder: Path) -> RSAPrivateKey:
    path = folder / _PRIVATE
    try:
        key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    except FileNotFoundError:
        raise Refused(f"token: there is no issuer key at {path}; it is made by the first 'taxiway up'") from None
    except ValueError as error:
        raise Refused(f"token: {path} is not a private key ({error}); remove it to have a new one made") from None
    if not isinstance(key, RSAPrivateKey):
        raise Refused(f"token: {path} is not an RSA key; remove it to have a new one made")
    return key


def _public(key: RSAPrivateKey) -> dict[str, str]:
    numbers = key.public_key().public_numbers()
    return {"kty": "RSA", "n": _base64(numbers.n), "e": _base64(numbers.e)}


def _kid(key: RSAPrivateKey) -> str:
    """The key's thumbprint (RFC 7638): the same key always has the same name."""
    digest = hashes.Hash(hashes.SHA256())
    digest.update(json.dumps(_public(key), sort_keys=True, separators=(",", ":")).encode())
    return base64.urlsafe_b64encode(digest.finalize()).rstrip(b"=").decode()


def _base64(number: int) -> str:
    raw = number.to_bytes((number.bit_length() + 7) // 8, "big")
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
