"""The engine's input (events, each with its time in seconds since the epoch) and its output (actions)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import ClassVar

from msgspec import Struct

from teamchat.core.check import NotRun
from teamchat.core.engine.state import LastSaid, Route, State
from teamchat.core.engine.workflow import Checked, Finding, Process, StuckKind
from teamchat.core.routing.requests import RouteRequest


class ResumeMode(StrEnum):
    RETRY = "retry"
    SKIP = "skip"
    DROP = "drop"


class _Event(Struct, frozen=True):
    now: float


class HumanSpoke(_Event, frozen=True):
    """A person's message was stored."""

    message: str
    speaker: str
    requests: tuple[RouteRequest, ...] = ()
    drops: tuple[str, ...] | None = ()
    """Names to drop from the queue; None is DROP: ALL."""
    answers: bool = True
    """Whether it answers a question: not if it has only markers, or was typed before the question."""
    process: Process | None = None
    """The process that has the message as its task."""
    before: LastSaid | None = None
    """The words before it, without requests: members called by a message of markers only answer those."""
    aside: tuple[int, ...] = ()
    """The numbers of held routes that it sets aside: the person stopped them before."""
    goes_on: bool = False
    """Whether it was said during a process that is over now: one that verifies work goes on with it."""


class TurnBegan(_Event, frozen=True):
    """The turn of a route begins. `as_of` is the message that it answers."""

    route: int
    as_of: str


class TurnEnded(_Event, frozen=True):
    """The turn of a route is over."""

    route: int
    reply: str | None
    """The stored message; None is a failure."""
    requests: tuple[RouteRequest, ...] = ()
    drops: tuple[str, ...] | None = ()
    speaker: str | None = None
    """The member that answered: the target or a fallback."""
    new: bool = True
    """Whether the reply says anything new."""
    stopped: bool = False
    """Whether it was interrupted: then no other member gets its part of a process."""
    finding: Finding | None = None
    """The finding of the process in the reply."""
    words: bool = True
    """Whether the reply has more than markers."""


class Spent(_Event, frozen=True):
    """The cost of a turn, whether it succeeded or not. An unknown cost counts as 0.

    `turns` are the turns that its agent ran inside it.
    """

    tokens: int = 0
    cost_usd: float = 0.0
    turns: int = 0


class MemberAnswered(_Event, frozen=True):
    """A member of a group has replied. The turn `answer` keeps the reply until the group is over."""

    route: int
    answer: int


class GroupRan(_Event, frozen=True):
    """All started turns of a group are over. The turns of the routes `failed` have no reply.

    Its work is not given to other members after an interruption (`stopped`), nor if the answers are `enough` to decide
    the process.
    """

    failed: tuple[int, ...] = ()
    stopped: bool = False
    enough: bool = False


class GroupDelivered(_Event, frozen=True):
    """The replies of a group were stored as messages. `ends` is in the order of the members' names in the call."""

    ends: tuple[TurnEnded, ...]


class Resumed(_Event, frozen=True):
    """A person resumes a stopped conversation: retry, skip the first turn or question, or drop the queue.

    With `only`, the routes with these numbers and the rest of their groups run, even if set aside; all other routes
    stay unchanged. A drop also takes out routes set aside, and with `only` nothing runs.
    """

    mode: ResumeMode = ResumeMode.RETRY
    only: tuple[int, ...] | None = None


class Released(_Event, frozen=True):
    """A person stopped only the turn that ran, or spoke at a guard: these held routes wait to speak again."""

    routes: tuple[int, ...]


class StopRequested(_Event, frozen=True):
    """Ctrl-C or SIGTERM."""


class Recovered(_Event, frozen=True):
    """The conversation was opened, and no other process runs it: whatever ran before is dead."""


class Undone(_Event, frozen=True):
    """Everything since the state `before` is undone, except spendings.

    `before` is the state when the first undone turn was about to begin. Its whole queue is held, except people who are
    asked. `answered` has the routes of the undone turns whose messages stay, and the message that each answered: it
    will answer that one again.
    """

    before: State
    answered: Mapping[int, str] = {}


class Redone(_Event, frozen=True):
    """An undo is undone. `before` is the state before it, with nothing running."""

    before: State


class WorkBegan(_Event, frozen=True):
    """The first turn of a process that verifies work begins with the files of the git tree `tree`."""

    tree: str


