"""How often a property is tried: little in `make test`, which finds what is wrong in most, and more in `make fuzz`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

TIMES = int(os.environ.get("TRIALS", "1"))


Case = TypeVar("Case")


def trials(few: int) -> int:
    """The number of examples, of which `make test` takes these few."""
    return few * TIMES


def some(cases: Sequence[Case], *few: Case) -> Sequence[Case]:
    """The cases, of which `make test` takes these few."""
    assert set(few) <= set(cases)
    return cases if TIMES > 1 else few
