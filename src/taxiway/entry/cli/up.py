"""`taxiway up`."""

from __future__ import annotations

import argparse
import os
from dataclasses import fields

from taxiway.app import updown
from taxiway.app.settings import Settings, state_folder
from taxiway.entry.cli.output import add_json, add_state, print_json, progress

_HELP = {
    "host": "address the gateway listens on (default: 127.0.0.1)",
    "port": "port of the gateway, REST and gRPC (default: 8080, or a free one)",
    "console_port": "loopback port of the status page and control API (default: 8081, or a free one)",
    "issuer": "the `iss` of callers' tokens, for an external issuer",
    "audience": "the `aud` of callers' tokens",
    "jwks": "file or https URL with an external issuer's public keys",
    "database": "SQLAlchemy URL of the journal (default: SQLite in the state folder)",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    """One flag per setting."""
    add_state(parser)
    add_json(parser)
    for field in fields(Settings):
        parser.add_argument(f"--{field.name.replace('_', '-')}", metavar="VALUE", help=_HELP[field.name])


def run(args: argparse.Namespace) -> int:
    """Start, or find running; say where."""
    flags = {f.name: getattr(args, f.name) for f in fields(Settings)}
    platform = updown.up(state_folder(args.state), flags, os.environ, progress)
    if args.json:
        print_json({"url": platform.url, "grpc": platform.address, "console": platform.console})
        return 0
    print(f"gateway  {platform.url}  (REST and gRPC)")
    print(f"status   {platform.console}")
    return 0
