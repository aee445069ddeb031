"""The actions of the engine: what the coordinator does. A `final` action says how the conversation continues."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

from msgspec import Struct

from teamchat.core.engine.state import Route

if TYPE_CHECKING:
    from teamchat.core.engine.process import Process


class PauseKind(StrEnum):
    TURNS = "turns"
    TIME = "time"
    TOKENS = "tokens"
    COST = "cost"
    LOOP = "loop"
    INTERRUPTED = "interrupted"


class Queued(Struct, frozen=True):
    final: ClassVar[bool] = False
    route: Route


class Dropped(Struct, frozen=True):
    """A route leaves the queue. `left`: nobody dropped it, but its person has left the team."""

    final: ClassVar[bool] = False
    route: Route
    left: bool = False


class NotDropped(Struct, frozen=True):
    """A route that `agent` cannot drop, because a person has queued it."""

    final: ClassVar[bool] = False
    route: Route
    agent: str


class Refused(Struct, frozen=True):
    """A route that is not queued: the queue is full."""

    final: ClassVar[bool] = False
    route: Route
    limit: int


class NotCalled(Struct, frozen=True):
    """A member that an agent calls in `message` and that is not queued: the run hands over to nobody.

    `process`: the process decides who speaks.
    """

    final: ClassVar[bool] = False
    target: str
    by: str
    message: str
    process: bool = False


class Reassigned(Struct, frozen=True):
    """The part of a member that failed goes to `route.target`."""

    final: ClassVar[bool] = False
    route: Route
    failed: str


class Moved(Struct, frozen=True):
    """A process has got further, or is over."""

    final: ClassVar[bool] = False
    process: Process


class RunGroup(Struct, frozen=True):
    """The turns of these routes of one group run at the same time, at most `jobs` of them."""

    final: ClassVar[bool] = True
    routes: tuple[Route, ...]
    jobs: int | None = None


class Deliver(Struct, frozen=True):
    """All turns of a group are over. The replies of these routes become messages, in this order."""

    final: ClassVar[bool] = True
    routes: tuple[Route, ...]


class GroupFailed(Struct, frozen=True):
    """These routes of a group failed. `all_of_it`: no other route of it succeeded. The rest of the queue is held."""

    final: ClassVar[bool] = True
    routes: tuple[Route, ...]
    all_of_it: bool


class RunTurn(Struct, frozen=True):
    final: ClassVar[bool] = True
    route: Route


class HumanAsked(Struct, frozen=True):
    """A person is asked, and the queue waits."""

    final: ClassVar[bool] = True
    route: Route


class Paused(Struct, frozen=True):
    """A guard or a person stopped the run. The whole queue is held."""

    final: ClassVar[bool] = True
    kind: PauseKind
    reason: str


class TurnFailed(Struct, frozen=True):
    """The turn of this route failed. It and the rest of the queue are held."""

    final: ClassVar[bool] = True
    route: Route


class Stuck(Struct, frozen=True):
    """A process cannot continue, and `reason` says why. These routes, which try it again, are held."""

    final: ClassVar[bool] = True
    routes: tuple[Route, ...]
    reason: str


class Idle(Struct, frozen=True):
    """Nobody is left to speak."""

    final: ClassVar[bool] = True


Action = (
    Queued
    | Dropped
    | NotDropped
    | Refused
    | NotCalled
    | Reassigned
    | Moved
    | RunTurn
    | RunGroup
    | Deliver
    | HumanAsked
    | Paused
    | TurnFailed
    | GroupFailed
    | Stuck
    | Idle
)
