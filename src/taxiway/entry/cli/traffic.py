"""`taxiway traffic`."""

from __future__ import annotations

import argparse

from taxiway.app import traffic
from taxiway.core import split
from taxiway.core.revision import model_name
from taxiway.entry.cli.output import add_json, add_state, platform, print_json, progress


def arguments(parser: argparse.ArgumentParser) -> None:
    """Which model, which split."""
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("split", metavar="REVISION=PERCENT", nargs="+", help="for instance: 2=90 3=10")
    parser.add_argument("--reason", default="", help="why, for the history")
    add_state(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Move the traffic; returns when the gateway has acknowledged it."""
    wanted = split.parse(args.split)
    done = traffic.set_split(platform(args), model_name(args.model), wanted, args.reason, progress)
    report(done, as_json=args.json)
    return 0


def report(done: traffic.Change, *, as_json: bool) -> None:
    """Say what was changed."""
    if as_json:
        print_json(traffic.change_json(done))
    else:
        print(
            f"{done.model}: {split.show(done.before)} -> {split.show(done.after)}, "
            f"in force after {done.seconds * 1000:.0f} ms"
        )
