"""The Python step of a build: packed with all it needs, and run as the engine will run it.

What has no right conversion to ONNX (a transformer of one's own, text beyond ASCII) is pickled with the code that the
notebook itself defines, and answers in a process of its own with the notebook's libraries: while it is proved, and in
the engine.
"""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import numpy as np

from taxiway.app.build.names import STEP_FILES
from taxiway.core.errors import Refused
from taxiway.engine.backends.onnxruntime.taxiway_onnx.rules import BadRequest
from taxiway.engine.backends.onnxruntime.taxiway_onnx.step import Step, StepError
from taxiway.proof import ort
from taxiway.proof.cases import Array
from taxiway.proof.tensors import Signature

try:
    import cloudpickle
except ImportError:  # older joblibs, which scikit-learn brings along, have it inside
    from joblib.externals import cloudpickle

# A request of the largest batch should not need gigabytes between the step and the model.
WIDEST: Final = 100_000
_CHUNK: Final = 64 << 20
_FORMAT: Final = 1
# What is loaded with every Python, and what lends its code to a build.
_NEVER: Final = frozenset({"pip", "setuptools", "wheel", "taxiway", "virtualenv", "uv"})
_WAY_OUT: Final = "What to do: use a transformer of scikit-learn that converts, or do that step before the pipeline."

Transform = Callable[[Mapping[str, Array]], Mapping[str, Array]]


@dataclass(frozen=True, slots=True, eq=False)
class Packed:
    """`pickled` is the transformer, `spec` how tables and tensors are told apart (see the engine's `worker.py`)."""

    pickled: bytes
    spec: Mapping[str, Any]
    requirements: Mapping[str, str] = field(default_factory=dict)

    @property
    def width(self) -> int:
        """Values per row between the step and the model."""
        return sum(int(one["width"]) for one in self.spec["gives"])

    def files(self) -> dict[str, bytes]:
        """The files of a build, by name."""
        pins = "".join(f"{n}=={v}\n" for n, v in sorted(self.requirements.items()))
        spec = json.dumps(self.spec, indent=1, sort_keys=True) + "\n"
        return dict(zip(STEP_FILES, (self.pickled, spec.encode(), pins.encode()), strict=True))


