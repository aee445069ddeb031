"""A process: a fixed way for several members to work on one task (`teamchat run`), as a value in the engine's state.

A strategy (`processes/`, one file each) is a set of pure functions of this value. Whenever nothing of the process
waits, the engine asks it for the next step. It knows messages by their ids. A reply in the form that the process asks
for is read outside of the engine, and comes with its finding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from itertools import takewhile
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from teamchat.core.check import CheckStatus
from teamchat.core.routing.requests import RouteRequest


class Part(Struct, frozen=True):
    """The part of a process that a turn does."""

    kind: str
    """With `role`, says what is asked."""
    role: str
    number: int = 0
    """Counts the parts of the role, up to `total`."""
    total: int = 0
    seat: str = ""
    """The member for whom it is done, where that matters: a fallback may do it in its place."""
    handover: bool = False
    """Whether markers of its reply call members, and its prompt says how."""
    history: bool = False
    """Whether its prompt quotes the conversation before the message that it answers."""
    continues: bool = False
    """Whether the turn continues the member's vendor session, which knows what was said before."""
    layers: tuple[str, ...] | None = None
    """The names of the layers that it may see; None is all of them."""
    task: bool = True
    """Whether its prompt shows the team's task."""
    shows: tuple[str, ...] = ()
    """Ids of further messages that its prompt quotes."""
    labels: tuple[str, ...] = ()
    """The speakers of `shows` in the prompt; without any, the messages' own."""
    instead: str = ""
    """Replaces the text of the message that it answers."""
    apart: bool = False
    """Whether a member that may write works in a worktree of its own, and no fallback takes its place."""
    place: bool = False
    """Whether its member may do several such parts at the same time.

    If it may write, its worktree's name then includes the number (`sarah#3`).
    """
    compares: tuple[str, ...] = ()
    """The names of the worktrees that its prompt compares, labelled by `options`. The turn may only read."""
    others: tuple[str, ...] = ()
    """The members that do it if this one fails, in the order of asking."""
    fallback: tuple[str, ...] | None = None
    """The members that replace its own if that CLI is not available; None means the fallbacks of the team file."""
    check: str = ""
    """The name of the check that runs instead of a turn."""
    go: int = 1
    """1 for the first verification of the work, 2 for the next one of the same work, 0 for a check before the work."""
    attempt: int = 1
    """2 for the second try of a red check."""
    fresh: bool = False
    """Whether the check runs in a new folder."""
    trees: tuple[str, ...] = ()
    """Two git trees whose differences its prompt shows. The turn may only read."""
    checks: tuple[int, ...] = ()
    """Numbers of checks whose results its prompt shows."""
    reviews: tuple[str, ...] = ()
    """Ids of reviews whose findings its prompt shows."""
    reads: bool = False
    """Whether the turn may only read, whatever its member may do otherwise."""
    checked_by: tuple[str, ...] = ()
    """The names of the checks that verify the work of the turn."""
    options: tuple[str, ...] = ()
    """With `fault` and `prompt`, fills in the note on what is asked."""
    fault: str = ""
    prompt: str = ""

    @property
    def shows_changes(self) -> bool:
        """Whether its prompt shows what was changed in files."""
        return bool(self.compares or self.trees)

    @property
    def only_reads(self) -> bool:
        """Whether its turn may change no files, whatever its member may do otherwise."""
        return self.reads or self.shows_changes

    def called(self, member: str) -> str:
        """Name the member that does it, by its place if it has one: `sarah#3`."""
        return f"{member}#{self.number}" if self.place else member


MOST_ROUNDS = 100
DOER, PERSON = "doer", "person"
"""The roles of `until` that the engine knows: the member that does the task, and a person who speaks in between."""
PLAN = "'s plan"  # The end of a plan's label.
LAST_REVIEW = "your last review"  # The label of a message that a reviewer is shown.


