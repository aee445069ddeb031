"""Which vendors asked to be left alone, remembered across runs: a small file in the user's state folder."""

from __future__ import annotations

import contextlib
import fcntl
import json
import time
from collections.abc import Callable
from pathlib import Path

COOL_S = 60.0  # after a rate limit; CLIs do not say how long theirs lasts


class Cooldowns:
    """Until when a vendor cools down, by the clock `now`; a file that can not be used costs a try, never a turn."""

    def __init__(self, file: Path, now: Callable[[], float] = time.time) -> None:
        self._file, self._now = file, now

    def left(self, vendor: str) -> float:
        """How many seconds are left of the vendor's cool-down; 0 when there is none."""
        try:
            known = _parse(self._file.read_bytes())
        except OSError:
            return 0.0
        return min(max(0.0, known.get(vendor, 0.0) - self._now()), COOL_S)  # the clock may have been set back

    def start(self, vendor: str, seconds: float = COOL_S) -> None:
        """Let the vendor cool down from now on."""
        now = self._now()
        with contextlib.suppress(OSError), self._file.open("a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # another process may do the same
            file.seek(0)
            known = {name: until for name, until in _parse(file.read()).items() if until > now}
            file.truncate(0)
            file.write(json.dumps({**known, vendor: now + seconds}).encode())


def _parse(content: bytes) -> dict[str, float]:
    try:
        known = json.loads(content)
        return {name: float(until) for name, until in known.items() if isinstance(until, int | float)}
    except (ValueError, AttributeError, OverflowError, RecursionError):
        return {}
