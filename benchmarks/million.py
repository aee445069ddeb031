"""A conversation of a million messages, made once for all benchmarks of a run: it takes a minute and 1.5 GB."""

from __future__ import annotations

import atexit
from contextlib import ExitStack
from functools import cache

from benchmarks.filled_store import fill
from benchmarks.startup import TEAM
from benchmarks.world import World, world

MESSAGES = 1_000_000


@cache
def million() -> World:
    """The world of the million, which is removed when the program ends."""
    stack = ExitStack()
    atexit.register(stack.close)
    made = stack.enter_context(world(TEAM))
    fill(made.enter(), MESSAGES)
    return made
