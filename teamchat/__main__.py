"""`python -m teamchat` and the script `teamchat`."""

from __future__ import annotations

import gc
import sys

from teamchat.cli.shared.interrupts import end_at_once
from teamchat.cli.shared.known_places import find_by_known_places

end_at_once()
find_by_known_places()

from teamchat.cli.shared.postponed import postpone  # noqa: E402 (what it imports is found there, too)

COLLECTED_AFTER = 100_000
"""New objects between two collections. Python's default of 700 takes a tenth of a start and frees nothing."""

gc.set_threshold(COLLECTED_AFTER)
postpone()
sys.modules["ssl"] = None  # type: ignore[assignment]  # asyncio does without OpenSSL, which takes 5 ms to load


def main() -> None:
    from teamchat.cli.app import main as program

    program()


if __name__ == "__main__":
    main()
