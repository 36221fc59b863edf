"""From desired traffic to Envoy's word that it is in force.

The files on disk and the running Envoy are brought to `desired` in the one order that loses no request:
where engines are, whose tokens count, clusters old and new together, routes, and only when nobody uses them
any more are old clusters taken away. Each step is acknowledged by Envoy before the next begins.

A step that is refused is undone together with those before it. Until the end of a publication the last good
text of every changed file is kept beside it (`.NAME.previous`), also across a crash of the publisher; the
next publication either completes or restores. So the folder always holds a complete set that Envoy can
start from.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from taxiway.core.errors import NotAccepted
from taxiway.gateway import clusters, render
from taxiway.gateway.desired import Desired
from taxiway.gateway.envoy import UNREACHABLE, Admin, reason_of, validate

_POLL_S: Final = 0.001
_POLL_DRAIN_S: Final = 0.02
# Workers take up a new route table a moment after the main thread reports it.
_QUIET_POLLS: Final = 3

_VERSION_STATS: Final = {
    render.KEYS: "extension_config_discovery.http_filter.jwt.version_text",
    render.CLUSTERS: "cluster_manager.cds.version_text",
    render.ROUTES: "http.ingress.rds.main.version_text",
    render.LISTENERS: "listener_manager.lds.version_text",
}
_REFUSALS: Final = r"(update_(rejected|failure)|listener_create_failure|config_fail)$"


@dataclass(frozen=True, slots=True)
class Published:
    """What is in force (file name -> version), which files had to change, and how long it took."""

    versions: Mapping[str, str]
    changed: tuple[str, ...]
    seconds: float


def write_offline(desired: Desired, folder: Path) -> None:
    """Write a full set of files before Envoy's first start; files of other clusters are removed."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = render.render(desired, folder)
    for name, text in wanted.items():
        _write(folder / name, text)
    for path in folder.glob(clusters.endpoints_file("*")):
        if path.name not in wanted:
            path.unlink()
    for path in folder.glob(".*.previous"):
        path.unlink()


def in_force(desired: Desired, folder: Path, admin: Admin) -> bool:
    """Whether Envoy says that it carries `desired`; clusters that are still to be removed do not matter."""
    wanted = render.render(desired, folder)
    stats = {n: s for n, s in _VERSION_STATS.items() if n != render.CLUSTERS}
    stats |= {clusters.endpoints_file(name): _endpoint_stat(name) for name in _cluster_texts(wanted[render.CLUSTERS])}
    try:
        said = admin.version_texts()
    except UNREACHABLE:
        return False
    return all(said.get(stat) == render.version_of(wanted[name]) for name, stat in stats.items() if name in wanted)


def published_revisions(folder: Path) -> set[tuple[str, int]]:
    """The (model, number) of every revision that the files in `folder` still have a cluster for."""
    found = (clusters.revision_of(name) for name in _cluster_texts(_read(folder / render.CLUSTERS)))
    return {revision for revision in found if revision is not None}


def publish(
    desired: Desired,
    folder: Path,
    admin: Path,
    *,
    deadline_s: float = 5.0,
    log: Path | None = None,
    shrink: bool = True,
) -> Published:
    """Make the running gateway do what `desired` says; does nothing where it already does.

    With `shrink`, clusters that are not wanted any more are removed if no request uses them at this moment;
    those still in use are left to the next publication, so that nobody ever waits for a slow request.

    `deadline_s` bounds each step. `log` is Envoy's log, from which its reason for a refusal is read.
    Raises `NotAccepted` when Envoy is not answering (nothing is written) or refuses (what was in force before
    is in force again, on disk too).
    """
    began = time.monotonic()
    wanted = render.render(desired, folder)
    work = _Work(folder, Admin(admin), deadline_s, log, desired)
    work.require_answer()
    if work.leftovers() or work.changes_structure(wanted):
        validate(desired, folder)
    try:
        work.run(wanted, shrink=shrink)
    except NotAccepted:
        work.undo()
        raise
    except UNREACHABLE as error:
        work.undo()
        raise NotAccepted(f"gateway: Envoy stopped answering at {admin} ({error}); the traffic is unchanged") from None
    work.settle()
    versions = {n: render.version_of(t) for n, t in wanted.items()}
    return Published(versions, tuple(work.changed), time.monotonic() - began)


