"""A turn's process: started, followed to its end and judged."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from teamchat.core.context.vendor_session import AdoptedSession, ContinuedSession, own_share
from teamchat.core.files.room import is_full
from teamchat.core.receipt import Outcome, Ran
from teamchat.core.store.turn_events import TimedEvent
from teamchat.core.team.writers import may_write
from teamchat.core.turn.files_that_run import files_that_run
from teamchat.core.turn.machine import Machine, ReadyTurn
from teamchat.runners.agent_events import (
    SHOWN_ONLY,
    AgentEvent,
    Failure,
    FailureKind,
    Note,
    Question,
    ToolCall,
    ToolResult,
    Usage,
)
from teamchat.runners.base import Runner
from teamchat.runners.child.process import make_private
from teamchat.runners.child.running import (
    FolderReplaced,
    HasEnded,
    Identity,
    Launch,
    Running,
    SpawnFailed,
    Stays,
    start_error,
)
from teamchat.runners.child.supervisor import NO_LIMITS, Clocks, Stopper, TurnEnd, run_turn
from teamchat.runners.homes.logins import login_variables, with_source
from teamchat.runners.homes.versions import installed_version
from teamchat.runners.longest import LONGEST_REPLY
from teamchat.runners.untrusted.file_changes import FileChanges, NoCheckpoint, WorkTree

NOT_STARTED: Mapping[type[Exception], FailureKind] = {HasEnded: FailureKind.AGENT, FolderReplaced: FailureKind.REFUSED}


class FinishedTurn(Struct, frozen=True):
    """The end of a turn."""

    outcome: Outcome
    text: str
    """The reply, or the partial text if `outcome.failure` says why there is no reply."""
    interrupted: bool = False
    """Whether a person ended it, with or without a reply."""
    unreported: bool = False
    """Whether its process was to be kept for further turns, and ended without reporting the end of this one."""
    vendor_session: str | None = None
    events: tuple[TimedEvent, ...] = ()
    own_cost: bool = False
    """As in `Verdict`."""

    @property
    def questions(self) -> tuple[str, ...]:
        """The agent's questions to its user. Nobody answered."""
        return tuple(timed.event.text for timed in self.events if isinstance(timed.event, Question))

    def with_questions(self) -> FinishedTurn:
        """Append the agent's questions to its user to a reply that does not contain them."""
        if self.outcome.failure or not (questions := self.questions):
            return self
        missing = (question for question in questions if question not in self.text)
        return replace(self, text="\n\n".join(filter(None, (self.text.strip(), *missing))))


async def execute(
    turn: ReadyTurn,
    folder: Path,
    machine: Machine,
    stopper: Stopper,
    emit: Callable[[Sequence[AgentEvent]], None],
    patience: Mapping[FailureKind, int] = NO_LIMITS,
    stays: Stays | None = None,
    tree: WorkTree | NoCheckpoint | None = None,
    longest: int = LONGEST_REPLY,
) -> FinishedTurn:
    """Start the member's program, follow it to its end and judge it. `folder` gets its stdout and stderr.

    With `stays`, the process also runs earlier and later turns. `patience` is the number of retries of each kind that
    the CLI may report before it is ended. `tree` is the work tree before the turn. A reply may have `longest` bytes.
    """
    collector = Collector(emit)
    member = turn.member
    program = turn.program if isinstance(turn.program, str) else turn.command.argv[0]
    installed, login = None, None  # a host reports them for its turns
    if turn.setup.host is None:
        installed = installed_version(program, turn.agent.type.package)
        login = login_variables(turn.runner, member.cwd, turn.env, member.args)
    what = Launch(
        argv=(program, *turn.command.argv[1:]),
        cwd=member.cwd,
        env=turn.env,
        stdin=turn.prompt.prepared.stdin,
        folder=folder,
        scratch=turn.scratch,
        prepare=lambda: _make_scratch(turn),
        stop=turn.runner.stop,
        identity=Identity(member.name, turn.agent.protocol, turn.prompt.system_text),
        stays=stays,
        elsewhere=turn.hosted,
        through=turn.command.through,
        starts_in=turn.command.starts_in,
        version=installed,
        login=login,
        may_write=may_write(member, turn.agent),
        tree=tree,
    )
    try:
        make_private(folder)  # first: if teamchat is killed, the next command finds the private folder by it
        process = machine.start(what)
    except (SpawnFailed, OSError) as error:
        words = str(error) if isinstance(error, SpawnFailed) else start_error(error)
        failure = Failure(NOT_STARTED.get(type(error), FailureKind.MISSING), f"could not be started: {words}")
        outcome = Outcome(exit_code=None, seconds=0.0, failure=failure)
        return FinishedTurn(outcome, "", unreported=isinstance(error, HasEnded))
    ending = Ending(
        turn.runner, folder, member.cwd, turn.setup.resumes, _used_before(turn), installed, login, patience, longest
    )
    finished = await followed(process, ending, turn.clocks, stopper, collector, lambda: machine.ran(turn, process))
    return replace(finished, unreported=stays is not None and finished.unreported)


class Ending(Struct, frozen=True):
    """The basis for judging the end of a turn, beside its output; the other fields are as for `execute`."""

    runner: Runner
    folder: Path
    cwd: Path
    resumes: str | None = None
    before: Usage | None = None
    """The usage of its vendor session before the turn."""
    version: str | None = None
    """As in `Launch`."""
    login: tuple[str, ...] | None = None
    """As in `Launch`."""
    patience: Mapping[FailureKind, int] = NO_LIMITS
    longest: int = LONGEST_REPLY


