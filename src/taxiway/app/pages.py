"""Pages of the documentation that are written from the code they describe."""

from __future__ import annotations

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
