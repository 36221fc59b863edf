"""`taxiway history`."""

from __future__ import annotations

import argparse

from taxiway.app.history import history, sentence
from taxiway.core.revision import model_name
from taxiway.entry.cli.output import add_json, add_state, platform, print_json, table, when


def arguments(parser: argparse.ArgumentParser) -> None:
    """Which model."""
    parser.add_argument("model", metavar="MODEL")
    add_state(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print the journal of one model, oldest first."""
    entries = history(platform(args), model_name(args.model))
    if args.json:
        print_json(entries)
        return 0
    rows = [(when(e["at"]), e["actor"], e["action"], sentence(e), e["reason"] or "-") for e in entries]
    table(("when", "who", "what", "detail", "why"), rows)
    return 0
