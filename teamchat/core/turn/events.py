"""What a conversation tells its listener while it runs. `core` prints nothing: the command line renders these."""

from __future__ import annotations

from dataclasses import dataclass, field

from teamchat.core.engine.actions import PauseKind
from teamchat.core.engine.state import Route
from teamchat.core.errors import ExitCode
from teamchat.core.messages import ConversationMessage
from teamchat.core.receipt import Outcome
from teamchat.core.routing.todos import Change
from teamchat.core.store.lessons import Lesson
from teamchat.core.store.summaries import Summary
from teamchat.core.store.turns import Turn
from teamchat.runners.events import AgentEvent, Usage


@dataclass(frozen=True, slots=True)
class MessageStored:
    message: ConversationMessage


@dataclass(frozen=True, slots=True)
class RouteQueued:
    route: Route


@dataclass(frozen=True, slots=True)
class RouteDropped:
    route: Route


@dataclass(frozen=True, slots=True)
class RouteRefused:
    """Not queued: there are as many waiting as may wait."""

    route: Route
    limit: int


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """A turn begins; one without a route is aside from the conversation."""

    turn: Turn
    route: Route | None


@dataclass(frozen=True, slots=True)
class AgentSpoke:
    """An event of the agent that speaks right now."""

    member: str
    turn: int
    event: AgentEvent


@dataclass(frozen=True, slots=True)
class Replied:
    """The reply of a turn was stored as a message; those of a group come together, after all its turns."""

    turn: Turn
    message: ConversationMessage


@dataclass(frozen=True, slots=True)
class SummaryStored:
    """A turn has summed up the conversation: what its summary covers is not quoted any more."""

    turn: Turn
    summary: Summary


@dataclass(frozen=True, slots=True)
class LessonsFound:
    """A turn has found lessons in the conversation, new ones; `kept` are those that are stored already: all or none."""

    turn: Turn
    found: tuple[str, ...]
    kept: tuple[Lesson, ...]


@dataclass(frozen=True, slots=True)
class TurnFinished:
    """A turn is over; `partial` is what there was of a reply when it failed."""

    turn: Turn
    outcome: Outcome
    partial: str = ""


@dataclass(frozen=True, slots=True)
class TodoChanged:
    """A message added something to the todo list, or closed it."""

    change: Change


@dataclass(frozen=True, slots=True)
class Warned:
    """Something a person should know that stops nothing; `route` is whose turn it is about, if it is of one."""

    text: str
    route: int | None = None


ConversationEvent = (
    MessageStored
    | RouteQueued
    | RouteDropped
    | RouteRefused
    | TurnStarted
    | AgentSpoke
    | Replied
    | SummaryStored
    | LessonsFound
    | TurnFinished
    | TodoChanged
    | Warned
)


@dataclass(frozen=True, slots=True)
class Conclusion:
    """How a run of the conversation ended, and what goes on from here.

    `text` is the last reply of this run, markers included; `held` are the routes that wait for `resume`.
    """

    code: ExitCode
    text: str = ""
    reason: str | None = None
    hint: str | None = None
    waiting_for: str | None = None
    paused: PauseKind | None = None
    held: tuple[Route, ...] = ()
    turns: int = 0
    denied: int | None = 0
    usage: Usage = field(default_factory=Usage)
