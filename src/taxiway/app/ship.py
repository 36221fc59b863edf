"""Ship a notebook: build and prove it, store it as a revision, start it, prove it again where it will answer.

Each step can tell from what exists whether it was done already, so a run that was interrupted anywhere is simply
run again: the build is kept under the digest of its inputs, the same bytes are the same revision, a running
engine is not started twice.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from taxiway.app import replay
from taxiway.app.assemble import contents
from taxiway.app.build import builder
from taxiway.app.build.interpreter import Interpreter
from taxiway.app.build.options import Options
from taxiway.app.config.model import Config
from taxiway.app.engines import install_step
from taxiway.app.traffic import set_split, wait_ready, wake
from taxiway.app.validate import machine
from taxiway.app.wire import Platform
from taxiway.catalog import store
from taxiway.catalog.manifest import physical
from taxiway.catalog.store import Stored
from taxiway.core import split as splits
from taxiway.core.contract import Contract
from taxiway.core.digest import short
from taxiway.core.errors import Refused
from taxiway.core.revision import Revision, model_name
from taxiway.core.sample import Golden
from taxiway.engine.client import EngineError, infer
from taxiway.gates import validate
from taxiway.gates.mistake import Target
from taxiway.gateway.publish import published_revisions
from taxiway.notebook import read
from taxiway.release.entries import ADMIT, RETIRE
from taxiway.runtime.supervisord import is_up, until

STEPS = (
    (
        "build",
        "run the notebook in a fresh process, export the model, prove that both answer alike, validate the files",
    ),
    ("admit", "store it as an immutable revision"),
    ("start", "start an engine for it, next to those that answer"),
    ("prove", "replay the golden samples, and all rows kept for it, straight to the engine"),
    ("reach", "replay them again through the gateway, at 0 % of the traffic"),
    ("traffic", "give it all traffic when it is the first revision, else hold it at 0 %"),
)

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Shipped:
    """The revision, whether its bytes are new, its parity figures, and whether traffic goes to it."""

    revision: Revision
    digest: str
    new: bool
    parity: dict[str, Any]
    report: list[dict[str, Any]]
    answering: bool
    samples: int


def name_for(notebook: Path, given: str | None) -> str:
    """The model's name: as given, else the file's name, else (for `notebook.ipynb`) its folder's."""
    if given is not None:
        return model_name(given)
    stem = notebook.stem.lower()
    if re.match(r"(notebook|untitled)", stem):
        stem = notebook.absolute().parent.name.lower()
    return model_name(re.sub(r"[^a-z0-9_-]+", "-", stem).strip("-_") or "model")


def options_of(config: Config) -> Options:
    """What of a configuration decides the build."""
    return Options(
        opset=config.export.opset,
        ml_opset=config.export.ml_opset,
        python_step=config.export.python_step,
        made_rows=config.parity.rows,
        max_batch=config.serving.max_batch,
        atol=config.parity.atol,
        rtol=config.parity.rtol,
        contract=config.contract,
    )


@dataclass(frozen=True, slots=True)
class Planned:
    """One step: what it does, and a remark about this very run (empty when there is nothing to say)."""

    name: str
    does: str
    remark: str = ""


def plan(
    platform: Platform,
    notebook: Path,
    *,
    name: str | None,
    model: str | None,
    python: Interpreter | None = None,
    config: Config | None = None,
) -> tuple[str, list[Planned]]:
    """The model's name and what `ship` would do; touches nothing. Raises `Refused` as reading the notebook does."""
    named = name_for(notebook, name)
    cells = len(read.read(notebook).cells)
    options = options_of(config or Config())
    built = builder.is_built(notebook, model=model, into=platform.places.work, python=python, options=options)
    running = is_up(platform.supervisor)
    try:
        first = named not in platform.state().models
    except Refused:  # no platform yet
        first = True
    remarks = {
        "build": "kept from before: notebook, data and libraries are the same" if built else f"{cells} cells",
        "start": "" if running else "the platform is not running: taxiway up",
        "traffic": "this would be the first revision" if first else f"{named} has revisions: held at 0 %",
    }
    return named, [Planned(step, does, remarks.get(step, "")) for step, does in STEPS]


def ship(
    platform: Platform,
    notebook: Path,
    *,
    name: str | None,
    model: str | None,
    progress: Progress,
    python: Interpreter | None = None,
    config: Config | None = None,
) -> Shipped:
    """Bring `notebook` to a proved revision behind the gateway; raises `Refused` with the reasons."""
    named = name_for(notebook, name)
    if not is_up(platform.supervisor):
        raise Refused(
            f"the platform in {platform.places.state} is not running; start it: taxiway up", code="not-running"
        )
    steps = _Steps(progress)
    steps.begin("build")
    config = config or Config()
    options = options_of(config)
    with _placed(config):
        built = builder.build(
            notebook, model=model, into=platform.places.work, progress=steps.say, python=python, options=options
        )
    files = contents(named, built, config.serving)
    _validate(named, files, built.contract, config, steps)
    install_step(built, python.path if python else None, steps.say)
    steps.begin("admit")
    stored, new = store.admit(platform.places.catalog, named, files)
    _admit(platform, stored)
    steps.say(f"{stored.revision} {short(stored.digest)}{'' if new else ' (stored already: nothing has changed)'}")
    try:
        samples = _prove(platform, stored, steps)
    except Refused:
        _put_away(platform, stored.revision)
        raise
    steps.begin("traffic")
    _give_first_traffic(platform, stored.revision, steps.say)
    state = platform.state().model(named)
    return Shipped(
        revision=stored.revision,
        digest=stored.digest,
        new=new,
        parity=stored.evidence("parity"),
        report=stored.evidence("report"),
        answering=stored.revision.number in state.split,
        samples=samples,
    )


