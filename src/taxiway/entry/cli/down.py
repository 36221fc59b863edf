"""`taxiway down`."""

from __future__ import annotations

import argparse

from taxiway.app import updown
from taxiway.app.places import Places
from taxiway.app.settings import state_folder
from taxiway.entry.cli.output import add_json, add_state, print_json, progress


def arguments(parser: argparse.ArgumentParser) -> None:
    """Only which platform."""
    add_state(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Stop everything."""
    stopped = updown.down(Places(state_folder(args.state)), progress)
    if args.json:
        print_json({"stopped": stopped})
    else:
        print("stopped" if stopped else "nothing was running")
    return 0
