import json

from tests.gates.test_validate import GOOD

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


def test_links_that_lead_out_and_folders_that_are_none_are_told(tmp_path, capsys):
    laid(tmp_path / "r", GOOD)
    (tmp_path / "secret").write_text("x")
    (tmp_path / "r/m/1/link").symlink_to(tmp_path / "secret")
    assert main(["validate", str(tmp_path / "r")]) == 1
    assert "a link that leads out of the repository" in capsys.readouterr().out
    assert main(["validate", str(tmp_path / "nowhere")]) == 1
