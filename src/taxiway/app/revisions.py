"""What a revision is, and how two of them differ: the same facts for a person and a script."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from taxiway.app import replay
from taxiway.app.wire import Platform
from taxiway.catalog import store
from taxiway.catalog.store import Stored
from taxiway.core.errors import Altered, Refused
from taxiway.core.revision import Revision
from taxiway.engine import steps

_MODEL: Final = ("class", "model", "score", "notebook", "notebook_digest", "git_commit", "data_digest", "python")


def show(platform: Platform, revision: Revision) -> dict[str, Any]:
    """Everything that is known about `revision`; raises `Refused` when there is none."""
    stored = store.load(platform.places.catalog, revision)
    return {
        "revision": str(revision),
        "digest": stored.digest,
        "unaltered": _unaltered(stored),
        "traffic_percent": _traffic(platform, revision),
        "lineage": stored.evidence("lineage"),
        "contract": stored.evidence("contract"),
        "parity": stored.evidence("parity"),
        "engine_parity": replay.kept(platform.places.proofs, stored),
        "golden_samples": len(stored.golden()),
        "report": stored.evidence("report"),
        "requirements": _requirements(stored),
        "python_step": _step(stored),
        "files": {path: entry.size for path, entry in stored.manifest.files.items()},
    }


def difference(platform: Platform, before: Revision, after: Revision) -> dict[str, Any]:
    """What differs between two revisions, by subject; a subject in which nothing differs is empty."""
    one, two = (store.load(platform.places.catalog, r) for r in (before, after))
    return {
        "before": str(before),
        "after": str(after),
        "model": _changed(_lineage(one), _lineage(two)),
        "features": _changed(_features(one), _features(two)),
        "contract": _changed(_fields(one, _rules), _fields(two, _rules)),
        "dependencies": _changed(_dependencies(one), _dependencies(two)),
        "metrics": _changed(_metrics(one), _metrics(two)),
        "configuration": _configuration(one, two),
        "files": _changed(_digests(one), _digests(two)),
    }


def _unaltered(stored: Stored) -> bool:
    try:
        store.verify(stored)
    except Altered:
        return False
    return True


def _traffic(platform: Platform, revision: Revision) -> float | None:
    try:
        return platform.state().model(revision.model).split.get(revision.number, 0) / 100
    except Refused:  # a catalog without its platform
        return None


def _changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    keys = [*before, *(k for k in after if k not in before)]
    return {k: {"before": before.get(k), "after": after.get(k)} for k in keys if before.get(k) != after.get(k)}


def _lineage(stored: Stored) -> dict[str, Any]:
    lineage = stored.evidence("lineage")
    return {key: lineage.get(key) for key in _MODEL}


def _features(stored: Stored) -> dict[str, Any]:
    """Tensor, or tensor and column -> its type and dims."""
    contract, found = stored.evidence("contract"), {}
    for kind in ("inputs", "outputs"):
        for field in contract[kind]:
            name = f"{kind[:-1]} {field['name']}"
            found[name] = f"{field['dtype']} {field['dims']}"
            found |= {f"{name}.{column}": field["dtype"] for column in field["columns"]}
    return found


def _fields(stored: Stored, of: Any) -> dict[str, Any]:
    contract = stored.evidence("contract")
    found = {f"{kind[:-1]} {f['name']}": of(f) for kind in ("inputs", "outputs") for f in contract[kind]}
    return found | {"max_batch": contract["max_batch"]}


def _rules(field: Mapping[str, Any]) -> dict[str, Any]:
    """What is enforced of a tensor and its columns, without what was merely seen."""
    seen = ("name", "dtype", "dims", "columns", "observed", "table")
    table = [(c.get("name", "every value"), c) for c in field.get("table", ())]
    columns = {name: {k: v for k, v in c.items() if k not in ("name", "observed")} for name, c in table}
    return {k: v for k, v in field.items() if k not in seen} | {n: rules for n, rules in columns.items() if rules}


def _requirements(stored: Stored) -> dict[str, str]:
    return _pins(stored.folder / "requirements.txt")


def _step(stored: Stored) -> dict[str, Any] | None:
    """The Python series and the libraries of the Python step; None when there is none."""
    wanted = steps.need(stored.repository / stored.revision.model / str(stored.revision.number))
    if wanted is None:
        return None
    return {"python": wanted.series, "requirements": dict(wanted.pins)}


def _dependencies(stored: Stored) -> dict[str, str]:
    step = _step(stored)
    if step is None:
        return _requirements(stored)
    pins = {f"Python step: {name}": version for name, version in step["requirements"].items()}
    return {**_requirements(stored), "Python step": f"Python {step['python']}", **pins}


def _pins(path: Path) -> dict[str, str]:
    return dict(line.split("==", 1) for line in path.read_text().split())


def _metrics(stored: Stored) -> dict[str, Any]:
    parity = stored.evidence("parity")
    figures = {key: parity[key] for key in ("rows", "max_abs_error", "max_rel_error", "label_flips")}
    set_by_a_person = {name: parity["tolerance"][name] for name in parity["tolerance"].get("overridden", ())}
    return {"score": stored.evidence("lineage").get("score"), **figures, **set_by_a_person}


def _configuration(before: Stored, after: Stored) -> list[str]:
    """The unified diff of the files that a person reads: config.pbtxt and service.json."""
    lines: list[str] = []
    for name in ("config.pbtxt", "service.json"):
        old, new = (_text(stored, name) for stored in (before, after))
        lines += difflib.unified_diff(
            old, new, f"{before.revision}/{name}", f"{after.revision}/{name}", lineterm="", n=1
        )
    return lines


def _text(stored: Stored, name: str) -> list[str]:
    folder = stored.repository / stored.revision.model if name == "config.pbtxt" else stored.folder
    try:
        return (folder / name).read_text().splitlines()
    except OSError:
        return []


def _digests(stored: Stored) -> dict[str, str]:
    return {path: entry.digest for path, entry in stored.manifest.files.items() if path.startswith("repository/")}
