"""The actions of the engine: what the coordinator does. A `final` action says how the conversation continues."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from teamchat.core.engine.state import Route


class PauseKind(StrEnum):
    TURNS = "turns"
    TIME = "time"
    TOKENS = "tokens"
    COST = "cost"
    LOOP = "loop"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class Queued:
    final: ClassVar[bool] = False
    route: Route


@dataclass(frozen=True, slots=True)
class Dropped:
    """A route leaves the queue. `left`: nobody dropped it, but its person has left the team."""

    final: ClassVar[bool] = False
    route: Route
    left: bool = False


@dataclass(frozen=True, slots=True)
class NotDropped:
    """A route that `agent` cannot drop, because a person has queued it."""

    final: ClassVar[bool] = False
    route: Route
    agent: str


@dataclass(frozen=True, slots=True)
class Refused:
    """A route that is not queued: the queue is full."""

    final: ClassVar[bool] = False
    route: Route
    limit: int


@dataclass(frozen=True, slots=True)
class NotCalled:
    """A member that an agent calls in `message` and that is not queued: the run hands over to nobody."""

    final: ClassVar[bool] = False
    target: str
    by: str
    message: str


@dataclass(frozen=True, slots=True)
class RunGroup:
    """The turns of these routes of one group run at the same time."""

    final: ClassVar[bool] = True
    routes: tuple[Route, ...]


@dataclass(frozen=True, slots=True)
class Deliver:
    """All turns of a group are over. The replies of these routes become messages, in this order."""

    final: ClassVar[bool] = True
    routes: tuple[Route, ...]


@dataclass(frozen=True, slots=True)
class GroupFailed:
    """These routes of a group failed. `all_of_it`: no other route of it succeeded. The rest of the queue is held."""

    final: ClassVar[bool] = True
    routes: tuple[Route, ...]
    all_of_it: bool


@dataclass(frozen=True, slots=True)
class RunTurn:
    final: ClassVar[bool] = True
    route: Route


@dataclass(frozen=True, slots=True)
class HumanAsked:
    """A person is asked, and the queue waits."""

    final: ClassVar[bool] = True
    route: Route


@dataclass(frozen=True, slots=True)
class Paused:
    """A guard or a person stopped the run. The whole queue is held."""

    final: ClassVar[bool] = True
    kind: PauseKind
    reason: str


@dataclass(frozen=True, slots=True)
class TurnFailed:
    """The turn of this route failed. It and the rest of the queue are held."""

    final: ClassVar[bool] = True
    route: Route


@dataclass(frozen=True, slots=True)
class Idle:
    """Nobody is left to speak."""

    final: ClassVar[bool] = True


Action = (
    Queued
    | Dropped
    | NotDropped
    | Refused
    | NotCalled
    | RunTurn
    | RunGroup
    | Deliver
    | HumanAsked
    | Paused
    | TurnFailed
    | GroupFailed
    | Idle
)
