"""How long to wait before starting a server again."""

from __future__ import annotations

LONGEST_S = 10.0
STABLE_S = 60.0


def delay(failures: int, *, was_ready: bool) -> float:
    """Seconds to wait after the `failures`-th failure in a row (from 1).

    A server that had been serving is replaced at once the first time; after that, and when it never came
    up, the wait doubles from one second to ten.
    """
    if was_ready and failures == 1:
        return 0.0
    return float(min(LONGEST_S, 2.0 ** min(failures - 1, 10)))
