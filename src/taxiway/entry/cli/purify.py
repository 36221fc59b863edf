"""`taxiway purify`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from taxiway.app import ship
from taxiway.app.purify import purify
from taxiway.entry.cli.choice import add_choice, choice
from taxiway.entry.cli.output import add_json, print_json, progress, table


def arguments(parser: argparse.ArgumentParser) -> None:
    """Which notebook, and where to."""
    parser.add_argument("path", metavar="NOTEBOOK", type=Path, help="the notebook (.ipynb); it is never changed")
    parser.add_argument("-o", "--output", metavar="FOLDER", type=Path, required=True, help="the package; a new folder")
    add_choice(parser)
    parser.add_argument("--diff", action="store_true", help="show what changed, and why")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Purify, and say what came of it."""
    said = choice(args)
    name = ship.name_for(args.path, said.name)
    done = purify.purify(args.path, args.output, name=name, model=said.model, python=said.python, progress=progress)
    if args.json:
        print_json(_json(done))
        return 0
    if args.diff:
        print(done.diff)
    print(f"{done.folder}: {', '.join(sorted(done.files))}")
    print(f"{len(done.recipe.taken)} statements taken, {len(done.left)} left out; the answers are the notebook's own")
    if done.metrics:
        rows = [(n, _number(before), _number(after)) for n, (before, after) in done.metrics.items()]
        table(("metric", "in the notebook", "by the package"), rows)
    return 0


def _json(done: purify.Purified) -> dict[str, Any]:
    return {
        "folder": str(done.folder),
        "files": sorted(done.files),
        "metrics": {n: {"before": before, "after": after} for n, (before, after) in done.metrics.items()},
        "randomness": done.recipe.randomness,
        "taken": [{"cell": s.cell, "line": s.line} for s in done.recipe.taken],
        "left_out": [{"cell": s.cell, "line": s.line} for s in done.left],
        "settings": dict(done.recipe.files),
        "diff": done.diff,
    }


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.6g}"
