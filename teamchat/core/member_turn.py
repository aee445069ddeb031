"""One member's turn: everything settled before the process starts (`ready`), then the process itself (`run`)."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from teamchat.core.agents import AGENT_TYPES
from teamchat.core.context_manager import ContextManager
from teamchat.core.engine.route import Route
from teamchat.core.errors import AgentMissing, Interrupted, NotTrusted, StoreError, UsageError
from teamchat.core.layers.collector import ContextCollector
from teamchat.core.memory import NOTHING_BEFORE, Past, Thread, own_share
from teamchat.core.prompting import BuiltPrompt, build_prompt, exists
from teamchat.core.receipt import Outcome, Purpose, Setup
from teamchat.core.starts import take_moment
from teamchat.core.store.turns import TimedEvent
from teamchat.core.team import INSTALL, AgentSpec, Member, Team
from teamchat.runners.agent_events import AgentEvent, Failure, FailureKind, Note, TextDelta, ToolCall, ToolResult, Usage
from teamchat.runners.base import Command, Job, Runner
from teamchat.runners.environment import changes, environment
from teamchat.runners.process import launch
from teamchat.runners.running import Identity, Launch, Launcher, SpawnFailed, Stays, in_words
from teamchat.runners.turn import NO_CLOCKS, NO_LIMITS, Clocks, Stopper, TurnEnd, run_turn

SCRATCH = Path("$TMPDIR")  # how a turn's own folder is written where no turn runs


@dataclass(frozen=True, slots=True)
class ReadyTurn:
    """A turn that only has to be started. `env` is the whole environment of the agent."""

    member: Member
    agent: AgentSpec
    runner: Runner
    prompt: BuiltPrompt
    command: Command
    env: Mapping[str, str]
    setup: Setup
    scratch: Path
    clocks: Clocks


@dataclass(frozen=True, slots=True)
class Errand:
    """What a turn is for, as its receipt says it: why it runs, the message it serves, which try it is."""

    why: str
    request: str
    attempt: int = 1
    edits: int = 0
    purpose: Purpose = "reply"


@dataclass(frozen=True, slots=True)
class FinishedTurn:
    """What a turn came to: `text` is the reply, or the partial text when `outcome.failure` says why there is none.

    `interrupted`: a person has ended it, whatever came of it.
    """

    outcome: Outcome
    text: str
    interrupted: bool = False
    vendor_session: str | None = None
    events: tuple[TimedEvent, ...] = ()


def scratch_of(folder: Path) -> Path:
    """The private folder of the turn whose output is in `folder`: its TMPDIR, and where its command's files are.

    `run` makes it and the guardian removes it; after a crash it is found by its name. Raises `StoreError`.
    """
    try:
        parent = Path(tempfile.gettempdir())
        usable = os.access(parent, os.W_OK | os.X_OK)
    except OSError:
        usable = False
    if not usable:
        raise StoreError("no temporary folder can be made", "set TMPDIR to a folder that can be written")
    return parent / f"teamchat-{folder.name}"


async def at_once(_member: str) -> None:
    """A live turn begins when it is wanted."""


@dataclass(frozen=True, slots=True)
class Outside:
    """What a turn touches of the machine; a replay puts recordings in its place.

    `check` raises what is known to fail before anything is started; `exists` tells whether an `@path` names something.
    `scratch` says where a turn's own folder is to be. Where it is not `live`, the clocks have run and the pauses were
    made already. `collected` may change what is gathered of files and lessons. `now` is the time in seconds, `moment`
    the one at which a CLI of that vendor may start; `stopped` tells whether a person had stopped the recorded run
    before a turn of that member, or of anybody, and `comes` waits for the member's place among those of its group.
    """

    launcher: Launcher
    check: Callable[[ReadyTurn], None]
    exists: Callable[[Member, str], bool] = exists
    env: Mapping[str, str] = field(default_factory=lambda: os.environ)
    scratch: Callable[[Path], Path] = scratch_of
    live: bool = True
    collected: Callable[[ContextCollector], ContextCollector] = lambda collector: collector
    now: Callable[[], float] = time.time
    moment: Callable[[str], float] = lambda _vendor: 0.0
    stopped: Callable[[str | None], bool] = lambda _: False
    comes: Callable[[str], Awaitable[None]] = at_once


def ready(
    team: Team,
    route: Route,
    manager: ContextManager,
    outside: Outside,
    *,
    member: Member | None = None,
    past: Past = NOTHING_BEFORE,
    collector: ContextCollector | None = None,
    scratch: Path = SCRATCH,
    budget_usd: float | None = None,
) -> ReadyTurn:
    """Settle everything about the turn of `route`; nothing is started and nothing written.

    `member` answers in place of the route's target; `past` is what it had before, `collector` gathers its layers.
    `budget_usd` is the most that the turn may cost.

    Raises `PromptTooLarge`, `AgentMissing`, `UsageError` (no such folder) and `NotTrusted` (access that is refused).
    """
    member = member or team.member(route.target)
    prompt = build_prompt(team, member, route, manager, outside.exists, past, collector)
    errand = Errand(why(route, member), route.request, route.attempt + 1, past.edits)
    return settle(team, member, prompt, errand, outside, scratch=scratch, budget_usd=budget_usd)


def job_of(member: Member, agent: AgentSpec, inherited: Mapping[str, str], scratch: Path = SCRATCH) -> Job:
    """What the team file says about a turn of `member`, whatever it is about."""
    return Job(
        program=agent.command,
        cwd=member.cwd,
        scratch=scratch,
        access=member.access,
        allow=member.allow,
        model=member.model,
        args=member.args,
        project_settings=member.project_settings,
        env={**inherited, **member.env},
        memory=member.memory,
        terminal=agent.terminal,
        first_byte_s=member.first_byte_s,
    )


def settle(
    team: Team,
    member: Member,
    prompt: BuiltPrompt,
    errand: Errand,
    outside: Outside,
    *,
    scratch: Path = SCRATCH,
    budget_usd: float | None = None,
) -> ReadyTurn:
    """The turn that gives `member` this prompt; raises what `ready` does."""
    agent = team.agent_of(member)
    runner = AGENT_TYPES[agent.like].runner
    inherited = outside.env
    thread = prompt.thread if isinstance(prompt.thread, Thread) else None
    job = replace(
        job_of(member, agent, inherited, scratch),
        system_text=prompt.system_text,
        budget_usd=budget_usd,
        resumes=thread.session if thread else None,
    )
    command = runner.command(job)
    env = environment(
        inherited,
        runner.vendor,
        keep=member.env_keep,
        add=member.env,
        command_env={**command.env, "PWD": str(member.cwd)},
        tmpdir=scratch,
    )
    return ReadyTurn(
        member=member,
        agent=agent,
        runner=runner,
        prompt=prompt,
        command=command,
        env=env,
        setup=_setup(member, runner, prompt, errand, command, changes(inherited, env)),
        scratch=scratch,
        clocks=Clocks(member.first_byte_s, member.stall_s or runner.stall_s, member.timeout_s)
        if outside.live
        else NO_CLOCKS,
    )


def _setup(
    member: Member,
    runner: Runner,
    prompt: BuiltPrompt,
    errand: Errand,
    command: Command,
    changed: dict[str, str | None],
) -> Setup:
    """The part of the receipt that is known before the turn; `changed` are the variables of its environment."""
    thread = prompt.thread if isinstance(prompt.thread, Thread) else None
    return Setup(
        argv=command.argv,
        env=changed,
        cwd=str(member.cwd),
        access=member.access,
        access_note=runner.access_note(member.access),
        why=errand.why,
        answers=prompt.answers.id,
        request=errand.request,
        attempt=errand.attempt,
        model=member.model,
        stdin_bytes=len(prompt.prepared.stdin),
        system_bytes=len((prompt.system_text or "").encode()),
        inert_mentions=prompt.prepared.inert_mentions,
        redacted=prompt.redacted,
        trimmed=prompt.assembled.trimmed,
        blocks=prompt.assembled.blocks,
        memory=member.memory,
        resumes=thread.session if thread else None,
        fresh_because=None if isinstance(prompt.thread, Thread) else prompt.thread,
        opened=thread is not None and thread.opened,
        fresh_bytes=prompt.fresh_bytes,
        shown_from=prompt.shown_from,
        beside=prompt.beside if member.memory != "fresh" else (),
        thread_key=prompt.key,
        edits=errand.edits,
        sources=prompt.sources,
        purpose=errand.purpose,
    )


def why(route: Route, member: Member) -> str:
    stands_in = "" if member.name == route.target else f"; {member.name} answers in its place"
    return f"{route.by} asked for {route.target} in {route.parent}{stands_in}"


def check_runnable(turn: ReadyTurn) -> None:
    """Everything that can be known to fail before anything is started."""
    if refusal := turn.runner.refusal(turn.member.access, turn.env):
        raise NotTrusted(f"{turn.member.name} can not have access {turn.member.access!r}: {refusal}")
    find_program(turn.member, turn.command.argv[0], turn.env)


def find_program(member: Member, program: str, env: Mapping[str, str]) -> str:
    """Where the member's program is. Raises `UsageError` (no such folder to run it in) and `AgentMissing`."""
    if not member.cwd.is_dir():
        raise UsageError(
            f"{member.name}'s folder {member.cwd} does not exist", "create it, or mend cwd in the team file"
        )
    found = shutil.which(program, path=env.get("PATH", os.defpath))
    if found is None:
        hint = INSTALL.get(Path(program).name, "install it, or mend its command in the team file")
        raise AgentMissing(f"{member.name}'s program {program!r} is not installed", hint)
    return found


