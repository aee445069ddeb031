"""What can happen to a conversation. Every event carries its time (seconds since the epoch)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from teamchat.core.routing import RouteRequest


class ResumeMode(StrEnum):
    RETRY = "retry"
    SKIP = "skip"
    DROP = "drop"


@dataclass(frozen=True, slots=True)
class HumanSpoke:
    """A person's message was stored. `drops` are names to take out of the queue; None is DROP: ALL."""

    now: float
    message: str
    speaker: str
    requests: tuple[RouteRequest, ...] = ()
    drops: tuple[str, ...] | None = ()


@dataclass(frozen=True, slots=True)
class TurnBegan:
    """The turn of a route starts; `as_of` is the message it answers."""

    now: float
    route: int
    as_of: str


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """The turn of a route is over. `reply` is the stored message; None is a failure."""

    now: float
    route: int
    reply: str | None
    requests: tuple[RouteRequest, ...] = ()
    drops: tuple[str, ...] | None = ()


@dataclass(frozen=True, slots=True)
class Resumed:
    """The user lets go on what was held: the first held route again, or without it, or nothing of it."""

    now: float
    mode: ResumeMode = ResumeMode.RETRY


@dataclass(frozen=True, slots=True)
class Stopped:
    """Ctrl-C or SIGTERM."""

    now: float


@dataclass(frozen=True, slots=True)
class Recovered:
    """The conversation was opened and nobody else runs it: whatever ran before is dead."""

    now: float


Event = HumanSpoke | TurnBegan | TurnEnded | Resumed | Stopped | Recovered
