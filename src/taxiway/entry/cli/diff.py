"""`taxiway diff`."""

from __future__ import annotations

import argparse
from typing import Any

from taxiway.app import revisions
from taxiway.core.revision import Revision
from taxiway.entry.cli.output import add_json, add_state, platform, print_json

_SUBJECTS = ("model", "features", "contract", "dependencies", "metrics", "files")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Which two."""
    parser.add_argument("before", metavar="MODEL@N")
    parser.add_argument("after", metavar="MODEL@M")
    add_state(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print what differs; 0 whether anything does or not."""
    found = revisions.difference(platform(args), Revision.parse(args.before), Revision.parse(args.after))
    if args.json:
        print_json(found)
        return 0
    for subject in _SUBJECTS:
        _subject(subject, found[subject])
    if found["configuration"]:
        print("configuration")
        for line in found["configuration"]:
            print(f"  {line}")
    if not any(found[s] for s in (*_SUBJECTS, "configuration")):
        print(f"{found['before']} and {found['after']} do not differ")
    return 0


def _subject(name: str, changes: dict[str, Any]) -> None:
    if changes:
        print(name)
    for key, change in changes.items():
        print(f"  {key}: {_short(change['before'])} -> {_short(change['after'])}")


def _short(value: Any) -> str:
    text = "none" if value is None else str(value)
    return text if len(text) <= 100 else text[:97] + "..."
