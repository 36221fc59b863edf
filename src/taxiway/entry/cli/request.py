"""`taxiway request`."""

from __future__ import annotations

import argparse

from taxiway.app.curl import example_request
from taxiway.core.revision import model_name
from taxiway.entry.cli.output import add_json, add_state, platform, print_json


def arguments(parser: argparse.ArgumentParser) -> None:
    """Which model."""
    parser.add_argument("model", metavar="MODEL")
    add_state(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """A golden sample of the revision that answers, as a command to paste."""
    request = example_request(platform(args), model_name(args.model))
    if args.json:
        print_json({"url": request.url, "token": request.token, "body": request.body})
    else:
        print(request.curl())
    return 0
