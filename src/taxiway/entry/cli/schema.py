"""`taxiway schema`."""

from __future__ import annotations

import argparse

from taxiway.app.config import read, schema
from taxiway.entry.cli.output import add_json, print_json


def arguments(parser: argparse.ArgumentParser) -> None:
    """Of which file; `--json` only makes a difference to the list, since a schema is JSON in any case."""
    text = f"the file that the schema is for: {' or '.join(schema.PUBLISHED)} (default: {read.NAME})"
    parser.add_argument("name", metavar="NAME", nargs="?", choices=list(schema.PUBLISHED), default=read.NAME, help=text)
    parser.add_argument("--list", action="store_true", help="print the names of the files that there are schemas for")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print one schema, or the names of all."""
    if not args.list:
        print(schema.text(args.name))
    elif args.json:
        print_json(list(schema.PUBLISHED))
    else:
        print("\n".join(schema.PUBLISHED))
    return 0
