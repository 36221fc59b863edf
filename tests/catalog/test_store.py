import threading

import pytest

from taxiway.catalog import store
from taxiway.catalog.manifest import NUMBER, Manifest
from taxiway.core.errors import Altered, Refused
from taxiway.core.revision import Revision

CONTENTS = {
    "repository/risk/config.pbtxt": b"name: 'risk'",
    f"repository/risk/{NUMBER}/model.onnx": b"weights",
    "evidence/golden.json": b"[]",
}


def admitted(root, **changes):
    return store.admit(root, "risk", {**CONTENTS, **changes})[0]


def test_a_revision_lies_in_tritons_own_layout_under_its_number(tmp_path):
    stored = admitted(tmp_path)
    assert stored.revision == Revision("risk", 1)
    assert (stored.repository / "risk/1/model.onnx").read_bytes() == b"weights"
    second = admitted(tmp_path, **{"requirements.txt": b"numpy"})
    assert (second.repository / "risk/2/model.onnx").exists()


def test_the_same_bytes_are_the_same_revision(tmp_path):
    first = admitted(tmp_path)
    again, new = store.admit(tmp_path, "risk", CONTENTS)
    assert (again.revision, again.digest, new) == (first.revision, first.digest, False)
    assert store.numbers(tmp_path, "risk") == [1]


def test_the_digest_says_what_answers_whatever_its_number():
    assert Manifest.of("risk", CONTENTS).digest == Manifest.of("risk", dict(reversed(CONTENTS.items()))).digest
    for path in CONTENTS:
        assert Manifest.of("risk", {**CONTENTS, path: b"x"}).digest != Manifest.of("risk", CONTENTS).digest


def test_an_untouched_revision_is_verified(tmp_path):
    store.verify(store.load(tmp_path, admitted(tmp_path).revision))


@pytest.mark.parametrize(
    "path", ["repository/risk/1/model.onnx", "repository/risk/config.pbtxt", "evidence/golden.json"]
)
def test_one_changed_byte_anywhere_is_refused(tmp_path, path):
    stored = admitted(tmp_path)
    file = stored.folder / path
    file.chmod(0o644)
    data = bytearray(file.read_bytes())
    data[0] ^= 1
    file.write_bytes(data)
    with pytest.raises(Altered, match=f"{path} was changed"):
        store.verify(stored)


def test_a_missing_file_and_an_added_one_are_refused(tmp_path):
    stored = admitted(tmp_path)
    (stored.folder / "evidence/golden.json").unlink()
    (stored.repository / "risk/triton_python_backend_stub").write_bytes(b"#!")
    with pytest.raises(Altered, match=r"golden.json is missing; .*stub was added"):
        store.verify(stored)


def test_an_added_link_to_a_folder_is_refused(tmp_path):
    stored = admitted(tmp_path)
    (stored.repository / "risk/2").symlink_to("/tmp")
    with pytest.raises(Altered, match="risk/2 was added"):
        store.verify(stored)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"model": "risk", "files": {}, "digest": "sha256:0"}'])
def test_a_manifest_that_cannot_be_trusted_is_refused(tmp_path, text):
    stored = admitted(tmp_path)
    manifest = stored.folder / "manifest.json"
    manifest.chmod(0o644)
    manifest.write_text(text)
    with pytest.raises(Altered, match="cannot be trusted"):
        store.load(tmp_path, stored.revision)


def test_an_unknown_revision_is_refused_naming_the_known_ones(tmp_path):
    admitted(tmp_path)
    with pytest.raises(Refused, match=r"risk@7 is not in the catalog; revisions of 'risk': 1"):
        store.load(tmp_path, Revision("risk", 7))


def test_two_at_once_get_two_numbers_and_nothing_is_lost(tmp_path):
    threads = [
        threading.Thread(target=admitted, args=(tmp_path,), kwargs={"requirements.txt": bytes([i])}) for i in range(8)
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert store.numbers(tmp_path, "risk") == list(range(1, 9))
    for number in range(1, 9):
        store.verify(store.load(tmp_path, Revision("risk", number)))


def test_a_full_disk_leaves_nothing_behind(tmp_path, monkeypatch):
    def full(_fd):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(Refused, match="No space left"):
        admitted(tmp_path)
    assert [p.name for p in (tmp_path / "risk").iterdir()] == [".lock"]


def test_the_same_bytes_again_put_an_altered_revision_right(tmp_path):
    stored = admitted(tmp_path)
    (stored.folder / "repository/risk/1/extra.py").write_text("import os")
    again, new = store.admit(tmp_path, "risk", CONTENTS)
    assert (again.revision, again.digest, new) == (stored.revision, stored.digest, False)
    store.verify(store.load(tmp_path, stored.revision))
    (kept,) = (tmp_path / "risk").glob(".altered-1-*")
    assert (kept / "1/repository/risk/1/extra.py").exists()


def test_a_revision_without_a_manifest_that_can_be_trusted_keeps_its_number(tmp_path):
    stored = admitted(tmp_path)
    manifest = stored.folder / store.MANIFEST
    manifest.chmod(0o644)
    manifest.write_text("{")
    again, new = store.admit(tmp_path, "risk", CONTENTS)
    assert (again.revision.number, new) == (2, True)


def test_what_a_killed_writer_left_is_removed(tmp_path):
    admitted(tmp_path)
    (tmp_path / "risk/.new-abc").mkdir()
    (tmp_path / "risk/.new-abc/half").write_text("half")
    admitted(tmp_path)
    assert sorted(p.name for p in (tmp_path / "risk").iterdir()) == [".lock", "1"]
