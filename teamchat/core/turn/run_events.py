"""The events that a running conversation tells its listener. `core` prints nothing: the command line shows them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

from msgspec import Struct, field

from teamchat.core.engine.events import Dropped, Moved, PauseKind, Queued, Refused
from teamchat.core.engine.state import Route
from teamchat.core.engine.workflow import Part
from teamchat.core.errors import ExitCode
from teamchat.core.messages import ConversationMessage, Span
from teamchat.core.receipt import Outcome
from teamchat.core.routing.todos import Change
from teamchat.core.store.checks import CheckRecord
from teamchat.core.store.turns import Turn
from teamchat.runners.agent_events import AgentEvent, Usage
from teamchat.runners.untrusted.file_changes import FileChange

if TYPE_CHECKING:
    from teamchat.core.store.lessons import Lesson
    from teamchat.core.store.summaries import Summary

VERSION = 1


class JsonLine(Struct, frozen=True, tag_field="type", kw_only=True):
    """A line of `--json`; its type is the tag of its class. `lines.py` has those that are no events themselves."""

    v: int = VERSION
    streamed: ClassVar[bool] = False
    """Whether only `--stream` prints it."""
    of_file: ClassVar[bool] = False
    """Whether only the file of a run has it."""
    live: ClassVar[tuple[str, ...]] = ()
    """The fields that only the file of a run has, for a live view."""


class MessageStored(Struct, frozen=True):
    message: ConversationMessage


class TaskChanged(JsonLine, frozen=True, tag="task"):
    """The task was set; null: it was removed."""

    text: str | None


class TurnStarted(Struct, frozen=True):
    """A turn begins. A side turn has no route."""

    turn: Turn
    route: Route | None


class AgentSpoke(Struct, frozen=True, gc=False):
    """An event of an agent whose turn runs. `more`: the next event was read together with it."""

    member: str
    turn: int
    event: AgentEvent
    more: bool = False


def spoken(member: str, turn: int, events: Sequence[AgentEvent]) -> Iterator[AgentSpoke]:
    """The events of an agent that were read together."""
    last = len(events) - 1
    return (AgentSpoke(member, turn, event, place < last) for place, event in enumerate(events))


class Replied(Struct, frozen=True):
    """The reply of a turn is stored as a message. The replies of a group come together, after all its turns.

    `part` is what the turn did in a process.
    """

    turn: Turn
    message: ConversationMessage
    part: Part | None = None


class SummaryStored(Struct, frozen=True):
    """A turn has summarised the conversation. Later prompts no longer quote what the summary covers."""

    turn: Turn
    summary: Summary


class LessonsFound(Struct, frozen=True):
    """A turn has found new lessons in the conversation. `kept` holds those that are stored: all or none."""

    turn: Turn
    found: tuple[str, ...]
    kept: tuple[Lesson, ...]


class TurnFinished(Struct, frozen=True):
    """A turn is over. `partial` is the partial reply of a failed turn."""

    turn: Turn
    outcome: Outcome
    partial: str = ""


class UnmergedChanges(Struct, frozen=True):
    """What a member has changed in its worktree and is not merged."""

    member: str
    branch: str
    folder: str
    files: tuple[FileChange, ...]


class SameLines(Struct, frozen=True):
    """A file that two members have changed in ways that exclude each other; `why` says how."""

    path: str
    members: tuple[str, str]
    why: str


class GroupCompared(JsonLine, frozen=True, tag="group_compared"):
    """Members of a group changed files in [worktrees](howto/worktrees.md).

    Each of `members` has `member` `branch` `folder` and `files` (`path` `what` `added` `removed`: all that is not
    merged). `conflicts` (`path` `members` `why`) are files that two of them changed in ways that exclude each other.
    `judged`: a judge picks one of them, so nobody looks for conflicts.
    """

    live = ("goes_on",)
    members: tuple[UnmergedChanges, ...]
    conflicts: tuple[SameLines, ...]
    judged: bool = False
    goes_on: bool = False
    """They work in a process, at whose end is told what is to be merged."""


class RecordingFiles(JsonLine, frozen=True, tag="recording_files"):
    """Only in the file of a run: recording the files of a turn takes over a second. `over`: it has ended."""

    of_file = True
    turn: int
    over: bool = False


class CheckStarted(Struct, frozen=True):
    """A check begins."""

    check: CheckRecord


class CheckFinished(Struct, frozen=True):
    """A check is over: green, red, or not run."""

    check: CheckRecord


class TodoChanged(Struct, frozen=True):
    """A message added a todo, or closed one."""

    change: Change


class TriesAgain(Struct, frozen=True):
    """A member's turn runs again after a wait: its retry `number` of `most`."""

    number: int
    most: int
    delay_s: float


class Warned(JsonLine, frozen=True, tag="warning"):
    """Something that a person should see; the run goes on."""

    live = ("route", "of_disk", "again")
    text: str
    route: int | None = None
    """That of the turn that it is about."""
    of_disk: bool = False
    """It tells of worktrees, or of hosts that are waited for, of which a replay has none."""
    again: TriesAgain | None = None
    """The retry that it tells of."""


ConversationEvent = (
    MessageStored
    | TaskChanged
    | Queued
    | Dropped
    | Refused
    | TurnStarted
    | AgentSpoke
    | Replied
    | SummaryStored
    | LessonsFound
    | TurnFinished
    | GroupCompared
    | RecordingFiles
    | CheckStarted
    | CheckFinished
    | TodoChanged
    | Moved
    | Warned
)


_ENDS = (*(ExitCode.DONE, ExitCode.OTHER_VERDICT, ExitCode.NO_VERDICT), *(ExitCode.CHECK_RED, ExitCode.REVIEW_FAILED))


class RunVerdict(Struct, frozen=True):
    """The word of `--verdict` that a run ends with; None if it ends with none of them, or stopped short."""

    word: str | None


class Conclusion(Struct, frozen=True):
    """How a run of the conversation ended, and how it can continue.

    `text` is the last reply of this run, markers included, or what the process that ran makes of it; no marker counts
    in its parts that are `repeated` from the prompt. `process` is the result of that process, as far as it got. `held`
    holds the routes that wait for `resume`.
    `verdict` is None if none is asked for.
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
    process: Struct | None = None
    verdict: RunVerdict | None = None
    repeated: tuple[Span, ...] = ()

    @property
    def done(self) -> bool:
        """Nothing failed and nothing waits, whatever the verdict is and whatever a process has come to."""
        return self.code in _ENDS
