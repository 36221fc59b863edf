"""`taxiway token`."""

from __future__ import annotations

import argparse
import re
import time

from taxiway.core.errors import Usage
from taxiway.entry.cli.output import add_json, add_state, platform, print_json

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def arguments(parser: argparse.ArgumentParser) -> None:
    """For whom, for how long."""
    parser.add_argument("--user", required=True, help="who calls (the token's `sub`)")
    parser.add_argument("--app", default="cli", help="the calling application")
    parser.add_argument("--ttl", default="1h", help="how long it is valid, for instance 30m, 1h, 7d (default: 1h)")
    add_state(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print the token alone, for $(…)."""
    now = int(time.time())
    seconds = duration(args.ttl)
    token = platform(args).token(args.user, args.app, seconds, now=now)
    if args.json:
        print_json({"token": token, "expires": now + seconds})
    else:
        print(token)
    return 0


def duration(text: str) -> int:
    """Seconds of `90s`, `30m`, `1h`, `7d`; raises `Usage`."""
    match = re.fullmatch(r"([1-9][0-9]{0,6})([smhd])", text)
    if not match:
        raise Usage(f"--ttl {text!r}: write a number and s, m, h or d, for instance 1h")
    return int(match[1]) * _UNITS[match[2]]
