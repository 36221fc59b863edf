"""What is looked for in a notebook: a table of rules, each a plain function from facts to hits.

A module holds the rules of one subject. A new rule is an entry in its module's `RULES`; its page in the documentation
and the tests of its own examples follow from it.
"""

from __future__ import annotations

from typing import Final

from taxiway.notebook.rules import display, leakage, libraries, order, places, run, secrets, state
from taxiway.notebook.rules.rule import SEVERITIES, Rule, Severity

RULES: Final[dict[str, Rule]] = {
    rule.id: rule
    for module in (order, leakage, places, secrets, libraries, state, display, run)
    for rule in module.RULES
}

__all__ = ["RULES", "SEVERITIES", "Rule", "Severity"]