class Kind(StrEnum):
    SEQUENTIAL = "sequential"
    HIERARCHICAL = "hierarchical"
    MAPREDUCE = "mapreduce"
    DEBATE = "debate"
    VOTE = "vote"
    BEST = "best"
    UNTIL = "until"


class Fault(Struct, frozen=True, tag=True):
    """A reply that lacks the form that was asked for, and why."""

    why: str


class Handout(Struct, frozen=True, tag=True):
    """The members that the lead has called, and whether all of them speak at the same time."""

    requests: tuple[RouteRequest, ...]


class Plan(Struct, frozen=True, tag=True):
    subtasks: tuple[str, ...]


class Position(Struct, frozen=True, tag=True):
    """A member's position. `changed` says whether it held another before; None if it does not say."""

    position: str
    changed: bool | None = None


class Synthesis(Struct, frozen=True, tag=True):
    """The members that agree with the synthesis of a debate, and the dissenting members, with their positions."""

    agree: tuple[str, ...]
    dissent: dict[str, str]


class Ballot(Struct, frozen=True, tag=True):
    """A vote; without an `option` it is an abstention."""

    option: str | None
    reason: str


class Work(Struct, frozen=True, tag=True):
    """The files that a member changed in its worktree: the first ones by path, and how many `more` there are."""

    files: tuple[str, ...]
    more: int = 0


class Pick(Struct, frozen=True, tag=True):
    """The member whose work the judge picks."""

    winner: str
    reasons: str


class Tried(Struct, frozen=True, tag=True):
    """The results of a doer's turn: the git tree before and after it, empty if unknown, and the people it calls.

    `touched` are the first of the tests, and of the files that configure their runner, that it changed.
    """

    before: str = ""
    after: str = ""
    asks: tuple[RouteRequest, ...] = ()
    touched: tuple[str, ...] = ()


class Checked(Struct, frozen=True, tag=True):
    """The run `number` of a check."""

    name: str
    number: int
    status: CheckStatus
    reason: str = ""
    before: str = ""
    """The git tree before it, empty if unknown."""
    after: str = ""
    """The git tree after it, empty if unknown."""
    files: tuple[str, ...] = ()
    """The files that it changed."""
    unknown: str = ""
    """Says why the trees are unknown."""
    touched: tuple[str, ...] = ()
    """As in `CheckResult`."""
    count: int | None = None
    """As in `CheckResult`."""
    attempt: int = 1
    """As in `CheckResult`."""
    failing: str = ""
    """Equal for equal failing lines; empty without any."""


class ReviewFinding(Struct, frozen=True):
    """A fault that a reviewer finds, and its place; without a file it is about all of the work."""

    text: str
    file: str = ""
    line: int | None = None
    severity: str = ""


class Review(Struct, frozen=True, tag=True):
    """A reviewer's answer, the first of its findings and how many `more` there are; and the trees around its turn."""

    passed: bool
    findings: tuple[ReviewFinding, ...] = ()
    more: int = 0
    before: str = ""
    after: str = ""


Finding = Fault | Handout | Plan | Position | Synthesis | Ballot | Work | Pick | Tried | Checked | Review


class Done(Struct, frozen=True):
    """A part that is over: the reply of `member` is `message`. Without one, the part was skipped or dropped.

    For a check, `member` is its name and `finding` its result.
    """

    part: Part
    member: str
    message: str | None
    finding: Finding | None = None


class ProcessCheck(Struct, frozen=True):
    """A check of a process: one of the team file, or the shell `command` that a person typed.

    It runs only if the checks that it `needs` are green. `protects`: it protects files. `counts`, `tries` and `fresh`
    are the `not_fewer`, `tries` and `fresh` of `Check`.
    """

    name: str
    needs: tuple[str, ...] = ()
    command: str = ""
    protects: bool = False
    counts: bool = False
    tries: int = 1
    fresh: bool = False


