"""`taxiway check`."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from taxiway.app import check
from taxiway.core.errors import Refused, Usage
from taxiway.entry.cli.output import add_json, print_json, table

_LEVELS = ("error", "warning", "note", "never")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Which notebooks, in which form, and what counts."""
    parser.add_argument(
        "paths", metavar="NOTEBOOK", type=Path, nargs="*", help="notebooks (.ipynb); they are only read"
    )
    parser.add_argument("--sarif", metavar="FILE", help="write SARIF 2.1.0 to FILE ('-' for standard output)")
    text = "end with 1 when something at least this serious is found (default: error)"
    parser.add_argument("--fail-on", choices=_LEVELS, default="error", help=text)
    parser.add_argument("--rules", action="store_true", help="list what is looked for")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Check; 1 when something serious enough is found."""
    if args.rules:
        return _rules(as_json=args.json)
    if not args.paths:
        raise Usage("check: name a notebook, or --rules")
    if args.json and args.sarif == "-":
        raise Usage("check: --json and --sarif - both want standard output; give --sarif a file")
    done = check.check(args.paths)
    if args.sarif:
        _write(args.sarif, json.dumps(check.as_sarif(done), indent=2) + "\n")
    if args.json:
        print_json(_json(done))
    elif args.sarif != "-":
        _show(done)
    return 1 if done.worst() <= _LEVELS.index(args.fail_on) and args.fail_on != "never" else int(bool(done.unreadable))


def _write(target: str, text: str) -> None:
    if target == "-":
        print(text, end="")
        return
    path = Path(target)
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        aside.write_text(text)
        aside.replace(path)
    except OSError as error:
        raise Refused(f"{target} cannot be written: {error.strerror}", code="cannot-write") from error


def _json(done: check.Checked) -> dict[str, Any]:
    return {
        "notebooks": {path: [f.to_json() for f in found] for path, found in done.found.items()},
        "unreadable": {path: list(reasons) for path, reasons in done.unreadable.items()},
    }


def _show(done: check.Checked) -> None:
    for path, reasons in done.unreadable.items():
        print("\n".join([path, *(f"  {reason}" for reason in reasons)]))
    for path, found in done.found.items():
        print(f"{path}: {_count(found)}")
        for cell, group in groupby(found, key=lambda f: f.cell):
            print(f"  cell {cell}")
            for f in group:
                print(f"    line {f.line:<4} {f.severity:8} {f.kind}: {f.message}")
                print(f"              fix: {f.fix}")
    print(_total(done))


def _total(done: check.Checked) -> str:
    count = len(done.found)
    ends = f"{len(done.unreadable)} could not be read; " if done.unreadable else ""
    everything = [f for found in done.found.values() for f in found]
    return f"{count} notebook{'' if count == 1 else 's'} checked; {ends}{_count(everything)}"


def _count(found: Sequence[Any]) -> str:
    counts = [(level, sum(f.severity == level for f in found)) for level in ("error", "warning", "note")]
    return ", ".join(f"{n} {level}{'' if n == 1 else 's'}" for level, n in counts if n) or "nothing found"


def _rules(*, as_json: bool) -> int:
    rules = check.rules()
    if as_json:
        print_json([{"id": r.id, "severity": r.severity, "title": r.title, "why": r.why, "fix": r.fix} for r in rules])
    else:
        table(("rule", "severity", "what"), [(r.id, r.severity, r.title) for r in rules])
    return 0
