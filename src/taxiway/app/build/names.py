"""The names of a build's files that more than one part of the product knows."""

from __future__ import annotations

from typing import Final

STEP_FILES: Final = ("step.pkl", "step.json", "step-requirements.txt")
