"""`taxiway engine install`."""

from __future__ import annotations

import argparse
from pathlib import Path

from taxiway.app.engines import install_engine
from taxiway.entry.cli.output import add_json, print_json, progress


def arguments(parser: argparse.ArgumentParser) -> None:
    """Where, and with which Python."""
    parser.add_argument("action", choices=["install"], help="make the engine's own environment, if it is not there")
    parser.add_argument("--python", metavar="PATH", type=Path, help="the Python 3.11 or 3.12 that the engine shall use")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Install once; say where."""
    home = install_engine(args.python, progress)
    if args.json:
        print_json({"home": str(home.root), "python": home.python})
    else:
        print(f"engine in {home.root} (Python {home.python})")
    return 0
