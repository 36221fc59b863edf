"""`python -m taxiway.engine SPEC.json`: the keeper as a process, with nothing else of the product loaded."""

import signal

# First of all: a stop that comes while modules are still loading must wait for the keeper, which knows what
# runs, instead of ending this process and leaving a server of its predecessor behind.
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})

import sys  # noqa: E402
from pathlib import Path  # noqa: E402

from taxiway.core.errors import TaxiwayError  # noqa: E402
from taxiway.engine.keeper import keep  # noqa: E402
from taxiway.engine.spec import EngineSpec  # noqa: E402


def main(argv: list[str]) -> int:
    """Keep the engine that the file named in `argv` describes; 1 when refused, 2 when called wrongly."""
    if len(argv) != 1:
        print("usage: python -m taxiway.engine SPEC.json", file=sys.stderr)
        return 2
    try:
        spec = EngineSpec.read(Path(argv[0]))
        return keep(spec, log=lambda line: print(f"{spec.model}@{spec.number}: {line}", flush=True))
    except TaxiwayError as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
