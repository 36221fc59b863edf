"""Whether the instances that a configuration asks for fit into a machine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tritonclient.grpc import model_config_pb2 as pb

from taxiway.gates.config import Read
from taxiway.gates.mistake import Machine, Mistake, at_key

# What a process of the engine needs beside the model.
RESERVE: Final = 150 << 20
_GPU: Final = pb.ModelInstanceGroup.KIND_GPU


def check(found: Read, path: str, machine: Machine, size: int) -> Iterator[Mistake]:
    """Instances that are too many for the machine, or for another; `size` is that of the model's files in bytes."""
    config = found.config
    say = at_key(path, found.at)
    if (config.backend or config.platform) == "ensemble" or found.is_lost("instance_group"):
        return
    if not config.instance_group:
        message = "without instance_group Triton starts two copies on a CPU; say count: 1 kind: KIND_AUTO"
        yield say("", message, "warning")
    for i, group in enumerate(config.instance_group):
        if group.kind == _GPU and not machine.gpu:
            message = "KIND_GPU fails to load where there is no GPU; KIND_AUTO fits both"
            yield say(f"instance_group[{i}].kind", message, "warning")
        if group.count < 0:
            yield say(f"instance_group[{i}].count", f"count is {group.count}; at least one instance is needed")
    counted = _instances(config)
    where = "instance_group[0].count"
    if counted > machine.cores:
        message = f"{counted} instances share {machine.cores} cores; more than one a core is slower, not faster"
        yield say(where, message, "warning")
    needed = counted * (size + RESERVE)
    if needed > machine.memory:
        yield say(where, f"{counted} instances need about {needed >> 20} MB, {machine.memory >> 20} MB are free")


def _instances(config: Any) -> int:
    """How many run beside each other on processors; Triton makes two where nothing is said."""
    groups = config.instance_group
    return sum(max(g.count, 1) for g in groups if g.kind != _GPU) if groups else 2
