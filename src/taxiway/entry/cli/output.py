"""What all commands share: the state folder, progress on standard error, answers on standard output."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from typing import Any

from taxiway.app.settings import state_folder
from taxiway.app.wire import Platform


def add_state(parser: argparse.ArgumentParser) -> None:
    """`--state FOLDER` (or TAXIWAY_STATE)."""
    text = "the platform's state folder (default: TAXIWAY_STATE, else .taxiway)"
    parser.add_argument("--state", metavar="FOLDER", help=text)


def add_json(parser: argparse.ArgumentParser) -> None:
    """`--json`."""
    parser.add_argument("--json", action="store_true", help="print the answer as JSON")


def platform(args: argparse.Namespace) -> Platform:
    """The platform that the command is about."""
    return Platform.at(state_folder(args.state))


def progress(line: str) -> None:
    """Tell a person what is going on; never part of the answer."""
    print(line, file=sys.stderr, flush=True)


def print_json(value: Any) -> None:
    """The answer for a script."""
    print(json.dumps(value, indent=2, sort_keys=True))


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    """The answer for a person."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for row in (head, *rows):
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def when(seconds: float | None) -> str:
    """A moment in UTC, to the second; '-' for none."""
    return time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(seconds)) if seconds else "-"