class CheckBegan(_Event, frozen=True):
    """The check of a route begins."""

    route: int


class CheckEnded(_Event, frozen=True):
    """The check of a route is over, with this result. `not_run` says why it was not run: it is on hold then."""

    route: int
    result: Checked
    not_run: NotRun | None = None


class Retargeted(_Event, frozen=True):
    """A person gives the held call of an agent to another agent."""

    route: int
    target: str


Event = (
    HumanSpoke
    | TurnBegan
    | TurnEnded
    | Spent
    | MemberAnswered
    | GroupRan
    | GroupDelivered
    | Resumed
    | Released
    | StopRequested
    | Recovered
    | Undone
    | Redone
    | Retargeted
    | WorkBegan
    | CheckBegan
    | CheckEnded
)


class PauseKind(StrEnum):
    TURNS = "turns"
    TIME = "time"
    TOKENS = "tokens"
    COST = "cost"
    LOOP = "loop"
    INTERRUPTED = "interrupted"


class _Further(Struct, frozen=True):
    """An action after which the next one is performed."""

    final: ClassVar[bool] = False


class _Last(Struct, frozen=True):
    """An action that says how the conversation continues."""

    final: ClassVar[bool] = True


class Queued(_Further, frozen=True):
    route: Route


class Dropped(_Further, frozen=True):
    """A route leaves the queue. `left`: nobody dropped it, but its person has left the team."""

    route: Route
    left: bool = False


class PutAside(_Further, frozen=True):
    """A route is set aside. `route` is its state before, on hold."""

    route: Route


class NotDropped(_Further, frozen=True):
    """A route that `agent` cannot drop, because a person has queued it."""

    route: Route
    agent: str


class Refused(_Further, frozen=True):
    """A route that is not queued: the queue is full."""

    route: Route
    limit: int


class NotCalled(_Further, frozen=True):
    """A member that an agent calls in `message` and that is not queued: the run hands over to nobody.

    `process`: the process decides who speaks.
    """

    target: str
    by: str
    message: str
    process: bool = False


class Reassigned(_Further, frozen=True):
    """The part of a member that failed goes to `route.target`."""

    route: Route
    failed: str


class Moved(_Further, frozen=True):
    """A process has begun, is resumed, has got further, or is over.

    `calls` are in the queue although no event told of them: the calls of a resumed process.
    """

    process: Process
    calls: tuple[Route, ...] = ()


class RunGroup(_Last, frozen=True):
    """The turns of these routes of one group run at the same time, at most `jobs` of them."""

    routes: tuple[Route, ...]
    jobs: int | None = None


class Deliver(_Last, frozen=True):
    """All turns of a group are over. The replies of these routes become messages, in this order."""

    routes: tuple[Route, ...]


class GroupFailed(_Last, frozen=True):
    """These routes of a group failed. `all_of_it`: no other route of it succeeded. The rest of the queue is held."""

    routes: tuple[Route, ...]
    all_of_it: bool


class RunTurn(_Last, frozen=True):
    route: Route


class RunCheck(_Last, frozen=True):
    """The check of this route runs."""

    route: Route


class CheckNotRun(_Last, frozen=True):
    """The check of this route was not run, and `reason` says why. It and the rest of the queue are held."""

    route: Route
    reason: str
    why: NotRun


class HumanAsked(_Last, frozen=True):
    """A person is asked, and the queue waits."""

    route: Route


class Paused(_Last, frozen=True):
    """A guard or a person stopped the run. The whole queue is held."""

    kind: PauseKind
    reason: str


class TurnFailed(_Last, frozen=True):
    """The turn of this route failed. It and the rest of the queue are held."""

    route: Route


class Stuck(_Last, frozen=True):
    """A process cannot continue, and `reason` says why. These routes, which try it again, are held."""

    routes: tuple[Route, ...]
    reason: str
    why: StuckKind = "stuck"


class Idle(_Last, frozen=True):
    """Nobody is left to speak."""


Action = (
    Queued
    | Dropped
    | PutAside
    | NotDropped
    | Refused
    | NotCalled
    | Reassigned
    | Moved
    | RunTurn
    | RunCheck
    | RunGroup
    | Deliver
    | HumanAsked
    | Paused
    | TurnFailed
    | GroupFailed
    | Stuck
    | CheckNotRun
    | Idle
)
