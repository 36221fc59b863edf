"""Why a server did not start, from what it wrote: the sentence that helps, not the log."""

from __future__ import annotations

import re
from typing import Final

# The most telling first; what stands before the cause in the answer.
_PATTERNS: Final = (
    (re.compile(r"Error parsing text-format inference\.ModelConfig: (.*)"), "config.pbtxt: "),
    (re.compile(r"^error: creating server: .*?is at UNAVAILABLE state: (.*?)(?:\n\nAt:|;\n|\Z)", re.S | re.M), ""),
    (re.compile(r"failed to load '[^']+' version \d+: (.*?)\"$", re.M), ""),
    (re.compile(r"^error: (?:creating server: )?(.*)", re.M), ""),
    # What other programs say (a dynamic linker, a shell): neither Triton's log nor its tables.
    (re.compile(r"^(?!\s|[IWEF]\d{4} |[+|]).*\S.*$", re.M), ""),
    (re.compile(r'^[EF]\d{4} \S+ \d+ [\w.]+:\d+\] "?(.*?)"?$', re.M), ""),
)
# Said on every machine without a GPU.
_NOISE: Final = ("CudaDriverHelper", "pinned system memory")
_KINDS: Final = re.compile(r"^(?:(?:Internal|Invalid argument): |\w+(?:Error|Exception): )+")


def cause(log: str) -> str | None:
    """The cause in the log of one start; None when it names none."""
    for pattern, before in _PATTERNS:
        found = [text for text in pattern.findall(log) if not any(noise in text for noise in _NOISE)]
        if found:
            return before + _short(found[-1])
    return None


def _short(text: str) -> str:
    text = text.replace("\\n", "\n").split("\n\nAt:")[0].strip().rstrip("; ")
    return _KINDS.sub("", " ".join(text.split()))[:600]