async def followed(
    process: Running,
    ending: Ending,
    clocks: Clocks,
    stopper: Stopper,
    collector: Collector,
    ran: Callable[[], tuple[Ran, bool] | None],
) -> FinishedTurn:
    """Follow a turn's process to its end and judge it. `ran` is what `Machine.ran` says then.

    It sets `unreported` as for a process that was to be kept.
    """
    parser = ending.runner.parser()
    parser.longest = ending.longest
    end = await run_turn(process, parser, clocks, stopper, collector, ending.patience, ending.resumes)
    # if events end with the CLI's own word of success, only the parts that broke a line can be missing
    whole = parser.by_lines and end.failure is None and not collector.count(Note)
    version = (ending.version if end.version is None else end.version) or None
    refused = with_source(end.failure, ending.login if end.exit.login is None else end.exit.login)
    judged = refused if whole else _judged(refused, ending.folder)
    outcome, stopped = _outcome(ending, end, collector, judged, version), end.interrupted
    if there := ran():
        where, ended = there  # without a process there is no exit code
        outcome = replace(outcome, exit_code=outcome.exit_code if ended else None, ran=where)
        stopped = stopped and not where.lost
    events = tuple(collector.events)
    return FinishedTurn(outcome, end.text, stopped, end.untold, end.vendor_session, events, end.own_cost)


def _make_scratch(turn: ReadyTurn) -> None:
    turn.scratch.mkdir(0o700)
    turn.command.write_files()


class Collector(Struct):
    """Keeps the events of a turn with their times, and counts them for the receipt."""

    emit: Callable[[Sequence[AgentEvent]], None]
    started: float = field(default_factory=time.monotonic)
    events: list[TimedEvent] = field(default_factory=list)

    def __call__(self, events: Sequence[AgentEvent]) -> None:
        at = time.monotonic() - self.started
        # there may be millions that are only shown, and the store leaves them out
        self.events += [TimedEvent(at, event) for event in events if not isinstance(event, SHOWN_ONLY)]
        self.emit(events)

    def files(self, cwd: Path) -> tuple[str, ...]:
        paths = (path for timed in self.events if isinstance(timed.event, ToolResult) for path in timed.event.paths)
        named = (
            os.path.relpath(path, cwd) if Path(path).is_relative_to(cwd) else path for path in dict.fromkeys(paths)
        )
        return tuple(dict.fromkeys(named))

    def failed(self) -> int:
        """Count the failed tool calls."""
        results = (timed.event for timed in self.events if isinstance(timed.event, ToolResult))
        return len({result.id for result in results if result.failed})

    def count(self, kind: type[AgentEvent]) -> int:
        return sum(isinstance(timed.event, kind) for timed in self.events)


def _used_before(turn: ReadyTurn) -> Usage | None:
    """Return the usage of the vendor session so far: by its turns or, after a person used it, by its CLI's report."""
    continued, sessions = turn.prompt.vendor_session, turn.runner.sessions
    if isinstance(continued, AdoptedSession) and sessions is not None:
        return sessions.used(turn.env, continued.session)
    if not isinstance(continued, ContinuedSession) or sessions is None:
        return None
    return (sessions.used(turn.env, continued.session) if continued.turns.by_hand else None) or continued.turns.usage


def _judged(failure: Failure | None, folder: Path) -> Failure | None:
    """Judge a turn on a full disk as failed."""
    if not is_full(folder):  # a turn that did not start, or is replayed, has no folder
        return failure
    reason = f"{failure.reason}; its" if failure else "may have lost some of its answer: its"
    kind = failure.kind if failure else FailureKind.AGENT
    return Failure(kind, f"{reason} output has filled the disk of {folder.parent}; make room there")


def _outcome(
    ending: Ending, end: TurnEnd, collected: Collector, failure: Failure | None, version: str | None
) -> Outcome:
    notes = [timed.event.text for timed in collected.events if isinstance(timed.event, Note)][:20]
    if end.exit.left:
        notes.append(f"ended processes that it left running: {', '.join(end.exit.left)}")
    reported = collected.files(end.exit.cwd or ending.cwd)
    changes = end.exit.files if isinstance(end.exit.files, FileChanges) else None
    files = tuple(change.path for change in changes.files) if changes else reported
    hides = ending.runner.hides_denials
    hidden = hides and any(isinstance(one.event, ToolCall) and one.event.name in hides for one in collected.events)
    return Outcome(
        exit_code=end.exit.code,
        seconds=end.exit.seconds,
        failure=failure,
        first_byte_s=end.first_byte_s,
        model=end.model,
        usage=own_share(end.usage, ending.before) if ending.before else end.usage,
        version=version,
        denied=end.denied if end.denied or (not hidden and _reports_denials(ending.runner, version)) else None,
        files=files,
        reported=reported,
        changes=end.exit.files,
        files_that_run=tuple(dict.fromkeys((*files_that_run((*files, *reported)), *end.exit.changed))),
        not_all_looked_at=end.exit.not_all_looked_at,
        tools=collected.count(ToolCall),
        failed_tools=collected.failed(),
        left=end.exit.left,
        notes=tuple(notes),
        stderr_tail=end.stderr_tail[-4000:],
        last_row=end.last_row,
    )


def _reports_denials(runner: Runner, version: str | None) -> bool:
    """Whether a turn without a reported refusal had none."""
    if not runner.reports_denials:
        return False
    from teamchat.core.doctor.versions import reports_denials

    return reports_denials(runner, version)
