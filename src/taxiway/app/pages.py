"""Pages of the documentation that are written from the code they describe."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from taxiway.app.config import read
from taxiway.notebook.rules import RULES
from taxiway.proof.support import MATRIX

_SUPPORT = """# What can be shipped

Every row has a test of its own. **exact** means: the exported model gave the answers of the notebook's own model, on
every row that the notebook showed and on rows made to break it (halfway between values, unknown categories, missing
values, text beyond ASCII), in the exporting process and through the engine. **step** means the same, but the first
steps of the pipeline stay Python: they run in a process of their own in front of the ONNX model, in the same revision,
with the notebook's own libraries. **refused** means: there is no right conversion, so `taxiway ship` says so and names
the way out; it never becomes a revision.

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


_CONFIGURATION = """# taxiway.yaml

What Taxiway should know about a notebook, in a file beside it. Every key may be left out; `taxiway ship --config FILE`
names another file, and a flag goes before the file. A mistake is told with line and column, and all of them at once.

For completion in an editor: `taxiway schema > taxiway.schema.json`, and as the first line of taxiway.yaml
`# yaml-language-server: $schema=taxiway.schema.json`.

| key | meaning | type | default |
|---|---|---|---|
"""
_EXAMPLE = """
An example:

```yaml
model: churn
serving:
  max_batch: 64
  instances: 2
  queue_delay_us: 500
parity:
  rtol: 0.001
contract:
  inputs:
    age: {min: 18, max: 120}
    plan: {allowed: [prepaid, basic, family, business]}
    city: {max_bytes: 64}
  outputs:
    label: {allowed: [0, 1]}
    probabilities: {min: 0, max: 1}
```

What is written under `contract.inputs` is enforced in the engine: a request outside gets a 400 that names input, row,
column and what is accepted. A rule that the notebook's own rows break is refused when the notebook is shipped.

What is written under `contract.outputs` is a promise to callers. The engine does not check its own answers; instead a
promise is refused when an answer of the notebook's model contradicts it, be it to the notebook's rows or to rows made
from them that callers could send.

A tolerance that is set under `parity` holds for the whole proof: in the exporting process, through the engine, and for
the golden samples asked for ever after. It is recorded with the revision, and `taxiway revision show` says that a
person has set it, and what it would have been. Labels and whole numbers are never tolerated.

More `instances` answer more requests at once where there are cores for them, and each takes memory. They are refused
when they do not fit into the memory that is free; more than one a core is a warning. A `queue_delay_us` is only worth
its wait when batches are much faster than rows one by one: under load they form without it.
`taxiway validate` holds it against `timeout_ms`, that of the revision or of the taxiway.yaml in or beside a repository.
"""


def configuration() -> str:
    """docs/configuration.md."""
    return _CONFIGURATION + "".join(_keys(read.schema(), read.schema(), "")) + _EXAMPLE


def _keys(root: Mapping[str, Any], part: Mapping[str, Any], before: str) -> Iterator[str]:
    for name, value in part.get("properties", {}).items():
        path = f"{before}{name}"
        kinds = value.get("type", "anything")
        words = kinds if isinstance(kinds, str) else " or ".join(kinds)
        if "minimum" in value:
            words += (
                f", {value['minimum']} to {value['maximum']}" if "maximum" in value else f", from {value['minimum']}"
            )
        default = f"`{json.dumps(value['default'])}`" if value.get("default") is not None else ""
        yield f"| `{path}` | {value['description']} | {words} | {default} |\n"
        yield from _keys(root, value, f"{path}.")
        inner = value.get("additionalProperties")
        if isinstance(inner, dict):
            named = root["$defs"][inner["$ref"].rpartition("/")[2]]
            yield from _keys(root, named, f"{path}.NAME.")
