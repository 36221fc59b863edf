"""The bytes of a revision, put together from a build (pure but for reading the build's own folder)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from taxiway.app.build.builder import Built
from taxiway.app.build.names import STEP_FILES
from taxiway.app.config.model import Serving
from taxiway.catalog.manifest import NUMBER
from taxiway.catalog.pbtxt import Scheduling, check, config_pbtxt, parse
from taxiway.core import digest
from taxiway.core.errors import Refused

_EVIDENCE: Final = ("contract", "golden", "parity", "profile", "lineage", "replay", "report")
_DEFAULTS: Final = Serving()


def contents(model: str, built: Built, serving: Serving = _DEFAULTS) -> Mapping[str, bytes]:
    """Logical path -> bytes; raises `Refused` when the written configuration would not mean the contract."""
    scheduling = Scheduling(serving.instances, serving.queue_delay_us)
    config = config_pbtxt(model, built.contract, scalars=built.scalars, scheduling=scheduling, step=built.step)
    wrong = check(parse(config, f"{model}/config.pbtxt"), built.contract)
    if wrong:
        raise Refused(*(f"{model}/config.pbtxt: {w}" for w in wrong))
    files = {
        f"repository/{model}/config.pbtxt": config.encode(),
        f"repository/{model}/{NUMBER}/model.onnx": _read(built, "model.onnx"),
        "requirements.txt": _read(built, "requirements.txt"),
        "evidence/canary.json": digest.canonical(built.golden[0].to_json()),
        "service.json": digest.canonical({"timeout_ms": serving.timeout_ms}),
    }
    if built.step:
        folder = f"repository/{model}/{NUMBER}/step"
        files |= {f"{folder}/{name.removeprefix('step-')}": _read(built, name) for name in STEP_FILES}
    return files | {f"evidence/{name}.json": _read(built, f"{name}.json") for name in _EVIDENCE}


def _read(built: Built, name: str) -> bytes:
    """The bytes that were proved, or none."""
    path = built.folder / name
    try:
        data = path.read_bytes()
    except OSError as error:
        raise Refused(f"{path} cannot be read: {error.strerror}; ship again") from error
    if digest.of_bytes(data) != built.sums.get(name):
        raise Refused(f"{path} is not what was built: it was changed or replaced meanwhile; ship again")
    return data
