"""What goes into and comes out of models and transformers while a notebook runs.

The syntax tree of every cell is rewritten so that `thing.fit(X)` becomes `record(thing, "fit")(X)`; the recorder
calls through and keeps, for estimators and ONNX sessions, copies of the rows that went in and came out (the
notebook may change its arrays in place later) next to the objects themselves (to tell them apart).
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

METHODS: Final = frozenset(
    {"fit", "fit_transform", "transform", "predict", "predict_proba", "decision_function", "score", "run"}
)
HOOK: Final = "__taxiway_record__"


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """One finished call: `given` and `came` are the notebook's own objects, `rows` and `result` copies of them.

    For `session.run`, `rows` is `{"outputs": names or None, "feeds": {name: array}}` and `result` the list of arrays.
    """

    cell: int
    owner: Any
    method: str
    given: Any
    rows: Any
    came: Any
    result: Any


class Rewriter(ast.NodeTransformer):
    """Sends the calls of METHODS through the recorder."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr in METHODS:
            hook = ast.copy_location(ast.Name(HOOK, ast.Load()), node.func)
            method = ast.copy_location(ast.Constant(node.func.attr), node.func)
            node.func = ast.copy_location(ast.Call(hook, [node.func.value, method], []), node.func)
        return node


class Recorder:
    """Keeps the calls of one run in the order in which they ended; `cell` is set by the session."""

    def __init__(self) -> None:
        self.cell = 0
        self.calls: list[Call] = []

    def __call__(self, owner: Any, method: str) -> Callable[..., Any]:
        bound: Callable[..., Any] = getattr(owner, method)
        if not is_model_like(owner):
            return bound

        def through(*args: Any, **kwargs: Any) -> Any:
            given = _first(method, args, kwargs)
            rows = _copied(given)
            came = bound(*args, **kwargs)
            # fit() returns the estimator itself: no need to copy that.
            result = None if came is owner else _copied(came)
            self.calls.append(Call(self.cell, owner, method, given, rows, came, result))
            return came

        return through


def is_model_like(thing: Any) -> bool:
    """Whether calls of `thing` are worth keeping: estimators by their shape, ONNX sessions by their name."""
    kind = type(thing)
    if kind.__name__ == "InferenceSession" and kind.__module__.startswith("onnxruntime"):
        return True
    return callable(getattr(kind, "fit", None)) and callable(getattr(kind, "get_params", None))


def _first(method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if method == "run":
        named = dict(zip(("output_names", "input_feed"), args, strict=False)) | kwargs
        return {"outputs": named.get("output_names"), "feeds": named.get("input_feed")}
    return args[0] if args else kwargs.get("X")


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _copied(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_copied(v) for v in value] if any(hasattr(v, "shape") for v in value) else copy.copy(value)
    return value.copy() if hasattr(value, "copy") else value