class Process(Struct, frozen=True):
    """A process and its progress."""

    kind: Kind
    members: tuple[str, ...]
    """The members that do the work."""
    lead: str
    """Plans, leads, reduces, judges or writes the synthesis, unless another member is named for it."""
    excluded: tuple[str, ...] = ()
    """AI members of the team that it does not involve."""
    name: str = ""
    """Its name in the team file."""
    prompt: str = ""
    """The team file's words to every member of it."""
    rounds: Annotated[int, Meta(ge=1)] = 1
    planner: str = ""
    reducer: str = ""
    judge: str = ""
    jobs: Annotated[int, Meta(ge=1)] | None = None
    """The number of turns at the same time; None is no limit."""
    most: Annotated[int, Meta(ge=0)] = 0
    """The largest number of subtasks."""
    options: tuple[str, ...] = ()
    do: str = ""
    """The member that works until all `checks` are green and all of `review` agree."""
    checks: tuple[ProcessCheck, ...] = ()
    review: tuple[str, ...] = ()
    fallbacks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The members that may replace `do` or a member of `review`."""
    base: str = ""
    """The git tree that the work began with."""
    quorum: Annotated[int, Meta(ge=1)] | None = None
    """The number of `members` that must vote, or of `review` that must pass; None is all."""
    worktree: bool = False
    """Whether all of it is done in a worktree of the doer's."""
    earlier: tuple[tuple[str, str, str], ...] = ()
    """Turns and checks of earlier processes that left protected files changed, as in `works_of`."""
    request: str = ""
    """The id of the message that asks for it."""
    speaker: str = ""
    """The speaker of `request`."""
    done: tuple[Done, ...] = ()
    over: bool = False

    @property
    def at_work(self) -> Process:
        """The process without the checks' numbers before the work: its first step is a turn."""
        return replace(self, checks=tuple(replace(check, counts=False) for check in self.checks))

    @property
    def unheard(self) -> tuple[Done, ...]:
        """The messages of people to the doer since its last turn."""
        since = takewhile(lambda done: done.part.role != DOER, reversed(self.done))
        return tuple(done for done in since if done.part.role == PERSON)[::-1]

    def of(self, role: str, number: int | None = None) -> tuple[Done, ...]:
        """List the finished parts of that role, in the order of their ends."""
        return tuple(done for done in self.done if done.part.role == role and number in (None, done.part.number))


class ProcessSettings(Struct, frozen=True):
    """The settings of a process; None and () leave one to its default. Names of members are as typed."""

    members: tuple[str, ...] = ()
    rounds: int | None = None
    planner: str | None = None
    workers: tuple[str, ...] = ()
    reducer: str | None = None
    judge: str | None = None
    lead: str | None = None
    options: tuple[str, ...] = ()
    jobs: int | None = None
    do: str | None = None
    check: tuple[str, ...] = ()
    review: tuple[str, ...] = ()
    quorum: int | None = None
    worktree: bool | None = None

    @property
    def given(self) -> tuple[str, ...]:
        """The names of the settings that are not left to their defaults."""
        return tuple(name for name in self.__struct_fields__ if getattr(self, name) not in (None, ()))


DEFAULTS = ProcessSettings()


class NamedProcess(Struct, frozen=True):
    """A process of the team file. `prompt` is what every member of it is told."""

    name: str
    kind: str
    settings: ProcessSettings
    prompt: str = ""


class Call(Struct, frozen=True):
    """A member to call for a part. The turn answers the message `as_of`; None is the newest one.

    The call is made by the message `parent` of `by`; without them by the one that asks for the process.
    """

    target: str
    part: Part
    as_of: str | None = None
    parent: str = ""
    by: str = ""


StuckKind = Literal["stuck", "no_answer", "no_progress"]
"""Why a process cannot continue. `no_answer`: somebody who is needed has given no answer that counts. `no_progress`:
the work goes in circles."""
OpenKind = Literal["no_verdict", "check_red", "review_failed"]


