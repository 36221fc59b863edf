"""What ties a notebook to one place: paths, the network, databases, pickles."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Final

from taxiway.notebook.facts import Facts, Hit, keyword, text
from taxiway.notebook.rules.rule import Rule
from taxiway.notebook.rules.secrets import quoted

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
    "tensorflow.keras.datasets.",
    "keras.utils.get_file",
    "keras.datasets.",
    "tensorflow_datasets.load",
    "datasets.load_dataset",
    "seaborn.load_dataset",
    "nltk.download",
    "yfinance.",
    "pandas_datareader.",
    "paramiko.",
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
_UNPICKLES: Final = frozenset(
    f"{module}.{name}"
    for module in ("pickle", "cPickle", "_pickle", "six.moves.cPickle", "dill", "cloudpickle", "joblib", "pickle5")
    for name in ("load", "loads", "Unpickler")
) | {"sklearn.externals.joblib.load", "pandas.read_pickle", "torch.load", "shelve.open", "compress_pickle.load"}
_PICKLES: Final = frozenset(
    f"{module}.{name}"
    for module in ("pickle", "cPickle", "_pickle", "six.moves.cPickle", "dill", "cloudpickle", "joblib", "pickle5")
    for name in ("dump", "dumps", "Pickler")
) | {"sklearn.externals.joblib.dump", "torch.save"}


def _absolute_path(facts: Facts) -> Iterator[Hit]:
    for cell in facts.cells:
        for node in cell.nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and _ABSOLUTE.match(node.value):
                message = (
                    f"path {quoted(node.value)!r} exists only on one machine; take it from a setting with a default"
                )
                yield Hit(cell.number, node.lineno, message)


def _network(facts: Facts) -> Iterator[Hit]:
    constants = _constants(facts)
    for cell, name, call in facts.calls():
        full = facts.full(name)
        url = next((u for a in call.args if (u := _said(a, constants)) and _URL.match(u)), None)
        if (
            full.startswith(_NETWORK)
            or (url and name.rpartition(".")[2].startswith(("read_", "urlopen", "get_file", "loadtxt", "genfromtxt")))
            or _downloads(full, call)
        ):
            what = f" ({quoted(url.partition('?')[0])})" if url else ""
            yield Hit(cell.number, call.lineno, f"{name}() needs the network{what}; a build must find its data on disk")


def _downloads(full: str, call: ast.Call) -> bool:
    """`datasets.MNIST(root, download=True)`."""
    return full.startswith(("torchvision.", "torchaudio.", "torchtext.")) and _is_true(keyword(call, "download"))


def _is_true(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _constants(facts: Facts) -> Mapping[str, str]:
    """Names that stand for one text."""
    found: dict[str, str] = {}
    for cell in facts.cells:
        for node in cell.body:
            if isinstance(node, ast.Assign) and (said := text(node.value)) is not None:
                found |= {t.id: said for t in node.targets if isinstance(t, ast.Name)}
    return found


def _said(node: ast.expr, constants: Mapping[str, str]) -> str | None:
    """A text, written or named; of a sum or an f-string its beginning."""
    while isinstance(node, ast.BinOp):
        node = node.left
    if isinstance(node, ast.JoinedStr) and node.values:
        node = node.values[0]
    return constants.get(node.id) if isinstance(node, ast.Name) else text(node)


def _database(facts: Facts) -> Iterator[Hit]:
    for cell, name, call in facts.calls():
        if facts.full(name) in _DATABASE or name.rpartition(".")[2] in ("read_sql", "read_sql_query", "read_sql_table"):
            yield Hit(
                cell.number, call.lineno, f"{name}() asks a database: its answer changes while the notebook does not"
            )


def _pickle(facts: Facts) -> Iterator[Hit]:
    for cell, name, call in facts.calls():
        full = facts.full(name)
        unpickles = full in _UNPICKLES and not _is_true(keyword(call, "weights_only"))
        if unpickles or (full == "numpy.load" and _is_true(keyword(call, "allow_pickle"))):
            yield Hit(
                cell.number, call.lineno, f"{name}() runs whatever code the file holds; trust it or do not load it"
            )


def _pickled(facts: Facts) -> Iterator[Hit]:
    for cell, name, call in facts.calls():
        if facts.full(name) in _PICKLES or name.endswith(".to_pickle"):
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
        (
            "import pandas as pd\nd = pd.read_csv('https://example.com/x.csv')",
            "import requests\nr = requests.get(u)",
            "url = 'https://example.com/x.csv'\nd = pd.read_csv(url)",
        ),
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
