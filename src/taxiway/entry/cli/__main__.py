"""`python -m taxiway.entry.cli`: the same as `taxiway`."""

import sys

from taxiway.entry.cli import main

if __name__ == "__main__":
    sys.exit(main())
