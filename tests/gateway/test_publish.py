"""Desired traffic is put in force in an order that loses nothing, or not at all and with the reason."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from gateway_harness import BODY, Gateway, serving, wait_for

from taxiway.core.errors import NotAccepted
from taxiway.core.split import TOTAL
from taxiway.gateway import render, tokens
from taxiway.gateway.desired import Address, Issuer
from taxiway.gateway.envoy import Admin, validate
from taxiway.gateway.publish import in_force as carries
from taxiway.gateway.publish import publish, published_revisions, write_offline

pytestmark = pytest.mark.processes


class Load:
    """Clients that ask without pause; what they got, and what went wrong."""

    def __init__(self, gateway: Gateway, clients: int) -> None:
        self.revisions: Counter[str] = Counter()
        self.failures: list[str] = []
        self.done = threading.Event()
        self.headers = {"authorization": f"Bearer {gateway.token()}", "x-test-light": "1", "x-test-delay-ms": "2"}
        self.port = gateway.port
        self.threads = [threading.Thread(target=self.client) for _ in range(clients)]

    def client(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=15)
        while not self.done.is_set():
            try:
                connection.request("POST", "/v2/models/risk/infer", json.dumps(BODY), self.headers)
                answer = connection.getresponse()
                body = answer.read()
            except (OSError, http.client.HTTPException) as error:
                self.failures.append(repr(error))
                return
            if answer.status == 200:
                self.revisions[str(answer.headers["x-model-revision"])] += 1
            else:
                self.failures.append(f"{answer.status} {body!r}")
        connection.close()


@contextmanager
def load_on(gateway: Gateway, clients: int = 8) -> Iterator[Load]:
    load = Load(gateway, clients)
    for thread in load.threads:
        thread.start()
    try:
        yield load
    finally:
        load.done.set()
        for thread in load.threads:
            thread.join()


def on_disk(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def versions_of(gateway: Gateway) -> set[str]:
    """The versions that Envoy says it uses."""
    return set(gateway.admin.version_texts().values())


def test_a_publication_says_what_is_in_force(gateway: Gateway) -> None:
    serving(gateway, gateway.model("risk", {1: TOTAL}))
    done = gateway.publish(gateway.model("risk", {1: 9000, 2: 1000}))
    assert set(done.versions.values()) == versions_of(gateway)
    assert {name: render.version_of(text) for name, text in on_disk(gateway.folder).items()} == dict(done.versions)
    assert done.seconds < 5


def test_what_is_in_force_already_is_left_alone(gateway: Gateway) -> None:
    serving(gateway, gateway.model("risk", {1: TOTAL}))
    before = {path: path.stat().st_ino for path in gateway.folder.iterdir()}
    gateway.publish(gateway.model("risk", {1: TOTAL}))
    assert {path: path.stat().st_ino for path in gateway.folder.iterdir()} == before


def test_flips_of_the_weights_under_load_lose_nothing(gateway: Gateway) -> None:
    serving(gateway, gateway.model("risk", {1: TOTAL}, 2))
    seconds = []
    with load_on(gateway) as load:
        for turn in range(120):
            share = (turn * 37) % (TOTAL - 1) + 1
            seconds.append(gateway.publish(gateway.model("risk", {1: TOTAL - share, 2: share})).seconds)
    assert not load.failures
    assert set(load.revisions) == {"risk@1", "risk@2"}
    assert sorted(seconds)[60] < 0.5


def test_revisions_come_and_go_under_load_and_nothing_is_lost(gateway: Gateway) -> None:
    serving(gateway, gateway.model("risk", {1: TOTAL}))
    with load_on(gateway) as load:
        for number in range(2, 8):
            gateway.publish(gateway.model("risk", {number - 1: TOTAL}, number))
            only = gateway.model("risk", {number: TOTAL})
            gateway.publish(only)
            wait_for(lambda only=only: bool(gateway.publish(only)) and len(published_revisions(gateway.folder)) == 1)  # type: ignore[misc]
            gateway.stop_engine(f"risk@{number - 1}")
            wait_for(lambda number=number: load.revisions[f"risk@{number}"] > 20 or bool(load.failures))  # type: ignore[misc]
    assert not load.failures
    assert set(load.revisions) == {f"risk@{n}" for n in range(1, 8)}
    assert {name for name in on_disk(gateway.folder) if name.startswith("eds-")} == {
        "eds-engines-grpc.json",
        "eds-engines-http.json",
        "eds-risk@7-grpc.json",
        "eds-risk@7-http.json",
    }


def test_a_revision_with_a_request_under_way_is_removed_only_when_it_has_ended(gateway: Gateway) -> None:
    serving(gateway, gateway.model("risk", {1: TOTAL}, 2))
    answers = []
    slow = threading.Thread(target=lambda: answers.append(gateway.ask(headers={"x-test-delay-ms": "2000"})))
    slow.start()
    wait_for(lambda: gateway.admin.active_requests("risk@1-http") == 1)
    only_two = gateway.model("risk", {2: TOTAL})
    done = gateway.publish(only_two)
    assert done.seconds < 1.5, "nobody waits for a slow request"
    assert gateway.ask().json["revision"] == "risk@2"
    assert published_revisions(gateway.folder) == {("risk", 1), ("risk", 2)}
    slow.join()
    assert [a.json["revision"] for a in answers] == ["risk@1"]
    gateway.publish(only_two)
    assert published_revisions(gateway.folder) == {("risk", 2)}
    assert not list(gateway.folder.glob("eds-risk@1-*"))


def test_removal_can_be_left_for_later(gateway: Gateway) -> None:
    serving(gateway, gateway.model("risk", {1: TOTAL}))
    two = gateway.want(gateway.model("risk", {2: TOTAL}))
    publish(two, gateway.folder, gateway.admin.path, shrink=False)
    assert published_revisions(gateway.folder) == {("risk", 1), ("risk", 2)}
    assert carries(two, gateway.folder, gateway.admin)
    publish(two, gateway.folder, gateway.admin.path)
    assert published_revisions(gateway.folder) == {("risk", 2)}


def test_whether_a_value_is_in_force_is_read_from_envoy(gateway: Gateway) -> None:
    one = gateway.want(gateway.model("risk", {1: TOTAL}, 2))
    assert not carries(one, gateway.folder, gateway.admin)
    serving(gateway, *one.models)
    assert carries(one, gateway.folder, gateway.admin)
    assert not carries(gateway.want(gateway.model("risk", {2: TOTAL}, 1)), gateway.folder, gateway.admin)


def test_an_engine_that_moved_to_another_port_is_found_there(gateway: Gateway) -> None:
    serving(gateway, gateway.model("risk", {1: TOTAL}))
    gateway.stop_engine("risk@1")
    gateway.publish(gateway.model("risk", {1: TOTAL}))
    assert gateway.ask().status == 200


def test_keys_are_exchanged_without_touching_anything_else(gateway: Gateway, tmp_path: Path) -> None:
    serving(gateway, gateway.model("risk", {1: TOTAL}))
    old = gateway.token()
    tokens.make_keys(tmp_path / "new")
    issuer = replace(gateway.desired.callers, jwks=tokens.jwks(tmp_path / "new"))
    gateway.publish(*gateway.desired.models, callers=issuer)
    assert gateway.ask(token=old).status == 401
    new = tokens.issue(
        tmp_path / "new",
        issuer=issuer.issuer,
        audience=issuer.audience,
        user="u",
        app="a",
        ttl_s=60,
        now=int(time.time()),
    )
    assert gateway.ask(token=new).status == 200


Spoil = Callable[[Gateway], None]


def bad_keys(gateway: Gateway) -> None:
    gateway.publish(*gateway.desired.models, callers=Issuer("callers", "i", "a", "not a key set"))


def bad_port(gateway: Gateway) -> None:
    model = gateway.desired.models[0]
    moved = replace(model.backends[0], http=Address("127.0.0.1", 70_000))
    gateway.publish(replace(model, backends=(moved,)))


def bad_address(gateway: Gateway) -> None:
    model = gateway.desired.models[0]
    other = replace(model.backends[0], number=2, http=Address("not an address", 1))
    gateway.publish(replace(model, backends=(model.backends[0], other), split={2: TOTAL}))


def bad_log(gateway: Gateway) -> None:
    gateway.publish(*gateway.desired.models, access_log="/nowhere/at/all.log")


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (bad_keys, "jwks"),
        (bad_port, "PortValue: value must be less than or equal to 65535"),
        (bad_address, "not an address"),
        (bad_log, "nowhere"),
    ],
)
def test_what_envoy_refuses_changes_nothing_and_its_reason_is_told(gateway: Gateway, spoil: Spoil, reason: str) -> None:
    serving(gateway, gateway.model("risk", {1: TOTAL}))
    files, versions = on_disk(gateway.folder), versions_of(gateway)
    with load_on(gateway, 4) as load, pytest.raises(NotAccepted, match=reason):
        spoil(gateway)
    assert not load.failures
    assert on_disk(gateway.folder) == files
    assert versions_of(gateway) == versions
    gateway.stop()
    gateway.start()
    assert gateway.ask().status == 200
    gateway.publish(
        gateway.model("risk", {2: TOTAL}), callers=gateway.desired.operators, access_log=str(gateway.home / "l")
    )
    assert gateway.ask(token=gateway.operator()).json["revision"] == "risk@2"


def test_a_port_that_is_taken_is_refused_with_the_reason(gateway: Gateway) -> None:
    serving(gateway, gateway.model("risk", {1: TOTAL}))
    files = on_disk(gateway.folder)
    taken = gateway.engine("risk@1").http
    with pytest.raises(NotAccepted, match=r"in use|cannot bind"):
        gateway.publish(*gateway.desired.models, listen=taken)
    assert on_disk(gateway.folder) == files


def test_a_refusal_that_only_the_running_envoy_notices_is_undone_too(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    serving(gateway, gateway.model("risk", {1: TOTAL}))
    files = on_disk(gateway.folder)
    monkeypatch.setattr("taxiway.gateway.publish.validate", lambda desired, folder: None)
    for spoil in (bad_keys, bad_port, bad_address, bad_log):
        with load_on(gateway, 2) as load, pytest.raises(NotAccepted):
            spoil(gateway)
        assert not load.failures, spoil
        assert on_disk(gateway.folder) == files, spoil
        gateway.want(
            gateway.model("risk", {1: TOTAL}), **{k: getattr(first(gateway), k) for k in ("callers", "access_log")}
        )
    assert gateway.publish(*gateway.desired.models).versions


def first(gateway: Gateway) -> object:
    """The settings the gateway was started with."""
    return replace(
        gateway.desired,
        callers=Issuer("callers", "https://callers", "models", tokens.jwks(gateway.home / "keys")),
        access_log=str(gateway.home / "access.log"),
    )


def test_a_gateway_that_is_not_there_is_told_and_nothing_is_written(gateway: Gateway) -> None:
    serving(gateway, gateway.model("risk", {1: TOTAL}))
    files = on_disk(gateway.folder)
    gateway.stop()
    with pytest.raises(NotAccepted, match="Envoy is not answering"):
        gateway.publish(gateway.model("risk", {2: TOTAL}))
    assert on_disk(gateway.folder) == files


def test_after_a_restart_without_a_control_plane_the_same_is_served(gateway: Gateway) -> None:
    serving(gateway, gateway.model("risk", {1: TOTAL}, 2))
    gateway.publish(gateway.model("risk", {2: TOTAL}))
    versions = versions_of(gateway)
    assert gateway.process is not None
    gateway.process.kill()
    gateway.process.wait()
    gateway.start()
    assert gateway.ask().json["revision"] == "risk@2"
    assert versions_of(gateway) == versions


def test_what_an_interrupted_publication_left_is_completed_by_the_next(gateway: Gateway) -> None:
    serving(gateway, gateway.model("risk", {1: TOTAL}, 2))
    good = (gateway.folder / "rds.json").read_text()
    (gateway.folder / ".rds.json.previous").write_text(good)
    (gateway.folder / "rds.json.half").write_text('{"version_info": "bad", "resources": [{}]}')
    (gateway.folder / "rds.json.half").rename(gateway.folder / "rds.json")
    wait_for(lambda: sum(gateway.admin.rejected().values()) > 0)
    gateway.publish(gateway.model("risk", {2: TOTAL}))
    assert gateway.ask().json["revision"] == "risk@2"
    assert not list(gateway.folder.glob(".*"))


def test_writing_offline_replaces_everything(tmp_path: Path, gateway: Gateway) -> None:
    folder = tmp_path / "offline"
    one = gateway.want(gateway.model("risk", {1: TOTAL}))
    write_offline(one, folder)
    other = gateway.want(gateway.model("ranker", {1: TOTAL}))
    write_offline(other, folder)
    assert on_disk(folder) == render.render(other, folder)


def test_validation_leaves_nothing_behind(gateway: Gateway, tmp_path: Path) -> None:
    folder = tmp_path / "v"
    folder.mkdir()
    validate(gateway.want(gateway.model("risk", {1: TOTAL})), folder)
    assert not list(folder.iterdir())


def test_the_access_log_can_be_moved_away(gateway: Gateway) -> None:
    serving(gateway, gateway.model("risk", {1: TOTAL}))
    gateway.ask()
    wait_for(lambda: len(gateway.log()) == 1)
    path = Path(gateway.desired.access_log)
    path.rename(path.with_suffix(".1"))
    gateway.admin.reopen_logs()
    gateway.ask()
    wait_for(lambda: len(gateway.log()) == 1)


def test_an_admin_socket_without_envoy_is_not_ready(tmp_path: Path) -> None:
    assert not Admin(tmp_path / "none.sock").ready()


def test_a_folder_with_a_path_too_long_for_a_socket_can_be_validated_in(tmp_path: Path, gateway: Gateway) -> None:
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    validate(gateway.want(gateway.model("risk", {1: TOTAL})), folder)
    assert list(folder.iterdir()) == []
