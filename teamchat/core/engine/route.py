"""A route: the queued request that a member speak."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    WAITING = "waiting"
    RUNNING = "running"
    ANSWERED = "answered"  # its reply is kept until the others of its group have theirs
    ASKED = "asked"  # a person is asked, and the queue waits for the answer
    HELD = "held"  # left by a failure, a guard, Ctrl-C or a crash; only `resume` moves it
    DONE = "done"
    DROPPED = "dropped"


OPEN = (Status.WAITING, Status.ANSWERED, Status.ASKED)


@dataclass(frozen=True, slots=True)
class Route:
    """`parent` is the message that asked for it, said by `by`; `request` the human message all this serves.

    `as_of` is the message the turn answers, fixed when it first starts, so that a retry sees the same. `attempt`
    counts the turns that began for it. `answer` is the turn whose reply is kept for a group that is not complete.
    """

    parent: str
    by: str
    request: str
    number: int = 0
    target: str = ""
    priority: int = 2
    group: int | None = None
    as_of: str | None = None
    status: Status = Status.WAITING
    attempt: int = 0
    answer: int | None = None