REAL = Outside(launch, check_runnable, moment=take_moment)


async def wait_to_start(turn: ReadyTurn, outside: Outside, stopper: Stopper) -> None:
    """Wait while others start CLIs of the same vendor. Raises `Interrupted` when a stop is requested meanwhile."""
    await outside.comes(turn.member.name)
    if not outside.live or turn.runner.vendor is None or turn.setup.same_process:
        return
    if (left := outside.moment(turn.runner.vendor) - outside.now()) > 0:
        await stopper.sleep(left)
        if stopper.asked:
            raise Interrupted(f"{turn.member.name} was interrupted before its turn began")


@dataclass(slots=True)
class _Collector:
    """Keeps the events of a turn with their times, and what the receipt counts of them."""

    emit: Callable[[AgentEvent], None]
    started: float = field(default_factory=time.monotonic)
    events: list[TimedEvent] = field(default_factory=list)

    def __call__(self, event: AgentEvent) -> None:
        if not isinstance(event, TextDelta):  # there may be millions, and the store leaves them out
            self.events.append(TimedEvent(time.monotonic() - self.started, event))
        self.emit(event)

    def files(self, cwd: Path) -> tuple[str, ...]:
        paths = (path for timed in self.events if isinstance(timed.event, ToolResult) for path in timed.event.paths)
        return tuple(
            dict.fromkeys(os.path.relpath(path, cwd) if Path(path).is_relative_to(cwd) else path for path in paths)
        )

    def count(self, kind: type[AgentEvent]) -> int:
        return sum(isinstance(timed.event, kind) for timed in self.events)


