"""How often a property is tried: little in `make test`, which finds what is wrong in most, and more in `make fuzz`."""

from __future__ import annotations

import os

TIMES = int(os.environ.get("TRIALS", "1"))


def trials(few: int) -> int:
    """The number of examples, of which `make test` takes these few."""
    return few * TIMES
