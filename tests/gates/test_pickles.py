"""Pickles in every dress: what would run is an error, any other pickle a warning, and nothing is ever loaded."""

import bz2
import gzip
import io
import os
import pickle
import pickletools
import zipfile
import zlib

import joblib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from taxiway.gates import pickles
from tests.gates.repositories import GOOD, texts


class Evil:
    def __reduce__(self):
        return os.mkdir, ("loaded",)


class EvilShell:
    def __reduce__(self):
        return os.system, ("true",)


EVIL = pickle.dumps(EvilShell())
FITTED = LogisticRegression().fit([[0.0], [1.0]], [0, 1])


def zipped(method=zipfile.ZIP_STORED, **members):
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name.replace("__", "/"), data)
    return target.getvalue()


def dumped(value, **more):
    target = io.BytesIO()
    joblib.dump(value, target, **more)
    return target.getvalue()


def saved(array):
    target = io.BytesIO()
    np.save(target, array, allow_pickle=True)
    return target.getvalue()


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("m.pkl", EVIL),
        ("M.PKL", EVIL),
        ("m.pkl", pickle.dumps(EvilShell(), protocol=0)),
        ("m.pkl", pickle.dumps([1]) + EVIL),
        ("m.pkl", EVIL[:-1]),
        ("m.pkl", EVIL + b"\xff rest"),
        ("m.joblib", zlib.compress(EVIL)),
        ("m.joblib", gzip.compress(EVIL)),
        ("m.joblib", bz2.compress(EVIL)),
        ("m.joblib", dumped({"a": np.arange(3.0), "b": EvilShell()})),
        ("m.pt", zipped(archive__data=EVIL, **{"archive__data.pkl": EVIL})),
        ("m.pt", zipped(**{"m__code__x.py": "", "m__constants.pkl": pickle.dumps(()), "m__data.pkl": EVIL})),
        ("m.pt", EVIL),
        ("m.bin", pickle.dumps(EvilShell(), protocol=0)),
        ("m.npy", saved(np.array([EvilShell()], dtype=object))),
        ("m.npy", saved(np.array([(1, EvilShell())], dtype=[("a", "i4"), ("b", "O")]))),
        ("m.npz", zipped(**{"a.npy": saved(np.array([EvilShell()], dtype=object))})),
        ("weights.dat", EVIL),
        ("model.onnx", EVIL),
    ],
    ids=range(19),
)
def test_what_would_run_is_an_error_in_every_dress(path, data):
    mistakes = pickles.scan(path, data)
    assert any(m.severity == "error" and "system" in m.message for m in mistakes), mistakes


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("m.pkl", pickle.dumps([1, 2])),
        ("m.pkl", pickle.dumps(FITTED)),
        ("m.joblib", dumped(FITTED)),
        ("m.joblib", dumped(FITTED, compress=3)),
        ("m.pt", zipped(**{"archive__data.pkl": pickle.dumps([1])})),
        ("m.pt", pickle.dumps(1) + pickle.dumps(2) + b"\xff\x00 raw numbers"),
    ],
    ids=["list", "model", "joblib", "compressed", "torch", "old torch"],
)
def test_a_pickle_without_harm_is_a_warning(path, data):
    (mistake,) = pickles.scan(path, data)
    assert mistake.severity == "warning"
    assert "is a program" in mistake.message


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("m.npy", saved(np.arange(3))),
        ("m.npy", saved(np.array(["O", "'|O'"]))),
        ("m.npz", zipped(**{"a.npy": saved(np.arange(3))})),
        ("m.bin", b"\x00\x01weights"),
        ("model.onnx", GOOD["m/1/model.onnx"]),
        ("notes.txt", b"cos\nsystem\n"),
        ("m.pt", zipped(**{"m__code__x.py": "", "m__constants.pkl": pickle.dumps(()), "m__data.pkl": pickle.dumps(1)})),
        ("m.keras", zipped(**{"config.json": '{"class_name": "Dense"}'})),
    ],
    ids=["numbers", "texts", "archive of numbers", "raw", "onnx", "text", "torchscript", "keras"],
)  # fmt: skip
def test_what_is_no_pickle_is_not_mentioned(path, data):
    assert pickles.scan(path, data) == []


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("m.pkl", pickle.dumps([1, 2])[:-3]),
        ("m.pkl", b"\x80\x04garbage"),
        ("m.pkl", b""),
        ("m.pt", zipped(**{"a__data.pkl": pickle.dumps([1] * 99)})[:-60] + b"PK\x05\x06" + b"\0" * 18),
        ("m.joblib", zlib.compress(b"x" * 999)[:40]),
    ],
    ids=["cut", "garbage", "empty", "archive cut", "compressed cut"],
)
def test_what_cannot_be_read_is_not_trusted(path, data):
    mistakes = pickles.scan(path, data)
    assert all(m.severity == "error" and "nobody can tell" in m.message for m in mistakes)
    assert mistakes or path == "m.pt"


