"""`taxiway revision`."""

from __future__ import annotations

import argparse
from typing import Any

from taxiway.app import revisions
from taxiway.core.revision import Revision
from taxiway.entry.cli.output import add_json, add_state, platform, print_json, table


def arguments(parser: argparse.ArgumentParser) -> None:
    """What to do with which revision."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    show = actions.add_parser("show", help="what it is, and the proof that it answers as the notebook's model does")
    show.add_argument("revision", metavar="MODEL@N")
    add_state(show)
    add_json(show)


def run(args: argparse.Namespace) -> int:
    """Print the page."""
    facts = revisions.show(platform(args), Revision.parse(args.revision))
    if args.json:
        print_json(facts)
    else:
        _page(facts)
    return 0


def _page(facts: dict[str, Any]) -> None:
    lineage, parity = facts["lineage"], facts["parity"]
    print(f"{facts['revision']}  {facts['digest']}{'' if facts['unaltered'] else '  ALTERED: its files were changed'}")
    if facts["traffic_percent"] is not None:
        print(f"traffic   {facts['traffic_percent']:g} %")
    score = f", score {lineage['score']:.4g} in the notebook" if lineage["score"] is not None else ""
    print(f"model     {lineage['model']}: {lineage['class']}{score}")
    print(f"notebook  {lineage['notebook']} {lineage['notebook_digest']}, commit {lineage['git_commit'] or 'none'}")
    print(f"built by  Python {lineage['python']}, {', '.join(f'{n} {v}' for n, v in facts['requirements'].items())}")
    step = facts["python_step"]
    if step is not None:
        pins = ", ".join(f"{n} {v}" for n, v in step["requirements"].items())
        print(f"in front  a Python step, on Python {step['python']} with {pins}")
    _contract(facts["contract"])
    _parity(parity, facts["engine_parity"], facts["golden_samples"])
    for finding in facts["report"]:
        level = finding.get("severity", "noted")
        print(f"{level:9} cell {finding['cell']}, line {finding['line']}: {finding['message']}")


def _contract(contract: dict[str, Any]) -> None:
    print(f"\ncontract  at most {contract['max_batch']} rows a request")
    rows = [
        (kind[:-1], f["name"], f["dtype"], str(f["dims"]), _observed(f), _rules(f), ", ".join(f["columns"])[:60])
        for kind in ("inputs", "outputs")
        for f in contract[kind]
    ]
    table(("", "tensor", "type", "dims", "seen", "rules", "columns"), rows)


def _rules(field: dict[str, Any]) -> str:
    """What is enforced, in few words."""
    said = ["finite"] if field["finite"] and field["dtype"].startswith("FP") else []
    said += [f"{k.removeprefix('max_')} up to {field[k]}" for k in ("max_length", "max_bytes") if field.get(k)]
    said += [f"as long as {field['same_length_as']}"] if field.get("same_length_as") else []
    for column in field.get("table", ()):
        name = f"{column['name']}: " if column.get("name") and len(field["table"]) > 1 else ""
        bounds = [f"from {column['minimum']:g}"] if "minimum" in column else []
        bounds += [f"to {column['maximum']:g}"] if "maximum" in column else []
        bounds += [f"one of {len(column['allowed'])} values"] if "allowed" in column else []
        bounds += ["may be missing"] if column.get("nullable") else []
        said += [f"{name}{' '.join(bounds)}"] if bounds else []
    return ", ".join(said)[:80] or "-"


def _observed(field: dict[str, Any]) -> str:
    return "-" if field["observed"] is None else "{:.4g} to {:.4g}".format(*field["observed"])


def _parity(parity: dict[str, Any], engine: dict[str, Any] | None, golden: int) -> None:
    limits = parity["tolerance"]
    print(f"\nparity with the notebook's model (allowed: {limits['atol']:.3g} + {limits['rtol']:.3g} of the value)")
    for name, inferred in limits.get("overridden", {}).items():
        print(f"a person has set {name} to {limits[name]:.3g} in taxiway.yaml; left out, it would be {inferred:.3g}")
    rows = [("the notebook's rows", str(parity["rows"]), *_errors(parity), str(parity["label_flips"]), "0")]
    for kind, made in parity.get("made", {}).items():
        errors = (f"{made['max_abs_error']:.2g}", "-")
        rows.append((f"made: {kind}", str(made["rows"]), *errors, str(made["flips"]), str(made["differing"])))
    if engine is not None:
        rows.append(("through the engine", str(engine["rows"]), *_errors(engine), str(engine["label_flips"]), "0"))
    table(("rows", "count", "max abs error", "max rel error", "label flips", "differing"), rows)
    if engine is None:
        print("not asked through the engine yet: taxiway ship does that")
    print(f"golden samples: {golden}; ONNX Runtime {parity['onnxruntime']}, least {parity['onnxruntime_least']}")


def _errors(figures: dict[str, Any]) -> tuple[str, str]:
    return f"{figures['max_abs_error']:.2g}", f"{figures['max_rel_error']:.2g}"
