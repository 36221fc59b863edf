"""`taxiway validate`."""

from __future__ import annotations

import argparse
from pathlib import Path

from taxiway.app import validate
from taxiway.core.revision import Revision
from taxiway.entry.cli.output import add_json, add_state, platform, print_json


def arguments(parser: argparse.ArgumentParser) -> None:
    """What to look at."""
    parser.add_argument("what", metavar="FOLDER|MODEL@N", help="a Triton model repository, or a stored revision")
    add_state(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """List every mistake; 1 when one of them is an error."""
    if "@" in args.what and not Path(args.what).exists():
        found = validate.revision(platform(args), Revision.parse(args.what))
    else:
        found = validate.folder(Path(args.what))
    if args.json:
        print_json([m.to_json() for m in found])
    else:
        for mistake in found:
            print(mistake)
        errors = sum(m.severity == "error" for m in found)
        print(f"{errors} errors, {len(found) - errors} warnings" if found else "nothing found")
    return 1 if any(m.severity == "error" for m in found) else 0
