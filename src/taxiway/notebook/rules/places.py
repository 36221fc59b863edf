"""What ties a notebook to one place: paths, the network, databases, secrets, pickles."""

from __future__ import annotations

import ast
import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

from taxiway.notebook.facts import Facts, Hit, text
from taxiway.notebook.rules.rule import Rule

_ABSOLUTE: Final = re.compile(r"(/(home|Users|root|mnt|data|tmp|content|kaggle|opt|var|srv)/|~/|[A-Za-z]:[\\/])\S*")
_URL: Final = re.compile(r"(https?|ftp|s3|gs|hdfs|az)://\S+")
_NETWORK: Final = (
    "requests.",
    "urllib.request.",
    "urllib3.",
    "httpx.",
    "aiohttp.",
    "wget.",
    "boto3.",
    "ftplib.",
    "gdown.",
    "huggingface_hub.",
    "kaggle.",
    "openml.",
    "sklearn.datasets.fetch_",
    "torch.hub.load",
    "tensorflow.keras.utils.get_file",
)
_DATABASE: Final = (
    "sqlite3.connect",
    "psycopg.connect",
    "psycopg2.connect",
    "pymysql.connect",
    "mysql.connector.connect",
    "pymongo.MongoClient",
    "redis.Redis",
    "redis.StrictRedis",
    "pyodbc.connect",
    "cx_Oracle.connect",
    "duckdb.connect",
    "sqlalchemy.create_engine",
    "google.cloud.bigquery.Client",
    "snowflake.connector.connect",
)
_UNPICKLES: Final = {
    "pickle.load": "error",
    "pickle.loads": "error",
    "cPickle.load": "error",
    "joblib.load": "error",
    "sklearn.externals.joblib.load": "error",
    "dill.load": "error",
    "dill.loads": "error",
    "cloudpickle.load": "error",
    "pandas.read_pickle": "error",
    "torch.load": "error",
}
_PICKLES: Final = frozenset(
    {"pickle.dump", "pickle.dumps", "joblib.dump", "dill.dump", "cloudpickle.dump", "torch.save"}
)
_SECRET_NAME: Final = re.compile(
    r"(passw(or)?d|passwd|pwd|secret|api_?key|access_?key|auth_?token|token|private_?key|credentials?)(_\w*)?\Z", re.I
)
_SHAPES: Final = (
    ("an AWS access key", re.compile(r"\b(AKIA|ASIA)[0-9A-Z]{16}\b")),
    ("a private key", re.compile(r"-----BEGIN ([A-Z]+ )?PRIVATE KEY-----")),
    ("a GitHub token", re.compile(r"\bgh[pousr]_[A-Za-z0-9]{30,}\b")),
    ("a Slack token", re.compile(r"\bxox[abprs]-[A-Za-z0-9-]{10,}\b")),
    ("a Google API key", re.compile(r"\bAIza[0-9A-Za-z_-]{35}\b")),
    ("an OpenAI key", re.compile(r"\bsk-[A-Za-z0-9_-]{20,}\b")),
    ("a Hugging Face token", re.compile(r"\bhf_[A-Za-z0-9]{30,}\b")),
    ("a bearer token", re.compile(r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\b")),
    ("a connection string with a password", re.compile(r"\b[a-z][a-z0-9+]*://[^\s:/@]+:[^\s:/@{}<]{3,}@[^\s/]+")),
)
_PLACEHOLDER: Final = re.compile(
    r"(your|my|the)?[_\- ]?(password|token|secret|key|xxx+|\*+|\.\.\.|changeme|example|dummy|none|null|todo|<.*>|"
    r"\{.*\})",
    re.I,
)


def _absolute_path(facts: Facts) -> Iterator[Hit]:
    for cell in facts.cells:
        for node in cell.nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and _ABSOLUTE.match(node.value):
                path = node.value if len(node.value) <= 60 else node.value[:57] + "..."
                message = f"path {path!r} exists only on one machine; take it from a setting with a default"
                yield Hit(cell.number, node.lineno, message)


def _network(facts: Facts) -> Iterator[Hit]:
    for cell, name, call in facts.calls():
        full = facts.full(name)
        url = next((u for a in call.args if (u := text(a)) and _URL.match(u)), None)
        if full.startswith(_NETWORK) or (url and name.rpartition(".")[2].startswith(("read_", "urlopen", "get_file"))):
            what = f" ({url.split('?')[0][:60]})" if url else ""
            yield Hit(cell.number, call.lineno, f"{name}() needs the network{what}; a build must find its data on disk")


def _database(facts: Facts) -> Iterator[Hit]:
    for cell, name, call in facts.calls():
        if facts.full(name) in _DATABASE or name.rpartition(".")[2] in ("read_sql", "read_sql_query", "read_sql_table"):
            yield Hit(
                cell.number, call.lineno, f"{name}() asks a database: its answer changes while the notebook does not"
            )


def _secret(facts: Facts) -> Iterator[Hit]:
    for cell in facts.cells:
        for node in cell.nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                kind = next((kind for kind, shape in _SHAPES if shape.search(node.value)), None)
                if kind:
                    yield Hit(cell.number, node.lineno, f"this is {kind} ({_masked(node.value)})")
            for name, value, line in _named_texts(node):
                if _SECRET_NAME.search(name) and _is_secret(value):
                    yield Hit(cell.number, line, f"{name!r} is given a value that looks secret ({_masked(value)})")


def _named_texts(node: ast.AST) -> Iterator[tuple[str, str, int]]:
    """(name, text, line) of assignments, keyword arguments and dictionary entries."""
    pairs: list[tuple[str | None, ast.expr | None]] = []
    if isinstance(node, ast.Assign):
        pairs = [(_target_name(target), node.value) for target in node.targets]
    elif isinstance(node, ast.Call):
        pairs = [(k.arg, k.value) for k in node.keywords]
    elif isinstance(node, ast.Dict):
        pairs = [(text(key), entry) for key, entry in zip(node.keys, node.values, strict=True)]
    for name, value in pairs:
        said = text(value)
        if name and said and value is not None:
            yield name, said, value.lineno


def _target_name(target: ast.expr) -> str | None:
    if isinstance(target, ast.Subscript):
        return text(target.slice)
    return target.id if isinstance(target, ast.Name) else None


def _is_secret(value: str) -> bool:
    if len(value) < 6 or " " in value or _PLACEHOLDER.fullmatch(value):
        return False
    counts = Counter(value).values()
    entropy = -sum(c / len(value) * math.log2(c / len(value)) for c in counts)
    return entropy > 2.3


def _masked(value: str) -> str:
    return f"{value[:3]}..., {len(value)} characters"


def _pickle(facts: Facts) -> Iterator[Hit]:
    for cell, name, call in facts.calls():
        full = facts.full(name)
        safe = any(
            k.arg == "weights_only" and isinstance(k.value, ast.Constant) and k.value.value is True
            for k in call.keywords
        )
        allowed = any(
            k.arg == "allow_pickle" and isinstance(k.value, ast.Constant) and k.value.value is True
            for k in call.keywords
        )
        if (full in _UNPICKLES and not safe) or (full == "numpy.load" and allowed):
            yield Hit(cell.number, call.lineno, f"{name}() runs whatever code the file holds")


def _pickled(facts: Facts) -> Iterator[Hit]:
    for cell, name, call in facts.calls():
        if facts.full(name) in _PICKLES:
            yield Hit(cell.number, call.lineno, f"{name}() writes a file that only this very environment can read")


RULES: Final = (
    Rule(
        "absolute-path",
        "Paths of one machine",
        "warning",
        "The file is not there on any other machine, and nobody is told until the first run.",
        "Put the file next to the notebook and name it relatively, or take the path from an environment variable.",
        ("p = '/home/anna/data.csv'", "p = r'C:\\data\\x.csv'"),
        ("p = 'data/x.csv'", "u = 'https://example.com/home/x'"),
        _absolute_path,
    ),
    Rule(
        "network",
        "Data from the network",
        "warning",
        "What is behind an address changes or goes away, and a build machine often has no network.",
        "Download it once, keep it beside the notebook, and read it from there.",
        ("import pandas as pd\nd = pd.read_csv('https://example.com/x.csv')", "import requests\nr = requests.get(u)"),
        ("import pandas as pd\nd = pd.read_csv('x.csv')",),
        _network,
    ),
    Rule(
        "database",
        "Data from a database",
        "warning",
        "The same notebook gives another model tomorrow, and nobody can tell which rows this one has seen.",
        "Export the rows to a file (with the query beside it) and train from that.",
        ("import sqlite3\nc = sqlite3.connect('x.db')", "import pandas as pd\nd = pd.read_sql('select 1', c)"),
        ("import pandas as pd\nd = pd.read_parquet('rows.parquet')",),
        _database,
    ),
    Rule(
        "secret",
        "Secrets",
        "error",
        "A notebook is copied, committed and shown around, and so is every secret in it.",
        "Take it from an environment variable, and change the secret: it has been seen.",
        ("password = 'hunter2hunter2'", "key = 'AKIAABCDEFGHIJKLMNOP'", "u = 'postgresql://anna:s3cr3t9@db/x'"),
        ("import os\npassword = os.environ['DB_PASSWORD']", "token = 'your-token'", "token_count = 'many words here'"),
        _secret,
    ),
    Rule(
        "pickle",
        "Unpickling",
        "error",
        "A pickle is a program: loading it runs it, with all your rights. The next library version breaks it, too.",
        "Train in the notebook, or load a format without code: ONNX, safetensors, weights_only=True, CSV, Parquet.",
        ("import pickle\nm = pickle.load(open('m.pkl', 'rb'))", "import joblib\nm = joblib.load('m.joblib')"),
        ("import torch\nw = torch.load('w.pt', weights_only=True)", "import json\nd = json.loads('1')"),
        _pickle,
    ),
    Rule(
        "pickled",
        "Models saved as pickles",
        "warning",
        "Such a file can be read by this very environment only, and by nobody who does not trust it.",
        "Let `taxiway ship` export the model; its format holds no code.",
        ("import joblib\njoblib.dump(m, 'm.joblib')",),
        ("d.to_parquet('d.parquet')",),
        _pickled,
    ),
)
