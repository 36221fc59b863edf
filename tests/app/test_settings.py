import ast
import inspect
import itertools
import socket

import pytest

from taxiway.app import settings
from taxiway.app.settings import Settings
from taxiway.core.errors import Refused, Usage
from taxiway.entry.cli.up import _HELP


def test_a_flag_beats_the_environment_which_beats_the_file_which_beats_the_default(tmp_path):
    file = tmp_path / "platform.json"
    settings.write(file, Settings(port=1001, console_port=1002, audience="kept"))
    kept = settings.read(file)
    got = settings.merge(kept, {"TAXIWAY_PORT": "2001", "TAXIWAY_CONSOLE_PORT": "2002"}, {"port": "3001"})
    assert (got.port, got.console_port, got.audience, got.host) == (3001, 2002, "kept", "127.0.0.1")


@pytest.mark.parametrize("value", ["x", "0", "65536", "-1", "80.5"])
def test_a_wrong_port_is_refused_naming_where_it_came_from(value):
    with pytest.raises(Usage, match="--console-port"):
        settings.merge(Settings(), {}, {"console_port": value})
    with pytest.raises(Usage, match="TAXIWAY_PORT"):
        settings.merge(Settings(), {"TAXIWAY_PORT": value}, {})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "cannot be read"),
        ("[]", "expected a JSON object"),
        ('{"prt": 1}', "unknown key 'prt'"),
        ('{"port": "1"}', "key 'port': expected int, got '1'"),
    ],
)
def test_a_spoilt_settings_file_is_refused_with_the_key(tmp_path, text, said):
    file = tmp_path / "platform.json"
    file.write_text(text)
    with pytest.raises(Refused, match=said):
        settings.read(file)


def test_a_port_that_is_taken_is_replaced_by_a_free_one():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        got = settings.with_free_ports(Settings(port=port, console_port=port))
    assert port not in (got.port, got.console_port)
    assert got.port != got.console_port


def test_every_setting_is_explained_and_has_a_flag():
    body = ast.parse(inspect.getsource(Settings)).body[0].body
    fields = [n.target.id for n in body if isinstance(n, ast.AnnAssign)]
    said = [b for a, b in itertools.pairwise(body) if isinstance(a, ast.AnnAssign) and isinstance(b, ast.Expr)]
    assert len(said) == len(fields)
    assert set(_HELP) == set(fields)
