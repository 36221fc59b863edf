"""How a process under a guard says what it has to say."""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import Callable
from typing import Any

from taxiway.app.build.lifeline import die_with_parent
from taxiway.core.errors import Refused

Progress = Callable[[str], None]


def speak(spec: dict[str, Any], work: Callable[[Progress], object]) -> int:
    """Do `work` and report through the pipe of `spec`; 0 done, 1 refused, 3 a bug (its traceback goes to the log)."""
    die_with_parent()
    # What the notebook starts must not hold on to the pipe.
    os.set_inheritable(spec["events"], False)
    events = os.fdopen(spec["events"], "w", buffering=1)

    def say(**what: Any) -> None:
        print(json.dumps(what), file=events, flush=True)

    try:
        work(lambda line: say(progress=line))
    except Refused as error:
        say(refused=list(error.reasons), code=error.code)
        return 1
    except Exception:
        traceback.print_exc()
        return 3
    say(done=True)
    return 0
