"""Files that are programs: pickles in every dress, scanned and never loaded.

A pickle is a list of instructions, and some of them call whatever function they name. Here they are read, not followed:
what would run is an error, any other pickle a warning, since even a harmless one needs the exact libraries it was made
with. Dresses are plain files, several pickles in a row (PyTorch's old form), zip archives (PyTorch's new form, .npz),
arrays of objects, and joblib's, which may be compressed and has raw numbers between its instructions: these hide what
follows them, so that it is searched for names only. Everything is bounded: bytes unpacked, members, instructions.
"""

from __future__ import annotations

import bz2
import io
import lzma
import pickletools
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import Any, Final

from picklescan.scanner import SafetyLevel, scan_pickle_bytes

from taxiway.gates.mistake import Mistake, Severity

_PICKLED: Final = (".pkl", ".pickle", ".joblib", ".dill")
_MAYBE: Final = (".pt", ".pth", ".bin", ".ckpt", ".npz", ".model")
_KERAS: Final = (".h5", ".hdf5", ".keras")
_PROTOCOLS: Final = (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")
_LARGEST: Final = 64 << 20
_UNPACKED: Final = 256 << 20
_MEMBERS: Final = 1000
_INSTRUCTIONS: Final = 2_000_000
_INFLATE: Final[tuple[tuple[bytes, Callable[[], Any]], ...]] = (
    (b"\x1f\x8b", lambda: zlib.decompressobj(31)),
    (b"x", zlib.decompressobj),
    (b"BZh", bz2.BZ2Decompressor),
    (b"\xfd7zXZ", lzma.LZMADecompressor),
)
# How a function is named in a pickle: in two lines, or in two texts before the instruction that joins them.
_NAME: Final = rb"([A-Za-z_][\w.]{0,99})"
_MEMO: Final = rb"(?:\x94|q.|r....)?"
_NAMED: Final = (
    re.compile(rb"[ci]" + _NAME + rb"\n" + _NAME + rb"\n"),
    re.compile(rb"\x8c." + _NAME + _MEMO + rb"\x8c." + _NAME + _MEMO + rb"\x93", re.S),
)

Part = tuple[str, bytes]


def scan(path: str, data: bytes) -> list[Mistake]:
    """What a file in pickle form would do when loaded; nothing for any other file. Never raises, never loads."""
    low = path.lower()
    found: list[Mistake] = []
    if low.endswith(_KERAS) and b"Lambda" in _keras(data):
        message = "a Lambda layer holds Python code that loading would run; export the model to ONNX"
        found.append(Mistake(path, 0, 0, "warning", message))
    if zipfile.is_zipfile(io.BytesIO(data)) and low.endswith((*_PICKLED, *_MAYBE)):
        return found + _archive(path, data)
    for name, part in _plain(low, data):
        found += _one(path, name, part)
    return found


def is_torchscript(names: list[str]) -> bool:
    """Whether an archive's members are those of `torch.jit.save`."""
    return any("/code/" in n for n in names) and any(n.endswith("constants.pkl") for n in names)


def _plain(low: str, data: bytes) -> Iterator[Part]:
    if low.endswith(".npy"):
        yield from _array("", data)
    elif low.endswith(_PICKLED):
        yield "", _inflated(data)
    elif low.endswith(_MAYBE):
        if data[:1] == b"\x80" or _extent(data)[0]:
            yield "", data
    elif data[:2] in _PROTOCOLS and data[-1:] == b"." and _extent(data)[0]:
        yield "", data


def _array(name: str, data: bytes) -> Iterator[Part]:
    """The pickle behind the header of an array of objects."""
    if data[:6] != b"\x93NUMPY" or len(data) < 12:
        return
    wide = 2 if data[6] == 1 else 4
    begin = 8 + wide + int.from_bytes(data[8 : 8 + wide], "little")
    if re.search(rb"'[|<>=]?O\d*'", data[8 + wide : begin]):
        yield name, data[begin:]


def _inflated(data: bytes) -> bytes:
    """`data` as it was before joblib compressed it; itself when it is not, or not in a way that can be undone."""
    for begin, method in _INFLATE:
        if data.startswith(begin):
            try:
                return bytes(method().decompress(data, _LARGEST))
            except (zlib.error, OSError, lzma.LZMAError, EOFError, ValueError):
                return data
    return data


def _keras(data: bytes) -> bytes:
    """Where a Keras model names its layers."""
    if not data.startswith(b"PK"):
        return data
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive, archive.open("config.json") as file:
            return file.read(_LARGEST)
    except Exception:  # garbage makes errors of every kind
        return b""


def _archive(path: str, data: bytes) -> list[Mistake]:
    """What the pickles in a zip archive do. Those of a clean TorchScript model name its own classes only."""
    found: list[Mistake] = []
    left = _UNPACKED
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            script = is_torchscript([m.filename for m in members])
            if len(members) > _MEMBERS:
                found.append(_unseen(path, f"of {len(members)} members in it only {_MEMBERS} were looked at"))
            for member in members[:_MEMBERS]:
                name = member.filename
                if not name.lower().endswith((*_PICKLED, ".npy")):
                    continue
                if left <= 0:
                    found.append(_unseen(path, f"{name} and what follows it were not looked at"))
                    break
                with archive.open(member) as file:
                    part = file.read(min(_LARGEST, left))
                left -= len(part)
                for inside, pickled in _array(name, part) if name.lower().endswith(".npy") else ((name, part),):
                    found += _one(path, inside, pickled, script=script)
    except Exception:  # garbage makes errors of every kind
        found.append(_unseen(path, "the archive cannot be read"))
    return found


def _unseen(path: str, why: str) -> Mistake:
    return Mistake(path, 0, 0, "error", f"{why}, so nobody can tell what it does")


def _one(path: str, name: str, data: bytes, *, script: bool = False) -> list[Mistake]:
    inside = f" in {name}" if name else ""

    def say(severity: Severity, message: str) -> list[Mistake]:
        return [Mistake(path, 0, 0, severity, message)]

    whole, within = _extent(data)
    bad, odd = _names(data) if within else ([], [])
    joblib = any(n.endswith("NumpyArrayWrapper") for n in odd)
    if not whole:
        swept = _names(_swept(data))
        bad, odd = sorted({*bad, *swept[0]}), sorted({*odd, *swept[1]})
    if bad:
        return say("error", f"loading it would run {', '.join(bad[:5])}{inside}: this is no model; do not load it")
    if not whole and not joblib:
        return [_unseen(path, f"the pickle{inside} cannot be read to its end")]
    if script and all(n.startswith("__torch__.") for n in odd):
        return []
    part = "" if whole else "; joblib's raw numbers hide parts of it, which were searched for names only"
    uses = f" (it uses {', '.join(odd[:5])})" if odd else ""
    message = f"a pickle{inside} is a program; it is never loaded here, ship a model in a format without code"
    return say("warning", message + uses + part)


def _extent(data: bytes) -> tuple[int, bool]:
    """How many whole pickles `data` begins with, and whether their instructions are few enough to be looked at."""
    stream, whole, left = io.BytesIO(data), 0, _INSTRUCTIONS
    try:
        while stream.tell() < len(data):
            for _ in pickletools.genops(stream):
                left -= 1
                if not left:
                    return 0, False
            whole += 1
    except Exception:  # garbage makes errors of every kind
        return whole, True
    return whole, True


def _names(data: bytes) -> tuple[list[str], list[str]]:
    """Functions and classes that a pickle names: the dangerous ones, and those that nobody has judged."""
    try:
        result = scan_pickle_bytes(io.BytesIO(data), "")
    except Exception:  # whatever garbage makes of the scanner
        return [], []
    levels = {SafetyLevel.Dangerous: set[str](), SafetyLevel.Suspicious: set[str]()}
    for named in result.globals:
        levels.get(named.safety, set()).add(f"{named.module}.{named.name}")
    return sorted(levels[SafetyLevel.Dangerous]), sorted(levels[SafetyLevel.Suspicious])


def _swept(data: bytes) -> bytes:
    """A pickle of every name that `data` seems to call, wherever its instructions begin."""
    named = {match for pattern in _NAMED for match in pattern.findall(data)}
    return b"".join(b"c%s\n%s\n0" % pair for pair in sorted(named)) + b"N."
