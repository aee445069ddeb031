"""What can happen to a conversation. Every event carries its time (seconds since the epoch)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from teamchat.core.routing.requests import RouteRequest


class ResumeMode(StrEnum):
    RETRY = "retry"
    SKIP = "skip"
    DROP = "drop"


@dataclass(frozen=True, slots=True)
class HumanSpoke:
    """A person's message was stored. `drops` are names to take out of the queue; None is DROP: ALL.

    A `wordless` one, of markers only, is no answer to a question.
    """

    now: float
    message: str
    speaker: str
    requests: tuple[RouteRequest, ...] = ()
    drops: tuple[str, ...] | None = ()
    wordless: bool = False


@dataclass(frozen=True, slots=True)
class TurnBegan:
    """The turn of a route starts; `as_of` is the message it answers."""

    now: float
    route: int
    as_of: str


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """The turn of a route is over. `reply` is the stored message; None is a failure.

    `speaker` answered in place of the route's target. `new` is False for a reply that says nothing new.
    """

    now: float
    route: int
    reply: str | None
    requests: tuple[RouteRequest, ...] = ()
    drops: tuple[str, ...] | None = ()
    speaker: str | None = None
    new: bool = True


@dataclass(frozen=True, slots=True)
class Spent:
    """What a turn cost, whether it succeeded or not; what is not known counts nothing."""

    now: float
    tokens: int = 0
    cost_usd: float = 0.0


@dataclass(frozen=True, slots=True)
class MemberAnswered:
    """A member of a group has its reply, which the turn `answer` keeps until the group is over."""

    now: float
    route: int
    answer: int


@dataclass(frozen=True, slots=True)
class GroupRan:
    """Every turn that was started for a group is over; those of the routes `failed` have no reply."""

    now: float
    failed: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupDelivered:
    """The replies of a group were stored as messages: their ends, in the order in which the members were named."""

    now: float
    ends: tuple[TurnEnded, ...]


@dataclass(frozen=True, slots=True)
class Resumed:
    """The user lets go on what stopped: the same again, without the first turn or question, or nothing of it all."""

    now: float
    mode: ResumeMode = ResumeMode.RETRY


@dataclass(frozen=True, slots=True)
class StopRequested:
    """Ctrl-C or SIGTERM."""

    now: float


@dataclass(frozen=True, slots=True)
class Recovered:
    """The conversation was opened and nobody else runs it: whatever ran before is dead."""

    now: float


Event = (
    HumanSpoke
    | TurnBegan
    | TurnEnded
    | Spent
    | MemberAnswered
    | GroupRan
    | GroupDelivered
    | Resumed
    | StopRequested
    | Recovered
)