async def run(
    turn: ReadyTurn,
    folder: Path,
    launcher: Launcher,
    stopper: Stopper,
    emit: Callable[[AgentEvent], None],
    patience: Mapping[FailureKind, int] = NO_LIMITS,
    stays: Stays | None = None,
) -> FinishedTurn:
    """Start the member's program, follow it to its end and judge it. `folder` gets its stdout and stderr.

    With `stays` it is the process of earlier and later turns, too. `patience` is how many retries of its own, by their
    kind, the CLI may report before it is ended.
    """
    collector = _Collector(emit)
    member = turn.member
    program = shutil.which(turn.command.argv[0], path=turn.env.get("PATH", os.defpath)) or turn.command.argv[0]
    what = Launch(
        argv=(program, *turn.command.argv[1:]),
        cwd=member.cwd,
        env=turn.env,
        stdin=turn.prompt.prepared.stdin,
        folder=folder,
        scratch=turn.scratch,
        stop=turn.runner.stop,
        identity=Identity(member.name, turn.agent.like, turn.prompt.system_text),
        stays=stays,
        through=turn.command.through,
    )
    try:
        turn.scratch.mkdir(0o700)
        for path, content in turn.command.files.items():
            path.write_bytes(content)
        process = launcher(what)
    except (SpawnFailed, OSError) as error:
        words = str(error) if isinstance(error, SpawnFailed) else in_words(error)
        failure = Failure(FailureKind.MISSING, f"could not be started: {words}")
        return FinishedTurn(Outcome(exit_code=None, seconds=0.0, failure=failure), "")
    resumes, before = turn.setup.resumes, _used_before(turn)
    end = await run_turn(process, turn.runner.parser(), turn.clocks, stopper, collector, patience, resumes)
    outcome = _outcome(turn, end, collector, before)
    return FinishedTurn(outcome, end.text, end.interrupted, end.vendor_session, tuple(collector.events))


def _used_before(turn: ReadyTurn) -> Usage | None:
    """What the turn's session had used: by its turns or, where a person went on with it by hand, as its CLI tells."""
    thread, sessions = turn.prompt.thread, turn.runner.sessions
    if not isinstance(thread, Thread) or sessions is None:
        return None
    return (sessions.used(turn.env, thread.session) if thread.by_hand else None) or thread.usage


def _outcome(turn: ReadyTurn, end: TurnEnd, collected: _Collector, before: Usage | None) -> Outcome:
    notes = [timed.event.text for timed in collected.events if isinstance(timed.event, Note)][:20]
    if end.left:
        notes.append(f"ended what it left behind: {', '.join(end.left)}")
    return Outcome(
        exit_code=end.exit_code,
        seconds=end.seconds,
        failure=end.failure,
        first_byte_s=end.first_byte_s,
        model=end.model,
        usage=own_share(end.usage, before) if before else end.usage,
        denied=end.denied if end.denied or turn.runner.reports_denials else None,
        files=collected.files(end.cwd or turn.member.cwd),
        tools=collected.count(ToolCall),
        left=end.left,
        notes=tuple(notes),
        stderr_tail=end.stderr_tail[-4000:],
    )
