"""Pages of the documentation that are written from the code they describe."""

from __future__ import annotations

from taxiway.notebook.rules import RULES
from taxiway.proof.support import MATRIX

_SUPPORT = """# What can be shipped

Every row has a test of its own. **exact** means: the exported model gave the answers of the notebook's own model, on
every row that the notebook showed and on rows made to break it (halfway between values, unknown categories, missing
values, text beyond ASCII), in the exporting process and through the engine. **refused** means: there is no right
conversion, so `taxiway ship` says so and names the way out; it never becomes a revision.

Whatever the table says, each build is proved anew on its own data.
"""


def support() -> str:
    """docs/support.md."""
    lines = [_SUPPORT]
    for library in dict.fromkeys(row.library for row in MATRIX):
        lines += [f"## {library}", "", "| model | | to know, or the way out |", "|---|---|---|"]
        lines += [f"| {r.what} | {r.verdict} | {r.note} |" for r in MATRIX if r.library == library]
        lines.append("")
    return "\n".join(lines)


_RULES = """# What `taxiway check` looks for

`# taxiway: ignore[rule] reason` silences a rule: on a line, there; alone on a line, on the next; as the first line of a
cell, in all of it. Errors end `taxiway check` with 1; `--fail-on` moves that line.
"""


def rules() -> dict[str, str]:
    """docs/rules/: a table of all rules and a page for each, by file name."""
    lines = [_RULES, "| rule | severity | what |", "|---|---|---|"]
    lines += [f"| [{r.id}]({r.id}.md) | {r.severity} | {r.title} |" for r in RULES.values()]
    return {"README.md": "\n".join(lines) + "\n"} | {f"{name}.md": _rule(name) for name in RULES}


def _rule(name: str) -> str:
    rule = RULES[name]
    lines = [f"# {rule.title} (`{rule.id}`)", "", f"Severity: {rule.severity}.", ""]
    lines += [f"**Why it matters.** {rule.why}", "", f"**What to do.** {rule.fix}", ""]
    if rule.find is None:
        lines += ["Reported by a build or by `taxiway check` itself; it has no example."]
    for title, cells in (("Found in", rule.bad), ("Not found in", rule.good)):
        for cell in cells:
            lines += [f"{title}:", "", *(f"    {line}".rstrip() for line in cell.splitlines()), ""]
    return "\n".join(lines).rstrip() + "\n"
