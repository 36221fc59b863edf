"""The command line and environment of one server."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from taxiway.engine import steps
from taxiway.engine.home import EngineHome
from taxiway.engine.spec import EngineSpec
from taxiway.engine.status import Ports


@dataclass(frozen=True, slots=True)
class Command:
    """What to execute."""

    argv: tuple[str, ...]
    env: Mapping[str, str]


def command(engine: EngineHome, spec: EngineSpec, ports: Ports, run: str) -> Command:
    """One server that serves exactly `spec`'s model, on loopback, with shared memory named `run`."""
    environment = _environment(engine) | _of_step(spec, run)
    return Command(argv=(str(engine.server), *_options(engine, spec, ports, run)), env=environment)


def shared_memory_prefix(run: str) -> str:
    """How the names of the server's shared-memory segments begin; also found in its stubs' command lines."""
    return f"{run}_"


def _options(engine: EngineHome, spec: EngineSpec, ports: Ports, run: str) -> list[str]:
    loopback = [f"--{kind}-address=127.0.0.1" for kind in ("http", "grpc", "metrics")]
    return [
        f"--model-repository={spec.repository}",
        f"--backend-directory={engine.backends}",
        *loopback,
        f"--http-port={ports.http}",
        f"--grpc-port={ports.grpc}",
        f"--metrics-port={ports.metrics}",
        "--reuse-http-port=false",
        "--reuse-grpc-port=false",
        # More threads than cores answer no faster alone, and slower beside a busy gateway.
        f"--http-thread-count={max(2, min(8, len(os.sched_getaffinity(0))))}",
        "--allow-gpu-metrics=false",
        # One model, named; nothing is picked up from the folder and nothing is guessed from the graph.
        "--model-control-mode=explicit",
        f"--load-model={spec.model}",
        "--disable-auto-complete-config",
        "--strict-readiness=true",
        f"--exit-timeout-secs={spec.exit_timeout_s}",
        # This form reaches Python-based backends of any name.
        f"--backend-config=python,shm-region-prefix-name={shared_memory_prefix(run)}",
    ]


def _of_step(spec: EngineSpec, run: str) -> dict[str, str]:
    """What the stub must know to start the model's Python step, if it has one."""
    wanted = steps.need(spec.version)
    python = None if wanted is None else steps.located(spec.home, wanted)
    return {} if python is None else {"TAXIWAY_STEP_PYTHON": str(python), "TAXIWAY_RUN": shared_memory_prefix(run)}


def _environment(engine: EngineHome) -> dict[str, str]:
    return {
        # The stub finds its packages through the first python3 on PATH; it ignores PYTHONPATH.
        "PATH": f"{engine.scripts}:/usr/bin:/bin",
        "LD_LIBRARY_PATH": f"{engine.bundled}:{engine.library}",
        "LANG": "C.UTF-8",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
