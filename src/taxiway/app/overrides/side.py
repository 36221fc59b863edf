"""The inputs of a contract, or its outputs: their fields, and what was recorded of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from taxiway.core.contract import Field
from taxiway.core.sample import Tensor

Rows = Sequence[Mapping[str, Tensor]]
Words = Mapping[str, Any]
"""What is said of one tensor by key; `columns` by the column's number."""


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """`kind` is the key in taxiway.yaml, inputs or outputs.

    `fields` by name, `inputs` those that one can be as long as; `rows` are the recorded values of the fields, `asked`
    the inputs of the same requests.
    """

    kind: str
    fields: Mapping[str, Field]
    inputs: Mapping[str, Field]
    rows: Rows = ()
    asked: Rows = ()

    def place(self, name: str) -> str:
        """Where in taxiway.yaml something is said of a tensor."""
        return f"contract.{self.kind}.{name}"


def column_place(where: str, field: Field, column: int, words: Words | None = None) -> str:
    """Where something is said of a column: under its own name, unless `words` only speak of the tensor."""
    name = field.columns[column] if column < len(field.columns) else str(column)
    own = words is None or column in words["columns"]
    return where + (f".columns.{name}" if own else "")