@contextlib.contextmanager
def _placed(config: Config) -> Iterator[None]:
    """What the rows contradict is told with its place in taxiway.yaml, which the build knows nothing of."""
    try:
        yield
    except Refused as error:
        if error.code != "contract":
            raise
        raise Refused(*map(config.placed, error.reasons), code=error.code) from error


def _validate(model: str, files: Mapping[str, bytes], contract: Contract, config: Config, steps: _Steps) -> None:
    """Gate 2 on what is about to be stored; raises `Refused` with every error."""
    repository = {
        physical(path, 1).removeprefix("repository/"): data
        for path, data in files.items()
        if path.startswith("repository/")
    }
    found = validate.validate(
        repository,
        target=Target(),
        machine=machine(),
        contract=contract,
        timeout_ms=config.serving.timeout_ms,
        own=True,
    )
    for mistake in found:
        if mistake.severity == "warning":
            steps.say(str(mistake))
    errors = [str(mistake) for mistake in found if mistake.severity == "error"]
    if errors:
        instances = config.serving.instances
        fewer = f"serving.instances: {instances} copies of the model are asked for here; fewer need less memory"
        hint = [config.placed(fewer)] if instances > 1 else []
        raise Refused(f"{model} does not pass the validation of its files", *errors, *hint, code="gate-2")


class _Steps:
    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._names = [name for name, _ in STEPS]

    def begin(self, name: str) -> None:
        """Say that a step begins."""
        self._progress(f"[{self._names.index(name) + 1}/{len(STEPS)}] {dict(STEPS)[name]}")

    def say(self, line: str) -> None:
        """Say something about the step that goes on."""
        self._progress(f"      {line}")


def _admit(platform: Platform, stored: Stored) -> None:
    revision = stored.revision
    store.verify(stored)
    known = platform.state().models.get(revision.model)
    if known is None or known.revisions.get(revision.number) != stored.digest:
        detail = {"number": revision.number, "digest": stored.digest}
        platform.record(ADMIT, revision.model, detail, "shipped")
    else:
        wake(platform, revision)


def _prove(platform: Platform, stored: Stored, steps: _Steps) -> int:
    revision = stored.revision
    golden = stored.golden()
    steps.begin("start")
    wait_ready(platform, revision, steps.say)
    steps.begin("prove")
    status = platform.statuses()[revision]
    assert status.ports is not None
    engine = f"127.0.0.1:{status.ports.http}"
    replay_golden(golden, engine, revision, {}, "the engine")
    figures = replay.replay(stored, engine)
    replay.keep(platform.places.proofs, stored, figures)
    steps.say(f"{figures['rows']} rows in {figures['requests']} requests, largest error {figures['max_abs_error']:.2g}")
    steps.begin("reach")
    routed = (revision.model, revision.number)
    if not until(lambda: routed in published_revisions(platform.places.gateway), 30):
        raise Refused(f"{revision} is ready, but the gateway has no route to it after 30 s; see: taxiway status")
    headers = {
        "authorization": f"Bearer {platform.operator_token(now=int(time.time()))}",
        "x-model-version": str(revision.number),
    }
    replay_golden(golden, platform.address, revision, headers, "the gateway")
    return len(golden)


def replay_golden(golden: list[Golden], address: str, revision: Revision, headers: dict[str, str], where: str) -> None:
    """Send every golden sample to `address`; raises `Refused` with the first differences."""
    wrong: list[str] = []
    for sample in golden:
        try:
            answer = infer(address, revision.model, sample.inputs, timeout_s=10, headers=headers)
            wrong += sample.differences(answer)
        except EngineError as error:
            wrong.append(f"{sample.name}: {error}")
    if wrong:
        more = [f"… and {len(wrong) - 5} more"] if len(wrong) > 5 else []
        raise Refused(f"{revision}: {where} does not give the known answers", *wrong[:5], *more, code="golden-differ")


def _put_away(platform: Platform, revision: Revision) -> None:
    """A new revision that failed is a non-event: its engine stops, traffic never knew of it."""
    state = platform.state().model(revision.model)
    if revision.number not in state.split:
        platform.record(RETIRE, revision.model, {"number": revision.number}, "failed its proof")


def _give_first_traffic(platform: Platform, revision: Revision, progress: Progress) -> None:
    state = platform.state().model(revision.model)
    if not state.split:
        set_split(platform, revision.model, splits.whole(revision.number), "first revision", progress)
