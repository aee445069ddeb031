"""What the engine is told (events, each with its time in seconds since the epoch), and what it wants done (actions)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

from msgspec import Struct

from teamchat.core.check import NotRun
from teamchat.core.engine.state import LastSaid, Route, State
from teamchat.core.routing.requests import RouteRequest

if TYPE_CHECKING:
    from teamchat.core.engine.workflow import Checked, Finding, Process, StuckKind


class ResumeMode(StrEnum):
    RETRY = "retry"
    SKIP = "skip"
    DROP = "drop"


class HumanSpoke(Struct, frozen=True):
    """A person's message was stored. `drops` holds names to drop from the queue; None is DROP: ALL.

    A message of markers only, or one that was typed before the question, does not `answer` it. Those whom a message of
    markers only calls answer what was said `before` it: `LastSaid` without requests. With a `process` the message is
    its task. It sets the held routes of the numbers `aside` aside, which the person stopped before. With `goes_on` it
    was said while the process ran that is over now: one that verifies work goes on with it.
    """

    now: float
    message: str
    speaker: str
    requests: tuple[RouteRequest, ...] = ()
    drops: tuple[str, ...] | None = ()
    answers: bool = True
    process: Process | None = None
    before: LastSaid | None = None
    aside: tuple[int, ...] = ()
    goes_on: bool = False


class TurnBegan(Struct, frozen=True):
    """The turn of a route begins. `as_of` is the message that it answers."""

    now: float
    route: int
    as_of: str


class TurnEnded(Struct, frozen=True):
    """The turn of a route is over. `reply` is the stored message; None is a failure.

    `speaker` is the member that answered: the target or a fallback. `new` is False for a reply that says nothing new.
    A reply of markers only has no `words`. `finding` is what a process reads in the reply. A part of a process that
    failed is not given to another member after an interruption (`stopped`).
    """

    now: float
    route: int
    reply: str | None
    requests: tuple[RouteRequest, ...] = ()
    drops: tuple[str, ...] | None = ()
    speaker: str | None = None
    new: bool = True
    stopped: bool = False
    finding: Finding | None = None
    words: bool = True


class Spent(Struct, frozen=True):
    """The cost of a turn, whether it succeeded or not. An unknown cost counts as 0.

    `turns` are those that its agent has run inside of it.
    """

    now: float
    tokens: int = 0
    cost_usd: float = 0.0
    turns: int = 0


class MemberAnswered(Struct, frozen=True):
    """A member of a group has replied. The turn `answer` keeps the reply until the group is over."""

    now: float
    route: int
    answer: int


class GroupRan(Struct, frozen=True):
    """All started turns of a group are over. Those of the routes `failed` have no reply.

    What the group does is not given to other members after an interruption (`stopped`).
    """

    now: float
    failed: tuple[int, ...] = ()
    stopped: bool = False


class GroupDelivered(Struct, frozen=True):
    """The replies of a group were stored as messages. `ends` is in the order in which the members were named."""

    now: float
    ends: tuple[TurnEnded, ...]


class Resumed(Struct, frozen=True):
    """A person resumes a stopped conversation: retry, skip the first turn or question, or drop the queue.

    With `only`, the routes of these numbers and the rest of their groups run, also if they are set aside; everything
    else stays as it is. A drop takes out what is set aside, too, and with `only` nothing runs.
    """

    now: float
    mode: ResumeMode = ResumeMode.RETRY
    only: tuple[int, ...] | None = None


class Released(Struct, frozen=True):
    """A person stopped only the turn that ran, or spoke at a guard: these held routes wait to speak again."""

    now: float
    routes: tuple[int, ...]


class StopRequested(Struct, frozen=True):
    """Ctrl-C or SIGTERM."""

    now: float


class Recovered(Struct, frozen=True):
    """The conversation was opened, and no other process runs it: whatever ran before is dead."""

    now: float


class Undone(Struct, frozen=True):
    """What happened since the state `before` is undone, except what was spent.

    `before` is the state when the first undone turn was about to begin. Its whole queue is held, except people who are
    asked. `answered` has the routes of the undone turns whose messages stay, and what each answered: it will answer
    the same again.
    """

    now: float
    before: State
    answered: Mapping[int, str] = {}


class Redone(Struct, frozen=True):
    """An undo is undone. `before` is the state before it, with nothing running."""

    now: float
    before: State


class WorkBegan(Struct, frozen=True):
    """The first turn of a process that verifies work begins with the files of the git tree `tree`."""

    now: float
    tree: str


class CheckBegan(Struct, frozen=True):
    """The check of a route begins."""

    now: float
    route: int


class CheckEnded(Struct, frozen=True):
    """The check of a route is over, with this result. `not_run` says why it was not run: it is on hold then."""

    now: float
    route: int
    result: Checked
    not_run: NotRun | None = None


class Retargeted(Struct, frozen=True):
    """A person gives the held call of an agent to another agent."""

    now: float
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


class Queued(Struct, frozen=True):
    final: ClassVar[bool] = False
    route: Route


class Dropped(Struct, frozen=True):
    """A route leaves the queue. `left`: nobody dropped it, but its person has left the team."""

    final: ClassVar[bool] = False
    route: Route
    left: bool = False


class PutAside(Struct, frozen=True):
    """A route is set aside. `route` is as it was before, on hold."""

    final: ClassVar[bool] = False
    route: Route


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


class RunCheck(Struct, frozen=True):
    """The check of this route runs."""

    final: ClassVar[bool] = True
    route: Route


class CheckNotRun(Struct, frozen=True):
    """The check of this route was not run, and `reason` says why. It and the rest of the queue are held."""

    final: ClassVar[bool] = True
    route: Route
    reason: str
    why: NotRun


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
    why: StuckKind = "stuck"


class Idle(Struct, frozen=True):
    """Nobody is left to speak."""

    final: ClassVar[bool] = True


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
