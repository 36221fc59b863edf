"""The store: `<root>/<model>/<number>/` holds one revision for ever.

A revision is written aside and renamed into place as a whole, read-only. `verify` reads every byte again and
refuses a revision in which one was changed, removed or added: a file that Triton would find in the repository
but that nobody proved is as bad as a changed one (Triton runs executables it finds there).
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from taxiway.catalog.manifest import Manifest, physical
from taxiway.core.contract import Contract
from taxiway.core.digest import PREFIX
from taxiway.core.errors import Altered, Refused
from taxiway.core.revision import Revision
from taxiway.core.sample import Golden

MANIFEST = "manifest.json"
_ASIDE = ".new-"


@dataclass(frozen=True, slots=True)
class Stored:
    """A revision in the store."""

    revision: Revision
    manifest: Manifest
    folder: Path

    @property
    def digest(self) -> str:
        return self.manifest.digest

    @property
    def repository(self) -> Path:
        """The Triton model repository of this revision alone."""
        return self.folder / "repository"

    def golden(self) -> list[Golden]:
        return [Golden.from_json(g) for g in self.evidence("golden")]

    def contract(self) -> Contract:
        return Contract.from_json(self.evidence("contract"))

    def evidence(self, name: str) -> Any:
        """The parsed `evidence/<name>.json`."""
        return json.loads((self.folder / "evidence" / f"{name}.json").read_text())


def admit(root: Path, model: str, contents: Mapping[str, bytes]) -> tuple[Stored, bool]:
    """Store `contents` (logical path -> bytes) as the next revision of `model`.

    Returns the stored revision and whether it is new: the same bytes are the same revision. One whose files were
    altered since is put right, as these are the bytes that it is known by; the altered ones are kept beside it.
    """
    manifest = Manifest.of(model, contents)
    with _locked(root / model):
        _sweep(root / model)
        for number in numbers(root, model):
            known = _known(root, Revision(model, number))
            if known is None or known.digest != manifest.digest:
                continue
            if _is_altered(known):
                known.folder.rename(_beside(known.folder))
                _write(known.folder, manifest, number, contents)
            return known, False
        number = max(numbers(root, model), default=0) + 1
        folder = root / model / str(number)
        _write(folder, manifest, number, contents)
        return Stored(Revision(model, number), manifest, folder), True


def load(root: Path, revision: Revision) -> Stored:
    """The stored revision, its files not yet verified; raises `Refused` when there is none."""
    folder = root / revision.model / str(revision.number)
    try:
        manifest = Manifest.from_json(json.loads((folder / MANIFEST).read_text()))
    except FileNotFoundError:
        known = ", ".join(map(str, numbers(root, revision.model))) or "none"
        raise Refused(f"{revision} is not in the catalog; revisions of {revision.model!r}: {known}") from None
    except (ValueError, KeyError, TypeError, Refused) as error:
        raise Altered(f"{revision}: {folder / MANIFEST} cannot be trusted: {error}") from None
    return Stored(revision, manifest, folder)


def verify(stored: Stored) -> None:
    """Read every byte again; raises `Altered` naming each file that differs from the manifest."""
    expected = {physical(p, stored.revision.number): f for p, f in stored.manifest.files.items()}
    found = set(_files(stored.folder)) - {MANIFEST}
    wrong = [f"{p} is missing" for p in sorted(expected.keys() - found)]
    wrong += [f"{p} was added" for p in sorted(found - expected.keys())]
    for path in sorted(expected.keys() & found):
        if _sha256(stored.folder / path) != expected[path].digest:
            wrong.append(f"{path} was changed")
    if wrong:
        raise Altered(
            f"{stored.revision} ({stored.digest}) is not what was proved: {'; '.join(wrong)}",
            f"ship the notebook again, or restore {stored.folder} from a copy",
        )


def timeout_ms(root: Path, revision: Revision) -> int | None:
    """How long a request to a stored revision may take; None where that cannot be read."""
    try:
        value = json.loads((root / revision.model / str(revision.number) / "service.json").read_text())["timeout_ms"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return value if type(value) is int and value > 0 else None


def numbers(root: Path, model: str) -> list[int]:
    """The revision numbers of `model`, ascending."""
    folder = root / model
    if not folder.is_dir():
        return []
    return sorted(int(p.name) for p in folder.iterdir() if p.name.isdigit())


def models(root: Path) -> list[str]:
    """The models that have a revision, by name."""
    return sorted(p.name for p in root.iterdir() if numbers(root, p.name)) if root.is_dir() else []


def _known(root: Path, revision: Revision) -> Stored | None:
    """A revision, or None when not even its manifest can be trusted: then its number is taken and no more."""
    with contextlib.suppress(Altered):
        return load(root, revision)
    return None


def _is_altered(stored: Stored) -> bool:
    try:
        verify(stored)
    except Altered:
        return True
    return False


def _beside(folder: Path) -> Path:
    return Path(tempfile.mkdtemp(prefix=f".altered-{folder.name}-", dir=folder.parent)) / folder.name


def _sweep(folder: Path) -> None:
    """Remove what writers left that did not live to finish; only they, not their files, are ever waited for."""
    for left in folder.glob(f"{_ASIDE}*"):
        shutil.rmtree(left, ignore_errors=True)


def _write(folder: Path, manifest: Manifest, number: int, contents: Mapping[str, bytes]) -> None:
    aside = Path(tempfile.mkdtemp(prefix=_ASIDE, dir=folder.parent))
    try:
        for path, data in contents.items():
            _write_file(aside / physical(path, number), data)
        _write_file(aside / MANIFEST, json.dumps(manifest.to_json(), indent=2, sort_keys=True).encode())
        aside.chmod(0o755)
        aside.rename(folder)
    except BaseException as error:
        shutil.rmtree(aside, ignore_errors=True)
        if isinstance(error, OSError):
            raise Refused(f"revision {number} could not be stored in {folder}: {error.strerror}") from error
        raise


def _write_file(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as f:
        f.write(data)
        f.flush()
        os.fsync(f.fileno())
    path.chmod(0o444)


def _files(folder: Path) -> Iterator[str]:
    for base, folders, names in os.walk(folder):
        # A link to a folder is listed as a file: it is none of the proved ones.
        links = [d for d in folders if (Path(base) / d).is_symlink()]
        yield from (str((Path(base) / n).relative_to(folder)) for n in names + links)


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as f:
            return PREFIX + hashlib.file_digest(f, "sha256").hexdigest()
    except OSError:
        return "unreadable"


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        yield
