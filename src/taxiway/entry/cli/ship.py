"""`taxiway ship`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from taxiway.app import ship
from taxiway.entry.cli.choice import add_choice, choice
from taxiway.entry.cli.output import add_json, add_state, platform, print_json, progress


def arguments(parser: argparse.ArgumentParser) -> None:
    """What to ship, under which name."""
    parser.add_argument("path", metavar="NOTEBOOK", type=Path, help="the notebook (.ipynb)")
    add_choice(parser)
    parser.add_argument("--plan", action="store_true", help="say what would be done, and do nothing")
    add_state(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Ship, and say what to do next."""
    if args.plan:
        return _plan(args)
    chosen = choice(args)
    done = ship.ship(
        platform(args),
        args.path,
        name=chosen.name,
        model=chosen.model,
        progress=progress,
        python=chosen.python,
        config=chosen.config,
    )
    if args.json:
        print_json(_json(done))
        return 0
    model, number = done.revision.model, done.revision.number
    print(f"\n{done.revision}  {done.digest}")
    print(f"parity   {_parity(done.parity)}")
    print(f"samples  {done.samples} golden samples answered alike by the engine and through the gateway")
    serious = [f for f in done.report if f["severity"] != "note"]
    for finding in serious[:10]:
        print(f"notebook cell {finding['cell']}, line {finding['line']}: {finding['message']}")
    if len(done.report) > len(serious[:10]):
        print(f"notebook {len(done.report)} findings in all: taxiway check {args.path}")
    if done.answering:
        print(f"traffic  {done.revision} answers")
    else:
        print(f"traffic  held at 0 %; move it: taxiway traffic {model} {number}=100")
    return 0


def _plan(args: argparse.Namespace) -> int:
    said = choice(args)
    name, steps = ship.plan(
        platform(args), args.path, name=said.name, model=said.model, python=said.python, config=said.config
    )
    if args.json:
        found = [{"step": s.name, "does": s.does, "remark": s.remark} for s in steps]
        print_json({"model": name, "notebook": str(args.path), "steps": found})
        return 0
    print(f"ship {args.path} as model {name!r}:")
    for number, step in enumerate(steps, 1):
        print(f"  {number}. {step.name:8} {step.does}{f' ({step.remark})' if step.remark else ''}")
    return 0


def _json(done: ship.Shipped) -> dict[str, Any]:
    return {
        "model": done.revision.model,
        "revision": done.revision.number,
        "digest": done.digest,
        "new": done.new,
        "parity": done.parity,
        "report": done.report,
        "answering": done.answering,
        "golden_samples": done.samples,
    }


def _parity(parity: dict[str, Any]) -> str:
    return (
        f"{parity['rows']} rows, {parity['label_flips']} label flips, "
        f"max abs error {parity['max_abs_error']:.2g}, max rel error {parity['max_rel_error']:.2g}"
    )
