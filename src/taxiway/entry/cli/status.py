"""`taxiway status`."""

from __future__ import annotations

import argparse
from typing import Any

from taxiway.app import status
from taxiway.entry.cli.output import add_json, add_state, platform, print_json, table, when


def arguments(parser: argparse.ArgumentParser) -> None:
    """Which platform, and in which form."""
    add_state(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print the facts; 1 when the platform is not healthy."""
    facts = status.to_json(status.collect(platform(args)))
    if args.json:
        print_json(facts)
    else:
        _show(facts)
    return 0 if facts["healthy"] else 1


def _show(facts: dict[str, Any]) -> None:
    if not facts["running"]:
        print(f"not running ({facts['state_folder']}); start it: taxiway up")
    else:
        gateway = facts["gateway"]
        word = "ready" if gateway["ready"] else "NOT READY"
        if gateway["ready"] and not gateway["in_force"]:
            word = "serves, but NOT what was decided (why: the last lines of log/controller.log)"
        print(f"{'healthy' if facts['healthy'] else 'NOT HEALTHY'}: gateway {gateway['url']} {word}")
        print(f"status page {facts['console']}\n")
        rows = [(p["name"], p["state"], str(p["pid"] or "-"), when(p["since"])) for p in facts["processes"]]
        table(("process", "state", "pid", "since"), rows)
    for model in facts["models"]:
        print(f"\nmodel {model['model']}: traffic as it is since {when(model['since'])}")
        table(("revision", "traffic", "state", "restarts", "since", "digest"), [_row(r) for r in model["revisions"]])
        for revision in model["revisions"]:
            if revision["reason"] and revision["state"] != "ready":
                print(f"  revision {revision['number']}: {revision['reason']}")


def _row(revision: dict[str, Any]) -> tuple[str, ...]:
    share = f"{revision['traffic_percent']:g} %"
    if revision["carried_percent"] != revision["traffic_percent"]:
        share += f" (carried: {revision['carried_percent']:g} %)"
    return (
        str(revision["number"]),
        share,
        revision["state"],
        str(revision["restarts"]),
        when(revision["since"]),
        revision["digest"],
    )
