"""`taxiway schema`."""

from __future__ import annotations

import argparse

from taxiway.app.config import read
from taxiway.entry.cli.output import add_json, print_json


def arguments(parser: argparse.ArgumentParser) -> None:
    """Nothing to choose: there is one, and it is JSON in any case."""
    add_json(parser)


def run(_args: argparse.Namespace) -> int:
    """Print the JSON Schema of taxiway.yaml, for editors."""
    print_json(read.schema())
    return 0
