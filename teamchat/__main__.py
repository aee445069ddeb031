"""`python -m teamchat` and the script `teamchat`."""

from __future__ import annotations

import gc
import sys

from teamchat.cli.shared.interrupts import end_at_once
from teamchat.cli.shared.postponed import postpone

COLLECTED_AFTER = 100_000
"""New objects between two collections. Python's default of 700 takes a tenth of a start and frees nothing."""

end_at_once()
gc.set_threshold(COLLECTED_AFTER)
postpone()
sys.modules["ssl"] = None  # type: ignore[assignment]  # asyncio does without OpenSSL, which takes 5 ms to load


def main() -> None:
    from teamchat.cli.app import main as program

    program()


if __name__ == "__main__":
    main()
