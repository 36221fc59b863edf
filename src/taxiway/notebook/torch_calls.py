"""What PyTorch modules were asked while a notebook ran.

PyTorch calls a module by `model(x)`, which no syntax tells from any other call; its global hooks tell it. They are set
as soon as the notebook has imported torch. Only outermost calls count (a model calls its layers), and of each module
the first rows of the first calls are kept, for training loops ask millions.
"""

from __future__ import annotations

import importlib.machinery
import inspect
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, Final

_HOOKED: Final = "torch.nn.modules.module"
METHOD: Final = "forward"
KEPT_ROWS: Final = 512
_KEPT_CALLS: Final = {True: 64, False: 1024}  # in training, in evaluation

Note = Callable[[Any, Any, Any, bool], None]


def is_module(thing: Any) -> bool:
    """Whether `thing` is a module of PyTorch, a scripted or traced one included."""
    return any(kind.__module__ == _HOOKED and kind.__name__ == "Module" for kind in type(thing).__mro__)


def is_scripted(thing: Any) -> bool:
    """Whether it is TorchScript (scripted, traced, or loaded from a file of it)."""
    return any(kind.__name__ == "ScriptModule" for kind in type(thing).__mro__)


def has_weights(thing: Any) -> bool:
    """Loss functions and activations are modules, too; without parameters nothing was learned."""
    return next(iter(thing.parameters()), None) is not None


def inputs(module: Any) -> tuple[str, ...]:
    """The names of the arguments of `forward`."""
    if is_scripted(module) and hasattr(module.forward, "schema"):
        return tuple(str(a.name) for a in module.forward.schema.arguments[1:])
    return tuple(inspect.signature(type(module).forward).parameters)[1:]


class Watch:
    """Has `note(module, inputs by name, outputs, training)` called for each outermost call, with numpy copies
    of the first KEPT_ROWS rows.

    `inputs` is None when an argument is no tensor.
    """

    def __init__(self, note: Note) -> None:
        self._note = note
        self._depth = 0
        self._calls: dict[int, int] = {}

    def start(self) -> None:
        """Hook into torch now if it was imported, else as soon as it is."""
        module = sys.modules.get(_HOOKED)
        if module is not None:
            self._hook(module)
        else:
            sys.meta_path.insert(0, _After(_HOOKED, self._hook))

    def _hook(self, module: ModuleType) -> None:
        module.register_module_forward_pre_hook(self._begin)
        module.register_module_forward_hook(self._end, with_kwargs=True, always_call=True)

    def _begin(self, _module: Any, _given: Any) -> None:
        self._depth += 1

    def _end(self, module: Any, given: Sequence[Any], *rest: Any) -> None:
        # After an error torch leaves the named arguments out.
        named, result = rest if len(rest) == 2 else ({}, None)
        self._depth = max(0, self._depth - 1)
        if self._depth or result is None or not has_weights(module):
            return
        seen = self._calls[id(module)] = self._calls.get(id(module), 0) + 1
        if seen > _KEPT_CALLS[bool(module.training)]:
            return
        self._note(module, _by_name(module, given, named), _arrays(result), bool(module.training))


class _After:
    """Finds one module as always, and calls back once it is loaded."""

    def __init__(self, name: str, then: Callable[[ModuleType], None]) -> None:
        self._name = name
        self._then = then

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname != self._name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.loader is None:
            return spec
        load, then = spec.loader.exec_module, self._then

        def loaded(module: ModuleType) -> None:
            load(module)
            then(module)

        spec.loader.exec_module = loaded  # type: ignore[method-assign]
        return spec


def _by_name(module: Any, given: Sequence[Any], named: dict[str, Any]) -> dict[str, Any] | None:
    try:
        all_of_them = dict(zip(inputs(module), given, strict=False)) | named
        arrays = {name: _array(value) for name, value in all_of_them.items()}
    except (ValueError, TypeError, AttributeError, RuntimeError):
        return None
    return None if len(given) > len(arrays) or any(v is None for v in arrays.values()) else arrays


def _arrays(result: Any) -> dict[str, Any] | None:
    """Outputs by name: a dict's own names, `output`, or `output_0`, `output_1`, ..."""
    if isinstance(result, dict):
        found = {str(k): _array(v) for k, v in result.items()}
    elif isinstance(result, list | tuple):
        found = {f"output_{i}": _array(v) for i, v in enumerate(result)}
    else:
        found = {"output": _array(result)}
    return None if any(v is None for v in found.values()) else found


def _array(value: Any) -> Any | None:
    """A numpy copy of a dense tensor with a first axis; None for anything else."""
    if not hasattr(value, "detach") or value.dim() == 0:
        return None
    try:
        return value.detach()[:KEPT_ROWS].cpu().numpy().copy()
    except (TypeError, RuntimeError):
        return None
