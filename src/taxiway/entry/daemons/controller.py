"""`python -m taxiway.entry.daemons.controller STATE`: the reconcile loop and the control API on loopback."""

import sys
import threading
import time
from pathlib import Path
from typing import Any, Final

import uvicorn

from taxiway.app import issuers
from taxiway.app.reconcile import tick
from taxiway.app.wire import Platform
from taxiway.core.errors import TaxiwayError
from taxiway.entry.api import application

_TICK_S: Final = 0.5
_ISSUER_S: Final = 300.0


def main(argv: list[str]) -> int:
    """Run until SIGTERM."""
    platform = Platform.at(Path(argv[0]))
    stop = threading.Event()
    loop = threading.Thread(target=_loop, args=(platform, stop), name="reconcile", daemon=True)
    loop.start()
    server = uvicorn.Server(
        uvicorn.Config(
            application(platform),
            host="127.0.0.1",
            port=platform.settings.console_port,
            log_level="warning",
            access_log=False,
        )
    )
    server.run()
    stop.set()
    loop.join(timeout=5)
    return 0


def _loop(platform: Platform, stop: threading.Event) -> None:
    last: dict[str, Any] = {"line": None, "issuer": time.monotonic()}

    def log(line: str) -> None:
        if line != last["line"]:  # the same trouble, ten times a second, is said once
            print(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {line}", flush=True)
        last["line"] = line

    while not stop.wait(_TICK_S):
        try:
            if platform.settings.jwks and time.monotonic() - last["issuer"] > _ISSUER_S:
                last["issuer"] = time.monotonic()
                issuers.refresh(platform)
            tick(platform, log)
        except TaxiwayError as error:
            log(str(error))
        except Exception as error:  # the loop must outlive any bug of ours; the next tick starts from nothing
            log(f"bug: {type(error).__name__}: {error}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