@dataclass(slots=True)
class _Work:
    """One publication under way: which files it changed, and how to go back."""

    folder: Path
    admin: Admin
    deadline_s: float
    log: Path | None
    desired: Desired
    changed: list[str] = field(default_factory=list)
    log_from: int = 0
    refusals: dict[str, int] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)

    def require_answer(self) -> None:
        """Raise `NotAccepted` unless Envoy answers; note its versions, refusals and where its log stands."""
        try:
            self.refusals = self.admin.count(_REFUSALS)
            self.versions = self.admin.version_texts()
        except UNREACHABLE as error:
            raise NotAccepted(
                f"gateway: Envoy is not answering at {self.admin.path} ({error}); "
                "start it and try again; the traffic is unchanged"
            ) from None
        if self.log is not None and self.log.exists():
            self.log_from = self.log.stat().st_size

    def leftovers(self) -> list[Path]:
        """Last good texts that an interrupted publication left."""
        return sorted(self.folder.glob(".*.previous"))

    def changes_structure(self, wanted: Mapping[str, str]) -> bool:
        """Whether more than weights and addresses change: what Envoy has not yet seen in a form like this."""
        old, new = _cluster_texts(_read(self.folder / render.CLUSTERS)), _cluster_texts(wanted[render.CLUSTERS])
        if any(old.get(name) != cluster for name, cluster in new.items()):
            return True
        return any(_read(self.folder / name) != wanted[name] for name in (render.KEYS, render.LISTENERS))

    def run(self, wanted: Mapping[str, str], *, shrink: bool) -> None:
        """All steps, in the order that loses no request."""
        old = _cluster_texts(_read(self.folder / render.CLUSTERS))
        new = _cluster_texts(wanted[render.CLUSTERS])
        gone = sorted(set(old) - set(new))
        endpoints = [n for n in wanted if n not in _VERSION_STATS]
        known = {clusters.endpoints_file(name): name for name in old}
        for name in endpoints:
            self.replace(name, wanted[name], _endpoint_stat(known[name]) if name in known else None)
        self.replace(render.KEYS, wanted[render.KEYS], _VERSION_STATS[render.KEYS])
        both = render.text_of([*new.values(), *[old[name] for name in gone]])
        self.replace(render.CLUSTERS, both if gone else wanted[render.CLUSTERS], _VERSION_STATS[render.CLUSTERS])
        self.await_warm()
        self.replace(render.ROUTES, wanted[render.ROUTES], _VERSION_STATS[render.ROUTES])
        self.replace(render.LISTENERS, wanted[render.LISTENERS], _VERSION_STATS[render.LISTENERS])
        if gone and shrink and self.drained(gone):
            self.replace(render.CLUSTERS, wanted[render.CLUSTERS], _VERSION_STATS[render.CLUSTERS])

    def replace(self, name: str, text: str, stat: str | None) -> None:
        """Put `text` in force as the file `name`; `stat` is the statistic that shows its version."""
        path, version = self.folder / name, render.version_of(text)
        same = _read(path) == text
        if same and (stat is None or self.versions.get(stat) == version):
            return
        previous = _previous(path)
        if path.exists() and not previous.exists():
            os.link(path, previous)
        self.changed.append(name)
        _write(path, text)
        if stat is not None:
            self._await(lambda: self._in_force(stat) == version, f"{name} (version {version})")
            self.versions[stat] = version

    def await_warm(self) -> None:
        """Wait until every cluster has its endpoints, so that a route may name it."""
        if self.changed:
            self._await(self._warm, "the clusters' endpoints")

    def drained(self, gone: list[str]) -> bool:
        """Whether no request uses the clusters in `gone`, looked at a few times in a row."""
        for _ in range(_QUIET_POLLS):
            if any(map(self.admin.active_requests, gone)):
                return False
            time.sleep(_POLL_DRAIN_S)
        return True

    def undo(self) -> None:
        """Put the last good texts back: routes first, so that none names a cluster that is taken away."""
        fixed = [render.LISTENERS, render.ROUTES, render.CLUSTERS, render.KEYS]
        for name in [*fixed, *[n for n in self.changed if n not in fixed]]:
            if name in self.changed:
                self._restore(name)

    def _restore(self, name: str) -> None:
        path = self.folder / name
        previous = _previous(path)
        if not previous.exists():
            if name not in _VERSION_STATS:
                path.unlink(missing_ok=True)
            return
        previous.rename(path)
        if name == render.ROUTES:
            version = render.version_of(path.read_text(encoding="utf-8"))
            with contextlib.suppress(NotAccepted, *UNREACHABLE):
                self._await(lambda: self._in_force(_VERSION_STATS[name]) == version, name)

    def settle(self) -> None:
        """All is in force: forget what was before, remove the endpoints of clusters that are gone."""
        for path in self.leftovers():
            path.unlink()
        kept = {clusters.endpoints_file(n) for n in _cluster_texts(_read(self.folder / render.CLUSTERS))}
        for path in self.folder.glob(clusters.endpoints_file("*")):
            if path.name not in kept:
                path.unlink()

    def _in_force(self, stat: str) -> str:
        return self.admin.stats(f"^{_escape(stat)}$").get(stat, "")

    def _warm(self) -> bool:
        return self.admin.count(r"^cluster_manager\.warming_clusters$").get("cluster_manager.warming_clusters") == 0

    def _await(self, done: Callable[[], bool], what: str) -> None:
        until = time.monotonic() + self.deadline_s
        while not done():
            now = self.admin.count(_REFUSALS)
            if any(count > self.refusals.get(name, 0) for name, count in now.items()):
                raise NotAccepted(f"gateway: Envoy refuses {what}: {self._reason()}; what was in force still is")
            if time.monotonic() > until:
                raise NotAccepted(
                    f"gateway: Envoy did not take up {what} within {self.deadline_s:g} s; what was in force still is"
                )
            time.sleep(_POLL_S)

    def _reason(self) -> str:
        if self.log is not None and self.log.exists():
            with self.log.open("rb") as file:
                file.seek(self.log_from)
                text = file.read().decode("utf-8", "replace")
            if "config update" in text:
                return reason_of(text)
        try:
            validate(self.desired, self.folder)
        except NotAccepted as error:
            return error.reasons[0].removeprefix("gateway: Envoy refuses the configuration: ")
        return "its log has the reason"


def _endpoint_stat(cluster: str) -> str:
    return f"cluster.{cluster}.version_text"


def _escape(stat: str) -> str:
    return stat.replace(".", r"\.")


def _cluster_texts(text: str | None) -> dict[str, dict[str, Any]]:
    """Cluster name -> resource, of a `cds.json`."""
    return {} if text is None else {c["name"]: c for c in json.loads(text)["resources"]}


def _previous(path: Path) -> Path:
    return path.with_name(f".{path.name}.previous")


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None


def _write(path: Path, text: str) -> None:
    """Written aside and renamed: Envoy watches for the rename and never reads half a file."""
    aside = path.with_name(f".{path.name}.new")
    aside.write_text(text, encoding="utf-8")
    aside.rename(path)
