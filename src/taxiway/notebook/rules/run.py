"""What only running the notebook can tell, and what is wrong with the remarks that silence rules."""

from __future__ import annotations

from typing import Final

from taxiway.notebook.rules.rule import Rule

RULES: Final = (
    Rule(
        "output-changed",
        "A stored output that a fresh run does not give",
        "warning",
        "The numbers in the notebook, which people have seen and decided by, are not those of this code and data.",
        "Restart, run all, compare; look for randomness without a seed, changed data, changed library versions.",
        (),
        (),
        None,
    ),
    Rule(
        "rounding",
        "A model that tells float64 from float32",
        "warning",
        "Requests carry float32. This model answers some rows otherwise once they are rounded to that.",
        "Cast the data to float32 before fitting.",
        (),
        (),
        None,
    ),
    Rule(
        "unused-column",
        "A column that the model does not look at",
        "note",
        "Callers would send it for nothing.",
        "Nothing: it is no part of the contract.",
        (),
        (),
        None,
    ),
    Rule(
        "fails-on-input",
        "Input that the notebook's model fails on",
        "warning",
        "The exported model answers where the original raises an error: nobody knows whether that answer is right.",
        "Forbid such values in the contract (taxiway.yaml).",
        (),
        (),
        None,
    ),
    Rule(
        "python-step",
        "A part of the model that stays Python",
        "note",
        "It has no right conversion to ONNX, so it runs in a process of its own beside the engine: slower than the "
        "graph behind it, and in need of the notebook's libraries where it is served.",
        "Nothing, if that is fast enough. Else replace it by a transformer that converts, or do that step before the "
        "pipeline; export.python_step: false in taxiway.yaml refuses such models.",
        (),
        (),
        None,
    ),
    Rule(
        "ignore-without-reason",
        "A rule silenced without a reason",
        "warning",
        "In a year nobody knows whether the remark still holds.",
        "Write why: # taxiway: ignore[print] the log of this batch job is its output",
        (),
        (),
        None,
    ),
    Rule(
        "unknown-ignore",
        "A rule silenced that does not exist",
        "warning",
        "The remark does nothing.",
        "Correct the name; `taxiway check --rules` lists them.",
        (),
        (),
        None,
    ),
    Rule(
        "unused-ignore",
        "A remark that silences nothing",
        "note",
        "What it silenced is gone.",
        "Remove the remark.",
        (),
        (),
        None,
    ),
)
