"""What the engine tells the coordinator to do. A `final` action says how the conversation goes on."""

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
    """`left`: nobody asked for it to be dropped, the person it waited for is no longer in the team."""

    final: ClassVar[bool] = False
    route: Route
    left: bool = False


@dataclass(frozen=True, slots=True)
class NotDropped:
    """A route that `agent` wanted to drop, and which stays: a person has queued it."""

    final: ClassVar[bool] = False
    route: Route
    agent: str


@dataclass(frozen=True, slots=True)
class Refused:
    """A route that was not queued: there are as many waiting as may wait."""

    final: ClassVar[bool] = False
    route: Route
    limit: int


@dataclass(frozen=True, slots=True)
class RunGroup:
    """These routes of one group at the same time."""

    final: ClassVar[bool] = True
    routes: tuple[Route, ...]


@dataclass(frozen=True, slots=True)
class Deliver:
    """Every turn of a group is over: the replies of these routes become messages, together and in this order."""

    final: ClassVar[bool] = True
    routes: tuple[Route, ...]


@dataclass(frozen=True, slots=True)
class GroupFailed:
    """These routes of a group failed; `all_of_it` when no other succeeded. Everything left is held."""

    final: ClassVar[bool] = True
    routes: tuple[Route, ...]
    all_of_it: bool


@dataclass(frozen=True, slots=True)
class RunTurn:
    final: ClassVar[bool] = True
    route: Route


@dataclass(frozen=True, slots=True)
class HumanAsked:
    """A person is to speak; the queue waits."""

    final: ClassVar[bool] = True
    route: Route


@dataclass(frozen=True, slots=True)
class Paused:
    """A guard, or the user, stopped it; everything is held."""

    final: ClassVar[bool] = True
    kind: PauseKind
    reason: str


@dataclass(frozen=True, slots=True)
class TurnFailed:
    """The turn of this route failed; it and the rest of the queue are held."""

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
    | RunTurn
    | RunGroup
    | Deliver
    | HumanAsked
    | Paused
    | TurnFailed
    | GroupFailed
    | Idle
)
