"""Keep one revision's engine: prove its bytes before every start, then run it for as long as it is wanted.

Loads nothing of the control plane beyond the catalog, because one of these runs per live revision.
"""

from __future__ import annotations

from taxiway.app.places import Places
from taxiway.catalog import store
from taxiway.core.errors import Altered
from taxiway.core.revision import Revision
from taxiway.engine.home import default_home
from taxiway.engine.keeper import keep
from taxiway.engine.spec import EngineSpec


def keep_revision(places: Places, revision: Revision, digest: str) -> int:
    """Run the engine of `revision`, admitted under `digest`, until told to stop; returns the exit code.

    Raises `Refused` (also in the status file) when its bytes differ from what was admitted: they are never loaded.
    """
    folder = places.catalog / revision.model / str(revision.number)
    spec = EngineSpec(
        model=revision.model,
        number=revision.number,
        repository=folder / "repository",
        home=default_home(),
        status_file=places.engine_status(revision),
        log_file=places.log / f"triton-{revision}.log",
        canary=folder / "evidence" / "canary.json",
    )
    return keep(spec, before_start=lambda: prove(places, revision, digest), log=lambda line: print(line, flush=True))


def prove(places: Places, revision: Revision, digest: str) -> None:
    """Raise `Altered` unless the catalog holds exactly the bytes that were admitted under `digest`."""
    stored = store.load(places.catalog, revision)
    if stored.digest != digest:
        raise Altered(f"{revision} was admitted as {digest}, but the catalog now holds {stored.digest}")
    store.verify(stored)
