"""`taxiway rollback`."""

from __future__ import annotations

import argparse

from taxiway.app import traffic
from taxiway.core.revision import model_name
from taxiway.entry.cli.output import add_json, add_state, platform, progress
from taxiway.entry.cli.traffic import report


def arguments(parser: argparse.ArgumentParser) -> None:
    """Which model; where to, when it is not the revision before."""
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("--to", metavar="REVISION", type=int, help="a revision other than the one before")
    parser.add_argument("--reason", default="", help="why, for the history")
    add_state(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Go back; returns when the gateway has acknowledged it."""
    done = traffic.roll_back(platform(args), model_name(args.model), args.to, args.reason, progress)
    report(done, as_json=args.json)
    return 0
