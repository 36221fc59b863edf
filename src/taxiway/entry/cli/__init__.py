"""The command line: one file per command, loaded only when that command is called.

Every command module has `HELP` (one line), `arguments(parser)` and `run(args) -> int`. Exit codes: 0 done,
1 refused with reasons, 2 usage, 3 a bug of ours, 130 interrupted.
"""

from __future__ import annotations

import argparse
import errno
import importlib
import sys
import traceback
from typing import Final

from taxiway import __version__
from taxiway.core.errors import Refused, Usage

COMMANDS: Final = {
    "up": "start the platform: gateway, controller, one engine per live revision",
    "down": "stop the platform and leave nothing behind",
    "status": "processes, models, revisions, traffic, health",
    "ship": "take a notebook to a proved revision behind the gateway",
    "revision": "show what a revision is, and the proof that it answers as the notebook's model does",
    "diff": "what differs between two revisions",
    "check": "list what in a notebook will hurt in production; reads it only",
    "purify": "take the code that a model depends on out of a notebook, as a package",
    "validate": "list every mistake in a model repository or a stored revision",
    "traffic": "split a model's traffic between its revisions",
    "rollback": "give all traffic back to the revision that answered before",
    "history": "who changed a model's traffic, when and why",
    "schema": "print the JSON Schema of a configuration file, for editors",
    "token": "make a bearer token for a caller",
    "request": "print a curl line that asks a model for a real answer",
    "engine": "install the engine's own environment",
}

DONE: Final = 0
REFUSED: Final = 1
USAGE: Final = 2
BUG: Final = 3
INTERRUPTED: Final = 130

# Troubles of the machine rather than of the program: no room, no right, no more files.
_MACHINE: Final = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE}
)


def main(argv: list[str] | None = None) -> int:
    """Run one command; the only place where exceptions become exit codes."""
    words = sys.argv[1:] if argv is None else argv
    try:
        return _run(words)
    except Usage as error:
        print(f"taxiway: {error}", file=sys.stderr)
        return USAGE
    except Refused as error:
        _refused(error, words)
        return REFUSED
    except KeyboardInterrupt:
        print("taxiway: interrupted; nothing is half done, run the same command again", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        return DONE
    except OSError as error:
        if error.errno not in _MACHINE:
            return _bug(words)
        where = f"{error.filename}: " if error.filename else "the state folder or the one for temporary files: "
        _refused(
            Refused(f"{where}{error.strerror}; put that right and run the same command again", code="machine"), words
        )
        return REFUSED
    except Exception:
        return _bug(words)


def _bug(words: list[str]) -> int:
    print(f"taxiway {__version__}: this is a bug of ours; please report all of this:", file=sys.stderr)
    print(f"command: taxiway {' '.join(words)}", file=sys.stderr)
    traceback.print_exc()
    return BUG


def _run(words: list[str]) -> int:
    name = next((w for w in words if not w.startswith("-")), None)
    parser = argparse.ArgumentParser(
        prog="taxiway", description="Takes a model from a notebook to a service that a team dares to run."
    )
    parser.add_argument("--version", action="version", version=f"taxiway {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command, text in COMMANDS.items():
        sub = commands.add_parser(command, help=text, description=f"{text[0].upper()}{text[1:]}.")
        if command == name:
            module = importlib.import_module(f"taxiway.entry.cli.{command}")
            module.arguments(sub)
            sub.set_defaults(run=module.run)
    try:
        args = parser.parse_args(words)
    except SystemExit as ended:
        return int(ended.code or 0)
    return int(args.run(args))


def _refused(error: Refused, words: list[str]) -> None:
    if "--json" in words:
        from taxiway.entry.cli.output import print_json

        print_json({"refused": {"code": error.code, "reasons": list(error.reasons)}})
    first, *rest = error.reasons or ("refused",)
    print(f"taxiway: {first}", file=sys.stderr)
    for reason in rest:
        print(f"  {reason}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
