"""PyTorch modules to ONNX: eager modules through `torch.export`, TorchScript through its own exporter.

A module is exported in evaluation mode, with a free batch axis, its weights inside. A module that decides by the
*values* of its input (`if x.sum() > 0`) has no such form: that is refused, never traced silently along one branch.
"""

from __future__ import annotations

import contextlib
import copy
import io
import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import onnx

from taxiway.core.errors import Refused
from taxiway.proof.cases import Array, Case, columns_of_rows
from taxiway.proof.graph import rename_outputs

OPSET: Final = 18
_SAID: Final = 400


def frozen(module: Any) -> Any:
    """A copy of `module` on the CPU in evaluation mode: what is exported, and what is asked for right answers."""
    try:
        return copy.deepcopy(module).cpu().eval()
    except Exception as error:
        raise Refused(
            f"{type(module).__name__} cannot be copied for the export: {_short(error)}",
            "What to do: keep only parameters, buffers and modules in it.",
            code="no-conversion",
        ) from error


def answers(module: Any, feeds: Mapping[str, Array]) -> dict[str, Array]:
    """What the module says to `feeds` (arrays by argument name), by output name."""
    import torch

    with torch.no_grad():
        result = module(**{n: torch.from_numpy(v.copy()) for n, v in feeds.items()})
    if isinstance(result, dict):
        named = {str(k): v for k, v in result.items()}
    elif isinstance(result, list | tuple):
        named = {f"output_{i}": v for i, v in enumerate(result)}
    else:
        named = {"output": result}
    return {name: v.detach().cpu().numpy() for name, v in named.items()}


def cases(module: Any, asked: Sequence[Mapping[str, Array]]) -> list[Case]:
    """The frozen module's answers to what the notebook asked it."""
    found = []
    for feeds in asked:
        expected = {n: columns_of_rows(v) for n, v in answers(module, feeds).items()}
        found.append(Case({n: columns_of_rows(v) for n, v in feeds.items()}, expected))
    return found


def export(module: Any, asked: Sequence[Mapping[str, Array]], *, scripted: bool, opset: int = OPSET) -> Any:
    """The ONNX model of a frozen module; axes that differ between the calls in `asked` stay open.

    Raises Refused when it has no ONNX form.
    """
    example, axes = _example(asked)
    names = list(answers(module, example))
    said = io.StringIO()
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            warnings.simplefilter("ignore")
            convert = _scripted if scripted else _exported
            model = convert(module, example, axes, names, opset)
    except Exception as error:  # torch's exporters fail with every kind of error
        raise _refused(module, error) from error
    rename_outputs(model, dict(zip((o.name for o in model.graph.output), names, strict=True)))
    return model


def _example(asked: Sequence[Mapping[str, Array]]) -> tuple[dict[str, Array], dict[str, list[int]]]:
    """Two rows to export with, and the open axes by input: the batch, and those whose length differs."""
    first = asked[0]
    axes = {
        name: [0, *(k for k in range(1, v.ndim) if len({a[name].shape[k] for a in asked}) > 1)]
        for name, v in first.items()
    }
    # One row would make the exporter believe that there is always one.
    rows = {name: np.concatenate([v, v])[: max(2, min(len(v), 4))] for name, v in first.items()}
    return rows, axes


def _exported(
    module: Any, example: Mapping[str, Array], axes: Mapping[str, list[int]], names: list[str], opset: int
) -> Any:
    import torch

    batch = torch.export.Dim("batch")
    dims = {
        name: {k: batch if k == 0 else torch.export.Dim(f"{name}_{k}") for k in open_axes}
        for name, open_axes in axes.items()
    }
    program = torch.onnx.export(
        module,
        (),
        kwargs={n: torch.from_numpy(v) for n, v in example.items()},
        dynamo=True,
        opset_version=opset,
        external_data=False,
        dynamic_shapes=dims,
        input_names=list(example),
        output_names=names,
    )
    assert program is not None
    return onnx.load_model_from_string(program.model_proto.SerializeToString())


def _scripted(
    module: Any, example: Mapping[str, Array], axes: Mapping[str, list[int]], names: list[str], opset: int
) -> Any:
    import torch

    target: Any = io.BytesIO()
    open_axes: dict[str, dict[int, str]] = {
        n: {k: "batch" if k == 0 else f"{n}_{k}" for k in a} for n, a in axes.items()
    }
    torch.onnx.export(
        module,
        tuple(torch.from_numpy(v) for v in example.values()),
        target,
        dynamo=False,
        opset_version=min(opset, 17),
        input_names=list(example),
        output_names=names,
        dynamic_axes=open_axes | {name: {0: "batch"} for name in names},
    )
    return onnx.load_model_from_string(target.getvalue())


def _refused(module: Any, error: BaseException) -> Refused:
    chain: list[str] = []
    cause: BaseException | None = error
    while cause is not None:
        chain.append(f"{type(cause).__name__}: {str(cause)[: 10 * _SAID]}")
        cause = cause.__cause__ or cause.__context__
    text = " ".join(chain)
    if "DataDependent" in text or "data-dependent" in text or "data dependent" in text:
        return Refused(
            f"{type(module).__name__} decides by the values of its input (an `if` on a tensor, or `.item()`), which no "
            "exported model can do.",
            "What to do: use torch.where, masks or torch.cond instead; or script it (torch.jit.script), which keeps "
            "the branch.",
            code="data-dependent",
        )
    if ("missing" in text and "onnxscript" in text) or "No module named 'onnxscript'" in text:
        return Refused(
            "exporting a module of PyTorch needs onnxscript, which is not installed where the notebook runs.",
            "What to do: pip install 'taxiway[torch]' (or onnxscript) there.",
            code="missing-extra",
        )
    return Refused(
        f"{type(module).__name__} cannot be converted to ONNX: {_short(error)}",
        "What to do: change what the message names so that torch.export.export(model, args) succeeds.",
        code="no-conversion",
    )


def _short(error: BaseException) -> str:
    plain = re.sub(r"\x1b\[[0-9;]*m", "", str(error)[: 10 * _SAID])
    summary = plain.partition("Exception summary")[2].strip() or plain
    return " ".join(summary.split())[:_SAID]
