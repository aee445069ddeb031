"""The repository's files as `@` offers them: listed by git in a thread of its own, and kept for some seconds."""

from __future__ import annotations

import os
import time
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

from teamchat.patterns import regex
from teamchat.runners.child.command import run

LISTED = ("git", "ls-files", "-co", "--exclude-standard", "-z")
FRESH_S = 5.0  # how long a list stays valid
LONGEST_S = 30.0  # the most time that git gets
TAB_WAITS_S = 1.0  # how long Tab waits at most for a list that is still being made
MOST_OFFERED = 50
_ONE_WORD = regex(r"[\w./@%#=~-]*\w")


class Files:
    """The files below `root` that git knows or would add; without git there are none. Asking for files never blocks."""

    def __init__(self, root: Path) -> None:
        self._root, self._listed_at = root, 0.0
        self._names: list[tuple[str, str]] = []  # what is compared, and the name
        self._thread: Thread | None = None
        self.refresh()

    def refresh(self) -> None:
        """List the files again if the list is old and no other is being made."""
        busy = self._thread is not None and self._thread.is_alive()
        if not busy and (not self._listed_at or time.monotonic() - self._listed_at > FRESH_S):
            self._thread = Thread(target=self._list, name="files", daemon=True)
            self._thread.start()

    def beginning_with(self, typed: str, *, wait: bool = False) -> list[str]:
        """List the first files whose path begins with `typed`. With `wait` it waits a moment for the first list."""
        self.refresh()
        if wait and not self._listed_at and self._thread:
            self._thread.join(TAB_WAITS_S)
        names, low = self._names, typed.casefold()
        first = bisect_left(names, (low, ""))
        return [name for key, name in names[first : first + MOST_OFFERED] if key.startswith(low)]

    def _list(self) -> None:
        try:
            ended = run(LISTED, self._root, os.environ, LONGEST_S)
        except (OSError, ValueError):
            ended = None
        if ended and ended.code == 0:
            self._names = sorted({(name.casefold(), name) for name in _words(ended.out)})
        self._listed_at = time.monotonic()


def _words(listed: bytes) -> Iterator[str]:
    """Yield the names that can be typed as one word."""
    names = listed.decode(errors="replace").split("\0")
    return (name for name in names if _ONE_WORD.fullmatch(name))