class Open(Struct, frozen=True):
    """The open question of a process that is over: the reason in words, and the kind that decides the exit code."""

    reason: str
    kind: OpenKind = "no_verdict"


class Step(Struct, frozen=True):
    """The next step of a process: the turns of `calls`, at the same time if they are `together`.

    With a `fault` the calls are on hold, and the run ends with that reason: a resume tries them. `why` is the kind of
    fault.
    """

    calls: tuple[Call, ...]
    together: bool = True
    fault: str | None = None
    why: StuckKind = "stuck"


def last_reply(_process: Process, reply: str) -> str:
    """Return the last reply, for a process whose result is its last message."""
    return reply


def nothing(_process: Process) -> None:
    """Return None, for a process without anything particular to know, say or type."""


def undecided_yet(_process: Process) -> bool:
    """Whether the process is decided early: never, if it needs everybody's answer."""
    return False


def as_it_is(report: Any, _parts: Sequence[Part]) -> Struct:
    """Return the report unchanged, for a process that does not mention kept replies."""
    struct: Struct = report
    return struct


def as_asked(process: Process, _asked: ProcessSettings, _most_turns: int) -> Process:
    """Return the process unchanged, for a process without settings of its own."""
    return process


class Strategy(Struct, frozen=True):
    """One kind of process: its settings, its words and its rules. All functions are pure."""

    kind: Kind
    settings: tuple[str, ...]
    """Options of `teamchat run` and keys of the team file."""
    called: str
    """The kind, in a sentence."""
    notes: Mapping[str, str]
    """Say what a role does. Words in braces are filled in from the part.

    The note of `ROLE.again` counts from the second round on, if there is one. `ROLE.repair` follows after a reply that
    lacked the form.
    """
    several: tuple[str, ...]
    """Parts that many members have: the process continues if one of them fails."""
    check: Callable[[Process], str | None]
    """Says what is wrong with a process that is about to begin; None if nothing is."""
    step: Callable[[Process], Step | None]
    """Returns the next step; None if the process is over."""
    read: Callable[[Process, Part, str, Sequence[RouteRequest]], Finding | None]
    """Reads what a reply says in the form that its part asks for. It gets the calls of the reply, too."""
    report: Callable[[Process], Struct]
    """Returns the result so far, as `--json` shows it."""
    turns: Callable[[Process], int | None] = nothing
    """Returns the number of turns if none fails; None if that is decided on the way."""
    text: Callable[[Process, str], str] = last_reply
    """Writes the result so far as a text, made of the last reply of the run."""
    undecided: Callable[[Process], Open | None] = nothing
    """Says what a process that is over has left open; None if nothing is missing."""
    decided: Callable[[Process], bool] = undecided_yet
    """Says whether missing answers can no longer change the result. It is asked only with a quorum."""
    next_command: Callable[[Process], str | None] = nothing
    """Returns a command that a person may want to type after the process is over."""
    answered: Callable[[Any, Sequence[Part]], Struct] = as_it_is
    """Adds to the report the parts whose replies are kept until their group is over."""
    begin: Callable[[Process, ProcessSettings, int], Process] = as_asked
    """Fills in the settings and defaults of a new process, for a conversation with that many turns.

    Raises `UsageError`.
    """
    roles: Mapping[str, str] = {}
    """The parts that have another name than their role."""
    counted: Mapping[str, str] = {}
    """The parts whose number is shown, and the noun for it."""
    repeated: tuple[str, ...] = ()
    """Parts that are asked again after a reply that lacked the form."""
    unread: Mapping[str, str] = {}
    """For the parts that are not asked again: says what such a reply leaves out."""

    def after_fault(self, part: Part) -> str:
        """Say what happens after a reply that lacks the form."""
        if part.fault and part.others:
            return f"{part.others[0]} is asked"
        if part.role not in self.repeated:
            return self.unread[part.role]
        return "the process is on hold" if part.fault else "it is asked once more"
