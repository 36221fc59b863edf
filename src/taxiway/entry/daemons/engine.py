"""`python -m taxiway.entry.daemons.engine STATE MODEL@N DIGEST`: keep one revision's engine."""

import sys
from pathlib import Path

from taxiway.app.keep import keep_revision
from taxiway.app.places import Places
from taxiway.core.errors import Refused
from taxiway.core.revision import Revision


def main(argv: list[str]) -> int:
    """Run until SIGTERM; 1 when the engine cannot be started or its bytes cannot be proved."""
    state, revision, digest = argv
    try:
        return keep_revision(Places(Path(state)), Revision.parse(revision), digest)
    except Refused as error:
        print(error, flush=True)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
