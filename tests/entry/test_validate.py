import json

import pytest
from tests.gates.repositories import GOOD, contract

from taxiway.app.wire import Platform
from taxiway.catalog import store
from taxiway.entry.cli import main


def laid(folder, files):
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    return str(folder)


def test_a_good_repository_ends_with_0_and_a_bad_one_with_1(tmp_path, capsys):
    assert main(["validate", laid(tmp_path, GOOD)]) == 0
    assert capsys.readouterr().out == "nothing found\n"
    bad = GOOD["m/config.pbtxt"].replace(b"max_batch_size", b"max_bach_size")
    laid(tmp_path, {"m/config.pbtxt": bad})
    assert main(["validate", str(tmp_path)]) == 1
    said = capsys.readouterr().out
    assert "m/config.pbtxt:3:1: error: unknown key 'max_bach_size'" in said
    assert main(["validate", str(tmp_path), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)[0]["line"] == 3


def told(capsys, folder):
    code = main(["validate", str(folder)])
    return code, capsys.readouterr().out


def test_links_that_lead_out_and_folders_that_are_none_are_told(tmp_path, capsys):
    laid(tmp_path / "r", GOOD)
    (tmp_path / "secret").write_text("x")
    (tmp_path / "r/m/1/link").symlink_to(tmp_path / "secret")
    (tmp_path / "r/m/nowhere").symlink_to(tmp_path / "gone")
    code, said = told(capsys, tmp_path / "r")
    assert code == 1
    assert "m/1/link: error: a link that leads out of the repository" in said
    assert "m/nowhere: error: a link that leads nowhere" in said
    assert main(["validate", str(tmp_path / "nowhere")]) == 1
    assert "is no folder" in capsys.readouterr().err


def test_links_inside_the_repository_are_followed_and_circles_end(tmp_path, capsys):
    laid(tmp_path, GOOD)
    (tmp_path / "m/2").symlink_to("1")
    (tmp_path / "m/3").mkdir()
    (tmp_path / "m/3/model.onnx").symlink_to("../1/model.onnx")
    assert told(capsys, tmp_path) == (0, "nothing found\n")
    (tmp_path / "m/4").mkdir()
    (tmp_path / "m/4/model.onnx").symlink_to("model.onnx")
    (tmp_path / "m/configs").mkdir()
    (tmp_path / "m/configs/round").symlink_to("..")
    code, said = told(capsys, tmp_path)
    assert code == 1
    assert "m/4/model.onnx: error: a link that leads nowhere" in said
    assert "links that go round in circles" in said


def test_a_warning_alone_is_no_reason_to_fail(tmp_path, capsys):
    code, said = told(capsys, laid(tmp_path, GOOD | {"m/notes.txt": b"x"}))
    assert code == 0
    assert said.endswith("0 errors, 1 warnings\n")


WAITS = b"batching { max_queue_delay_microseconds: 9000 }"
SLOW = GOOD | {"m/config.pbtxt": GOOD["m/config.pbtxt"].replace(b"batching { }", WAITS)}


def test_a_wait_for_a_batch_is_held_against_the_timeout_beside_the_repository(tmp_path, capsys):
    folder = tmp_path / "models"
    laid(folder, SLOW)
    assert told(capsys, folder) == (0, "nothing found\n")
    for place in (tmp_path, folder):
        (place / "taxiway.yaml").write_text("serving: {timeout_ms: 9}\n")
        code, said = told(capsys, folder)
        assert code == 1
        assert "m/config.pbtxt:7:20: error: a lone request waits 9 ms for others, but is given up after 9 ms" in said
        (place / "taxiway.yaml").write_text("model: m\n")
        assert told(capsys, folder) == (0, "nothing found\n")
    # What a revision was stored with goes before what is written for the next one.
    (tmp_path / "service.json").write_text('{"timeout_ms": 50}')
    code, said = told(capsys, folder)
    assert code == 0
    assert "every request may wait 9 of the 50 ms that it has" in said
    (tmp_path / "service.json").write_text('{"name": "another program\'s"}')
    assert told(capsys, folder) == (0, "nothing found\n")


@pytest.mark.parametrize("value", ['"9"', "true", "0", "9.5", "null", "[9]"])
def test_a_timeout_that_is_none_is_told(tmp_path, capsys, value):
    laid(tmp_path / "models", SLOW)
    (tmp_path / "service.json").write_text(f'{{"timeout_ms": {value}}}')
    code, said = told(capsys, tmp_path / "models")
    assert code == 1
    assert said.startswith(f"../service.json: error: timeout_ms is {value}; expected a whole number above 0\n")


@pytest.mark.parametrize("text", ["", "[", "[" * 100_000, "7", '"timeout_ms"'])
def test_a_file_of_that_name_that_is_none_of_ours_says_nothing(tmp_path, capsys, text):
    laid(tmp_path / "models", SLOW)
    (tmp_path / "service.json").write_text(text)
    assert told(capsys, tmp_path / "models") == (0, "nothing found\n")


def test_a_wrong_configuration_beside_the_repository_is_refused_with_its_mistakes(tmp_path, capsys):
    laid(tmp_path / "models", SLOW)
    (tmp_path / "taxiway.yaml").write_text("serving: {timeout: 9}\n")
    assert main(["validate", str(tmp_path / "models")]) == 1
    assert "taxiway.yaml:1:11: serving: unknown key 'timeout'; did you mean 'timeout_ms'?" in capsys.readouterr().err


def test_a_stored_revision_is_held_against_its_timeout(tmp_path, capsys):
    platform = Platform.at(tmp_path)
    contents = {f"repository/{p.replace('/1/', '/{number}/')}": data for p, data in SLOW.items()}
    promised = {"evidence/contract.json": json.dumps(contract(8).to_json()).encode()}
    store.admit(platform.places.catalog, "m", contents | promised | {"service.json": b'{"timeout_ms":8}'})
    assert main(["validate", "m@1", "--state", str(tmp_path)]) == 1
    assert "a lone request waits 9 ms for others, but is given up after 8 ms" in capsys.readouterr().out


def test_a_stored_revision_is_held_against_its_contract(tmp_path, capsys):
    platform = Platform.at(tmp_path)
    contents = {f"repository/{p.replace('/1/', '/{number}/')}": data for p, data in GOOD.items()}
    for number, rows in ((1, 8), (2, 128)):
        promised = {"evidence/contract.json": json.dumps(contract(rows).to_json()).encode()}
        store.admit(platform.places.catalog, "m", contents | promised)
        assert main(["validate", f"m@{number}", "--state", str(tmp_path)]) == number - 1
    assert "m/config.pbtxt:3:1: error: max_batch_size is 8, the contract says 128" in capsys.readouterr().out
    assert main(["validate", "m@7", "--state", str(tmp_path)]) == 1
    assert "m@7 is not in the catalog" in capsys.readouterr().err
