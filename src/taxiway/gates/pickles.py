"""Files that are programs: pickles in every dress, scanned and never loaded."""

from __future__ import annotations

import io
import pickletools
import zipfile
from collections.abc import Iterator
from typing import Final

from picklescan.scanner import SafetyLevel, scan_pickle_bytes

from taxiway.gates.mistake import Mistake

_ENDINGS: Final = (".pkl", ".pickle", ".joblib", ".dill", ".pt", ".pth", ".bin", ".ckpt", ".npy", ".npz", ".model")
_PICKLED: Final = (".pkl", ".pickle", ".joblib", ".dill")
_LARGEST: Final = 64 << 20
_MEMBERS: Final = 1000


def scan(path: str, data: bytes) -> list[Mistake]:
    """What a file in pickle form would do when loaded; nothing for any other file. Never raises, never loads."""
    if not path.endswith(_ENDINGS):
        return []
    found: list[Mistake] = []
    for name, part in _pickles(path, data):
        found += _one(path, name, part)
    return found


def _pickles(path: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    if zipfile.is_zipfile(io.BytesIO(data)):
        yield from _members(data)
    elif path.endswith(".npy"):
        # A header, then a pickle when the array holds objects.
        if b"'|O'" in data[:256] or b"'O'" in data[:256]:
            begin = data.find(b"\n", 10)
            yield "", data[begin + 1 : begin + 1 + _LARGEST]
    elif path.endswith(_PICKLED) or data[:1] == b"\x80":
        yield "", data[:_LARGEST]


def _members(data: bytes) -> Iterator[tuple[str, bytes]]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for member in archive.infolist()[:_MEMBERS]:
                if member.filename.endswith((".pkl", ".pickle", ".npy")):
                    with archive.open(member) as file:
                        part = file.read(_LARGEST)
                    if member.filename.endswith(".npy"):
                        yield from ((member.filename, p) for _, p in _pickles(member.filename, part))
                    else:
                        yield member.filename, part
    except (zipfile.BadZipFile, OSError, NotImplementedError, RuntimeError, ValueError):
        yield "(an archive that cannot be read)", b"\x80"


def _ends(data: bytes) -> bool:
    """Whether the pickle's instructions lead to its end (read, not followed)."""
    try:
        for _ in pickletools.genops(data):
            pass
    except Exception:  # garbage can make any error
        return False
    return True


def _one(path: str, name: str, data: bytes) -> Iterator[Mistake]:
    inside = f" in {name}" if name else ""
    try:
        result = scan_pickle_bytes(io.BytesIO(data), path)
        bad = sorted({f"{g.module}.{g.name}" for g in result.globals if g.safety == SafetyLevel.Dangerous})
        odd = sorted({f"{g.module}.{g.name}" for g in result.globals if g.safety == SafetyLevel.Suspicious})
        broken = bool(result.scan_err) or not _ends(data)
    except Exception:  # whatever garbage makes of the scanner
        bad, odd, broken = [], [], True
    if bad:
        message = f"loading it would run {', '.join(bad[:5])}{inside}: this is no model; do not load it"
        yield Mistake(path, 0, 0, "error", message)
    elif broken:
        yield Mistake(
            path, 0, 0, "error", f"the pickle{inside} cannot be read to its end, so nobody can tell what it does"
        )
    else:
        uses = f" (it uses {', '.join(odd[:5])})" if odd else ""
        message = f"a pickle{inside} is a program; it is never loaded here, ship a model in a format without code{uses}"
        yield Mistake(path, 0, 0, "warning", message)
