"""Secrets: by the shapes that issuers give them, and by the names that people give them.

Shapes are looked for in all text (code, comments, cells that do not parse, stored outputs). Names count in code only,
and only with a value that no person would write as a word. What is found is never repeated: three characters tell the
owner which one it is.
"""

from __future__ import annotations

import ast
import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

from taxiway.notebook.facts import CellFacts, Facts, Hit, text
from taxiway.notebook.rules.rule import Rule

_SHAPES: Final = (
    ("an AWS access key", re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b")),
    ("a private key", re.compile(r"-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----[A-Za-z0-9+/=\s\\]*")),
    ("a GitHub token", re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{40,})")),
    ("a GitLab token", re.compile(r"\bglpat-[A-Za-z0-9_-]{20,}")),
    ("a Slack token", re.compile(r"\bxox[abprs]-[A-Za-z0-9-]{10,}")),
    ("a Google API key", re.compile(r"\bAIza[0-9A-Za-z_-]{35}")),
    ("a Stripe key", re.compile(r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{16,}")),
    ("an API key", re.compile(r"\bsk-(?=[A-Za-z0-9_-]{0,200}\d)[A-Za-z0-9_-]{20,}")),
    ("a Hugging Face token", re.compile(r"\bhf_[A-Za-z0-9]{30,}")),
    ("a bearer token", re.compile(r"\beyJ[A-Za-z0-9_-]{10,300}\.eyJ[A-Za-z0-9_-]{10,3000}\.[A-Za-z0-9_-]{10,}")),
)
_LOGIN: Final = re.compile(r"\b[a-z][a-z0-9+]{1,20}://[^\s:/@'\"]{1,100}:([^\s:/@'\"{}<>$]{3,200})@[^\s/'\"]+")
# `API_KEY=…` and `--password …` in the words of a shell command or a magic.
_SAID: Final = re.compile(r"(?:^|[\s'\"`&?;-])([A-Za-z_][\w-]{0,40})(?:=|\s*:\s+|\s+)([^\s'\"`&;]{6,200})")

_PASSWORD: Final = re.compile(r"(^|_)(passw(or)?d|passwd|pwd|passphrase)s?\d*$", re.I)
_KEY: Final = re.compile(
    r"(^|_)(secret|(secret|api|access|private|auth|account|storage|service|encryption)_?key|token|credentials?)(_?id)?\d*$",
    re.I,
)
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_PLACEHOLDER: Final = re.compile(
    r"(your|my|the|a|some|enter|insert|put)?[_\- ]*(api|db|user|access|secret|auth)?[_\- ]*"
    r"(pass(word)?|passwd|pwd|token|secret|key|x{3,}|\*+|\.{3,}|change[_-]?me|example|dummy|none|null|todo|"
    r"redacted|hidden|removed)([_\- ]?(here|goes[_\- ]here))?|[<\[{$].*|.*[>\]}]|%\(?\w.*|your[_\- ].*",
    re.I,
)


def _secret(facts: Facts) -> Iterator[Hit]:
    for cell in facts.cells:
        told: set[tuple[int, str]] = set()
        for line, what, value in (*_shaped(cell), *_named(cell)):
            key = (line, value)
            if not any(line == other and (value in known or known in value) for other, known in told):
                told.add(key)
                yield Hit(cell.number, line, f"{what} ({_masked(value)})")


def redacted(message: str) -> str:
    """`message` with every secret in it cut to its first three characters."""
    for value in sorted({v for _, v in (*_in_text(message), *_said(message))}, key=len, reverse=True):
        message = message.replace(value, f"{value[:3]}...")
    return message


def quoted(said: str, limit: int = 60) -> str:
    """The first line of `said`, at most `limit` characters, for a message; cut only after secrets are out of it."""
    line = redacted(said).strip().split("\n")[0]
    return line if len(line) <= limit else line[: limit - 3] + "..."


def values(facts: Facts) -> frozenset[str]:
    """Every secret of the notebook, to be kept out of what other rules say."""
    return frozenset(value for cell in facts.cells for _, _, value in (*_shaped(cell), *_named(cell)))


def _shaped(cell: CellFacts) -> Iterator[tuple[int, str, str]]:
    """(line, what, value) of the shapes in the cell's own text and in what it has stored."""
    if any(True for _ in _in_text(cell.cell.source)):
        for number, line in enumerate(cell.cell.source.split("\n"), 1):
            yield from ((number, f"this is {kind}", value) for kind, value in _in_text(line))
    for output in cell.cell.outputs:
        yield from ((1, f"its stored output shows {kind}", value) for kind, value in _in_text(output.text))


def _in_text(said: str) -> Iterator[tuple[str, str]]:
    """(kind, value) of every secret that its shape gives away."""
    for kind, shape in _SHAPES:
        yield from ((kind, match[0]) for match in shape.finditer(said))
    if "://" in said:
        for match in _LOGIN.finditer(said):
            if not _PLACEHOLDER.fullmatch(match[1]):
                yield "a connection string with a password", match[1]


def _named(cell: CellFacts) -> Iterator[tuple[int, str, str]]:
    for node in cell.nodes:
        for name, value, line in _pairs(node):
            if is_secret(name, value):
                yield line, f"{name!r} is given a value that looks secret", value
    for name, call in cell.calls:
        if name.startswith("(…)."):
            for argument in call.args:
                for key, value in _said(text(argument) or ""):
                    yield call.lineno, f"{key!r} is given a value that looks secret", value


def _said(words: str) -> Iterator[tuple[str, str]]:
    for match in _SAID.finditer(words):
        if is_secret(match[1].replace("-", "_"), match[2]):
            yield match[1], match[2]


def _pairs(node: ast.AST) -> Iterator[tuple[str, str, int]]:
    """(name, text, line) of assignments, arguments, defaults and dictionary entries."""
    pairs: list[tuple[str | None, ast.expr | None]] = []
    if isinstance(node, ast.Assign):
        pairs = [(_target(target), node.value) for target in node.targets]
    elif isinstance(node, ast.AnnAssign):
        pairs = [(_target(node.target), node.value)]
    elif isinstance(node, ast.Call):
        pairs = [(k.arg, k.value) for k in node.keywords]
        if len(node.args) == 2 and isinstance(node.func, ast.Attribute | ast.Name):
            pairs.append((text(node.args[0]), node.args[1]))  # setdefault, getenv, get, set_key
    elif isinstance(node, ast.Dict):
        pairs = [(text(key), entry) for key, entry in zip(node.keys, node.values, strict=True)]
    elif isinstance(node, ast.arguments):
        pairs = _defaults(node)
    for name, value in pairs:
        said = text(value)
        if name and said and value is not None:
            yield name, said, value.lineno


def _defaults(node: ast.arguments) -> list[tuple[str | None, ast.expr | None]]:
    plain = [*node.posonlyargs, *node.args]
    last = plain[len(plain) - len(node.defaults) :]
    pairs = [*zip(last, node.defaults, strict=True), *zip(node.kwonlyargs, node.kw_defaults, strict=True)]
    return [(argument.arg, default) for argument, default in pairs]


def _target(target: ast.expr) -> str | None:
    if isinstance(target, ast.Subscript):
        return text(target.slice)
    if isinstance(target, ast.Attribute):
        return target.attr
    return target.id if isinstance(target, ast.Name) else None


def is_secret(name: str, value: str) -> bool:
    """Whether `value`, under this name, looks like something that must not be seen."""
    if not 6 <= len(value) <= 1000 or any(c.isspace() for c in value) or _PLACEHOLDER.fullmatch(value):
        return False
    name = _CAMEL.sub("_", name)
    if _PASSWORD.search(name):
        return _entropy(value) > 2.3
    return bool(_KEY.search(name)) and len(value) >= 8 and _is_made(value) and _entropy(value) > 2.8


def _is_made(value: str) -> bool:
    """Letters and digits without the look of a path, a file, an address, a pattern or a list of words."""
    mixed = any(c.isdigit() for c in value) and any(c.isalpha() for c in value)
    return (
        mixed and re.fullmatch(r"[\w+/=.~!@#$%^&*-]+", value) is not None and not re.search(r"^[./~]|\.\w{2,5}$", value)
    )


def _entropy(value: str) -> float:
    """Bits per character."""
    counts = Counter(value).values()
    return -sum(c / len(value) * math.log2(c / len(value)) for c in counts)


def _masked(value: str) -> str:
    return f"{value[:3]}..., {len(value)} characters"


RULES: Final = (
    Rule(
        "secret",
        "Secrets",
        "error",
        "A notebook is copied, committed and shown around, and so is every secret in it.",
        "Take it from an environment variable, and change the secret: it has been seen.",
        ("password = 'hunter2hunter2'", "key = 'AKIAABCDEFGHIJKLMNOP'", "u = 'postgresql://anna:s3cr3t9@db/x'"),
        (
            "import os\npassword = os.environ['DB_PASSWORD']",
            "token = 'your-token'",
            "token_pattern = '[a-z]+[0-9]{2}'",
            "u = 'postgresql://user:password@db/x'",
        ),
        _secret,
    ),
)
