"""`python -m teamchat` and the script `teamchat`."""

from __future__ import annotations

import gc
import sys

if __name__ == "__main__" and not sys.flags.safe_path:
    sys.path.pop(0)  # with `-m` the folder you are in, where a module would hide one of the standard library

from teamchat.cli.startup.interrupts import end_at_once

end_at_once()

COLLECTED_AFTER = 100_000
"""New objects between two collections. Python's default of 700 takes a tenth of a start and frees nothing."""

gc.set_threshold(COLLECTED_AFTER)


def main() -> None:
    from teamchat.cli.app import main as program

    program()


if __name__ == "__main__":
    main()
