"""Move a model's traffic, forwards or back.

The order is: the revision is ready, its clusters are in force, the route moves, the gateway acknowledges, the
journal records. A change that the gateway did not acknowledge did not happen.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from taxiway.app.desired import model_traffic
from taxiway.app.wire import Platform, split_detail
from taxiway.core import split as splits
from taxiway.core.errors import Refused
from taxiway.core.revision import Revision
from taxiway.core.split import Split
from taxiway.release.entries import ROLLBACK, SPLIT, WAKE
from taxiway.release.state import ModelState, State
from taxiway.runtime.supervisord import until

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Change:
    """What was done: the split before and after, and the seconds until the gateway had acknowledged."""

    model: str
    before: Split
    after: Split
    seconds: float


def change_json(change: Change) -> dict[str, Any]:
    """A change as `--json` and the control API give it; shares in percent."""
    return {
        "model": change.model,
        "before": {str(n): w / 100 for n, w in change.before.items()},
        "after": {str(n): w / 100 for n, w in change.after.items()},
        "switched_ms": round(change.seconds * 1000, 1),
    }


def set_split(
    platform: Platform, model: str, split: Split, reason: str, progress: Progress, *, patience_s: float = 120.0
) -> Change:
    """Give `model` the traffic `split`, starting engines that are not running first; raises `Refused`."""
    state = platform.state().model(model)
    unknown = sorted(set(split) - set(state.revisions))
    if unknown:
        known = ", ".join(map(str, sorted(state.revisions)))
        raise Refused(f"{model} has no revision {', '.join(map(str, unknown))}; it has {known}")
    for number in split:
        wait_ready(platform, Revision(model, number), progress, patience_s=patience_s)
    return _move(platform, model, lambda _: split, SPLIT, reason)


def roll_back(platform: Platform, model: str, to: int | None, reason: str, progress: Progress) -> Change:
    """Give all traffic to the revision that answered before, or to revision `to`; raises `Refused`."""
    state = platform.state().model(model)
    target = _target(state, to)
    wait_ready(platform, Revision(model, target), progress)
    # Decided again under the lock: two people pressing the button at once go back one step, not two.
    return _move(platform, model, lambda _: splits.whole(target), ROLLBACK, reason)


def wait_ready(platform: Platform, revision: Revision, progress: Progress, *, patience_s: float = 120.0) -> None:
    """Return when the engine of `revision` is ready; wakes it when it sleeps; raises `Refused` with the cause."""
    if _is_ready(platform, revision):
        return
    wake(platform, revision)
    progress(f"waiting for {revision} to be ready")
    reasons: list[str] = []

    def settled() -> bool:
        status = platform.statuses().get(revision)
        failed = status is not None and status.state == "failed"
        reasons[:] = [str(status.reason)] if failed and status else []
        return failed or _is_ready(platform, revision)

    if not until(settled, patience_s) or reasons:
        why = reasons[0] if reasons else f"it was not ready after {patience_s:g} s"
        raise Refused(f"{revision} cannot answer: {why}", "its traffic is unchanged", code="not-ready")


def wake(platform: Platform, revision: Revision) -> None:
    """Ask for the engine of `revision` to run."""
    state = platform.state()
    if revision.number not in state.model(revision.model).live():
        platform.record(WAKE, revision.model, {"number": revision.number}, "asked to answer")


def _target(state: ModelState, to: int | None) -> int:
    if to is not None:
        if to not in state.revisions:
            raise Refused(f"{state.model} has no revision {to}; it has {', '.join(map(str, sorted(state.revisions)))}")
        return to
    back = state.back()
    if back is None:
        raise Refused(
            f"{state.model}: no earlier revision has ever answered alone, so there is nothing to go back to",
            f"name one: taxiway rollback {state.model} --to N  (revisions: "
            f"{', '.join(map(str, sorted(state.revisions)))})",
        )
    return back


def _is_ready(platform: Platform, revision: Revision) -> bool:
    status = platform.statuses().get(revision)
    live = revision.number in platform.state().model(revision.model).live()
    return live and status is not None and status.state == "ready"


def _move(platform: Platform, model: str, decide: Callable[[ModelState], Split], action: str, reason: str) -> Change:
    started = time.monotonic()
    with platform.changing():
        state = platform.state()
        before = state.model(model)
        split = decide(before)
        after = replace(before, split=split)
        _require_ready(platform, after)
        platform.publish(State({**state.models, model: after}, state.last), shrink=False)
        seconds = time.monotonic() - started
        platform.record(action, model, split_detail(split, before.split), reason)
    return Change(model, before.split, split, seconds)


def _require_ready(platform: Platform, after: ModelState) -> None:
    carried = model_traffic(after, platform.statuses())
    if carried.split != after.split:
        missing = sorted(set(after.split) - set(carried.split))
        names = ", ".join(map(str, missing))
        raise Refused(f"{after.model}: revision {names} is not ready any more; traffic is unchanged", code="not-ready")
