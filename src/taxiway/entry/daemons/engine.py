"""`python -m taxiway.entry.daemons.engine STATE MODEL@N`: keep one revision's engine."""

import os
import sys
import time
from pathlib import Path

from taxiway.app.keep import keep_revision
from taxiway.app.wire import Platform
from taxiway.core.revision import Revision


def main(argv: list[str]) -> int:
    """Run until SIGTERM; 1 when the revision's bytes cannot be proved."""
    state, revision = argv
    return keep_revision(Platform.at(Path(state)), Revision.parse(revision), now=time.time(), pid=os.getpid())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
