"""Which vendors asked to be left alone, remembered across runs: a small file in the user's state folder."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable
from pathlib import Path

from teamchat.core.whole_files import locked_beside, write_private
from teamchat.runners.regular_files import read_regular

LARGEST = 1 << 16  # bytes
COOL_S = 60.0  # after a rate limit; CLIs do not say how long theirs lasts


class Cooldowns:
    """Until when a vendor cools down, by the clock `now`; a file that cannot be used costs a try, never a turn."""

    def __init__(self, file: Path, now: Callable[[], float] = time.time) -> None:
        self._file, self._now = file, now

    def left(self, vendor: str) -> float:
        """How many seconds are left of the vendor's cool-down; 0 when there is none."""
        return max(0.0, self._known().get(vendor, 0.0) - self._now())

    def start(self, vendor: str, seconds: float = COOL_S) -> None:
        """Let the vendor cool down from now on."""
        with contextlib.suppress(OSError), locked_beside(self._file) as new:  # another process may do the same
            write_private(new, json.dumps({**self._known(), vendor: self._now() + seconds}).encode())
            new.replace(self._file)

    def _known(self) -> dict[str, float]:
        """Until when each vendor cools down. What ends later than any does was written by a clock that was ahead."""
        now = self._now()
        try:
            known = json.loads(read_regular(self._file, LARGEST)).items()
            return {name: float(until) for name, until in known if now < float(until) <= now + COOL_S}
        except (OSError, ValueError, TypeError, AttributeError, OverflowError, RecursionError):
            return {}