def test_code_inside_keras_layers_is_told():
    for path, data in (
        ("m.keras", zipped(**{"config.json": '{"class_name": "Lambda"}'})),
        ("m.h5", b"\x89HDF\r\n\x1a\n {'class_name': 'Lambda'}"),
    ):
        (mistake,) = pickles.scan(path, data)
        assert "Lambda layer" in mistake.message


def test_nothing_is_loaded(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pickles.scan("m.pkl", pickle.dumps(Evil()))
    pickles.scan("m.joblib", dumped({"a": np.arange(3.0), "b": Evil()}))
    pickles.scan("m.npy", saved(np.array([Evil()], dtype=object)))
    assert list(tmp_path.iterdir()) == []


def test_archives_that_unpack_without_end_are_given_up(monkeypatch):
    monkeypatch.setattr(pickles, "_LARGEST", 1 << 16)
    monkeypatch.setattr(pickles, "_UNPACKED", 1 << 18)
    text = pickle.dumps("x" * (1 << 20))
    bomb = zipped(zipfile.ZIP_DEFLATED, **{f"a__{i}.pkl": text for i in range(9)})
    mistakes = pickles.scan("m.pt", bomb)
    assert any("were not looked at" in m.message for m in mistakes)
    assert len(mistakes) <= 5
    (mistake,) = pickles.scan("m.joblib", zlib.compress(text))
    assert "cannot be read to its end" in mistake.message


def test_archives_of_very_many_members_and_pickles_of_very_many_instructions_are_given_up(monkeypatch):
    monkeypatch.setattr(pickles, "_MEMBERS", 3)
    monkeypatch.setattr(pickles, "_INSTRUCTIONS", 100)
    many = zipped(**{f"a__{i}.txt": "" for i in range(4)}, **{"a__x.pkl": EVIL})
    assert "of 5 members in it only 3 were looked at" in pickles.scan("m.pt", many)[0].message
    (mistake,) = pickles.scan("m.pkl", b"\x80\x02" + b"N0" * 200 + b"N.")
    assert "cannot be read to its end" in mistake.message


def test_a_pickle_in_a_repository_is_found_wherever_it_lies():
    assert any(
        m.startswith("m/1/extra.pkl: error: loading it would run") for m in texts(GOOD | {"m/1/extra.pkl": EVIL})
    )


NAMES = ["m.pkl", "m.pt", "m.npy", "m.npz", "m.joblib", "m.h5", "m.keras", "m", "m.onnx"]


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(NAMES), st.binary(max_size=200))
def test_any_bytes_can_be_scanned(path, data):
    for begin in (b"", b"PK\x03\x04", b"\x80\x04", b"\x93NUMPY\x01\x00", b"x\x9c", b"\x1f\x8b\x08"):
        pickles.scan(path, begin + data)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(NAMES), st.data())
def test_any_spoilt_archive_can_be_scanned(path, data):
    whole = bytearray(zipped(zipfile.ZIP_DEFLATED, **{"a__data.pkl": EVIL, "a__b.npy": saved(np.arange(3))}))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    pickles.scan(path, bytes(whole))


def test_the_samples_here_are_what_they_should_be():
    assert any(op.name == "STACK_GLOBAL" for op, *_ in pickletools.genops(EVIL))
