"""`taxiway schema`."""

from __future__ import annotations

import argparse

from taxiway.app.config import read
from taxiway.entry.cli.output import print_json


def arguments(parser: argparse.ArgumentParser) -> None:
    """Nothing to say: there is one."""


def run(_args: argparse.Namespace) -> int:
    """Print the JSON Schema of taxiway.yaml, for editors."""
    print_json(read.schema())
    return 0
