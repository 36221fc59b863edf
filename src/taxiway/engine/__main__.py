"""`python -m taxiway.engine SPEC.json`: the keeper as a process, with nothing else of the product loaded."""

import sys
from pathlib import Path

from taxiway.core.errors import TaxiwayError
from taxiway.engine.keeper import keep
from taxiway.engine.spec import EngineSpec


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