class Running:
    """A step at work; `used` are the modules it has loaded so far."""

    def __init__(self, step: Step, width: int) -> None:
        self._step = step
        self._rows = max(1, _CHUNK // (4 * max(1, width)))

    def chunks(self, feeds: Mapping[str, Array]) -> Iterator[Mapping[str, Array]]:
        """The model's tensors, so many rows at a time. Raises `Refused` when the step fails."""
        rows = len(next(iter(feeds.values())))
        for start in range(0, max(1, rows), self._rows):
            yield self.transform({n: v[start : start + self._rows] for n, v in feeds.items()})

    def transform(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        """The model's tensors of these rows, at once."""
        try:
            return self._step(feeds)
        except (BadRequest, StepError) as error:
            raise Refused(f"{error}", _WAY_OUT, code="step-fails") from error

    def used(self) -> frozenset[str]:
        """The modules that it has loaded."""
        return frozenset(self._step.modules())


class Stepped:
    """A step and the ONNX model behind it, asked like the model alone."""

    def __init__(self, running: Running, model: bytes) -> None:
        self._running = running
        self._served = ort.Served(model)
        self._model = model
        self.scalars = self._served.scalars

    def run(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """Answers by name for one batch."""
        parts = [self._served.run(chunk) for chunk in self._running.chunks(feeds)]
        return {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}

    def empty(self, feeds: Mapping[str, Array]) -> str:
        """What becomes of no rows at all; as `ort.empty` says it."""
        try:
            between = self._running.transform({n: v[:0] for n, v in feeds.items()})
        except Refused:
            return "fails"
        return ort.empty(self._model, between, self.scalars)


class Alone:
    """An ONNX model without a step, asked in the same way."""

    def __init__(self, model: bytes) -> None:
        self._served = ort.Served(model)
        self._model = model
        self.scalars = self._served.scalars

    def run(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """Answers by name for one batch."""
        return self._served.run(feeds)

    def empty(self, feeds: Mapping[str, Array]) -> str:
        """What becomes of no rows at all; as `ort.empty` says it."""
        return ort.empty(self._model, feeds, self.scalars)


@contextlib.contextmanager
def served(model: bytes, packed: Packed | None) -> Iterator[Alone | Stepped]:
    """`model` behind its step, if it has one, as it will be served."""
    if packed is None:
        yield Alone(model)
        return
    with running(packed) as step:
        yield Stepped(step, model)


@contextlib.contextmanager
def running(packed: Packed) -> Iterator[Running]:
    """The step in a process of its own; raises `Refused` when it does not come up there."""
    with tempfile.TemporaryDirectory(prefix="taxiway-step-") as folder:
        for name, data in packed.files().items():
            (Path(folder) / name).write_bytes(data)
        try:
            step = Step(sys.executable, Path(folder))
        except StepError as error:
            raise Refused(
                f"{error}.",
                "What to do: the step must load without the notebook: keep its code in the notebook or in files next "
                "to it, and everything else in installed packages.",
                code="step-not-packable",
            ) from error
        try:
            yield Running(step, packed.width)
        finally:
            step.close()


def pack(front: Any, asked: Any, inputs: Signature, gives: Signature, folder: Path) -> Packed:
    """`front` with how `asked` (a table of rows) reaches it as `inputs`, and leaves it as `gives`.

    Code of the notebook and of files in `folder` goes along; raises `Refused` when something in it cannot.
    """
    width = sum(one.width for one in gives)
    if width > WIDEST:
        raise Refused(
            f"the Python step gives {width} values for each row; at most {WIDEST} can be served.",
            "What to do: limit them, for instance TfidfVectorizer(max_features=20000).",
            code="step-too-wide",
        )
    mine = [module for module in list(sys.modules.values()) if _is_in(module, folder)]
    for module in mine:
        cloudpickle.register_pickle_by_value(module)
    try:
        pickled: bytes = cloudpickle.dumps(front)
    except Exception as error:  # objects that cannot be pickled raise errors of every kind
        said = " ".join(str(error).split())[:300]
        raise Refused(
            f"the Python step cannot be packed: {type(error).__name__}: {said}",
            "What to do: let the transformer hold no open files, locks, connections or generators.",
            code="step-not-packable",
        ) from error
    finally:
        for module in mine:
            cloudpickle.unregister_pickle_by_value(module)
    spec = {
        "format": _FORMAT,
        "python": ".".join(map(str, sys.version_info[:3])),
        "table": _table(asked, inputs),
        "gives": [{"name": g.name, "dtype": g.dtype, "width": g.width, "column": g.column} for g in gives],
    }
    return Packed(pickled, spec)


def _table(asked: Any, inputs: Signature) -> dict[str, Any]:
    """The form of the table, so that the engine can make it of tensors again."""
    if not hasattr(asked, "iloc"):
        return {"form": "texts"} if asked.ndim == 1 else {"form": "matrix", "dtype": asked.dtype.str}
    whole = inputs[0].column is None
    columns = [
        {"name": name, "dtype": str(asked[name].dtype), "tensor": inputs[0].name if whole else name}
        | {"place": place if whole else 0}
        for place, name in enumerate(asked.columns)
    ]
    return {"form": "frame", "columns": columns}


def _is_in(module: Any, folder: Path) -> bool:
    """Whether `module` is a file of the person's own, next to the notebook."""
    file = getattr(module, "__file__", None)
    if not isinstance(file, str) or module.__name__ == "__main__":
        return False
    path = Path(file)
    inside = path.is_relative_to(folder) and not path.is_relative_to(sys.prefix)
    return inside and not {"site-packages", "dist-packages"} & set(path.parts)


def requirements(modules: Sequence[str] | frozenset[str]) -> dict[str, str]:
    """Distribution -> version of everything that `modules` belong to, and of what these need in turn.

    Raises `Refused` for a distribution that no index has.
    """
    owners = metadata.packages_distributions()
    names = {_canonical(d) for module in modules for d in owners.get(module, ())} - _NEVER
    found: dict[str, str] = {}
    rest = sorted(names | {"numpy"})
    while rest:
        name = rest.pop()
        if name in found:
            continue
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue  # what is optional and not there was not used
        _from_index(name, distribution)
        found[name] = distribution.version
        rest += sorted(set(_needs(distribution)) - found.keys())
    return dict(sorted(found.items()))


def _needs(distribution: metadata.Distribution) -> Iterator[str]:
    from packaging.requirements import Requirement

    for text in distribution.requires or ():
        needed = Requirement(text)
        if needed.marker is None or needed.marker.evaluate({"extra": ""}):
            yield _canonical(needed.name)


def _from_index(name: str, distribution: metadata.Distribution) -> None:
    direct = distribution.read_text("direct_url.json")
    if direct:
        raise Refused(
            f"the Python step needs {name} {distribution.version}, which was installed from a folder or an address, "
            "not from a package index: the engine could not install it.",
            f"What to do: publish {name} to the index that pip uses, or put the code that the step needs next to the "
            "notebook.",
            code="step-not-installable",
        )


def _canonical(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")
