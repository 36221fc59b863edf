"""`taxiway schema`: what editors are given."""

import dataclasses
import json

import jsonschema
import pytest

from taxiway.app import settings
from taxiway.app.config import read, schema
from taxiway.entry import cli


def printed(capsys, *words):
    assert cli.main(["schema", *words]) == 0
    return capsys.readouterr().out


def test_without_a_name_it_is_the_schema_of_the_file_beside_the_notebook(capsys):
    assert json.loads(printed(capsys)) == read.schema() == json.loads(printed(capsys, "taxiway.yaml"))


def test_the_list_names_every_file_and_each_has_a_right_schema(capsys):
    names = printed(capsys, "--list").split()
    assert names == json.loads(printed(capsys, "--list", "--json")) == ["taxiway.yaml", "platform.json"]
    for name in names:
        found = json.loads(printed(capsys, name))
        jsonschema.Draft202012Validator.check_schema(found)
        assert found["title"] == name


def test_a_file_without_a_schema_is_a_wrong_word(capsys):
    assert cli.main(["schema", "else.yaml"]) == 2
    assert "taxiway.yaml" in capsys.readouterr().err


def test_what_a_platform_keeps_is_what_its_schema_accepts(tmp_path):
    settings.write(tmp_path / "platform.json", settings.Settings(port=9000))
    jsonschema.validate(json.loads((tmp_path / "platform.json").read_text()), schema.platform())


@pytest.mark.parametrize("wrong", [{"port": "8080"}, {"port": 0}, {"host": 1}, {"speed": 9}])
def test_what_no_platform_would_keep_is_refused_by_the_schema(wrong):
    assert not jsonschema.Draft202012Validator(schema.platform()).is_valid(wrong)


def test_every_setting_has_its_sentence_and_its_default():
    keys = schema.platform()["properties"]
    assert {k: v["default"] for k, v in keys.items()} == dataclasses.asdict(settings.Settings())
    assert all(v["description"].endswith(".") for v in keys.values())
