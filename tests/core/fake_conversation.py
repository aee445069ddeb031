"""A conversation of the core without real processes: a team, a store on disk, and agents that say what they are told.

The launcher is the only fake. Every `open` is what a new process would see.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from msgspec.structs import replace

from teamchat.core.agents import ProtocolName
from teamchat.core.conversation.coordinator import ConversationCoordinator
from teamchat.core.conversation.inputs import Message, Resume
from teamchat.core.engine.events import ResumeMode
from teamchat.core.engine.workflow import Process
from teamchat.core.messages import ConversationMessage
from teamchat.core.store.database import Database
from teamchat.core.store.messages import SqliteLog
from teamchat.core.store.sessions import create_session
from teamchat.core.store.turns import Turn, turns_of
from teamchat.core.team.team import BUILTIN_AGENTS, AgentSpec, Member, Team
from teamchat.core.turn.machine import Machine, ReadyTurn
from teamchat.core.turn.run import Hand, Run
from teamchat.core.turn.run_events import Conclusion, ConversationEvent, Warned
from teamchat.runners.agent_events import Failure
from teamchat.runners.child.running import Chunk, Exit, Launch
from teamchat.runners.child.supervisor import Stopper
from tests.core.fake_machine import FakeMachine
from tests.fakes.scripted import spoken


@dataclass(frozen=True)
class Fails:
    """A turn that says `partial` as it streams, `err` on stderr, and ends with `code`."""

    partial: str = ""
    code: int = 1
    err: str = ""


@dataclass(frozen=True)
class Hangs:
    """A turn that says `partial` and goes on until it is stopped; `then` happens as soon as it hangs."""

    partial: str = ""
    then: Callable[[], None] = lambda: None


Reply = str | Fails | Hangs
# The stores of a test's stages, which tests/conftest.py closes when it is over.
STORES = ExitStack()


class Running:
    """A process that keeps its output in the turn's folder, as a real one does."""

    def __init__(self, launch: Launch, output: str, reply: Reply) -> None:
        self.reply = reply
        self.exit: Exit | None = None
        self.stopped = asyncio.Event()
        launch.folder.mkdir(parents=True, exist_ok=True)
        (launch.folder / "stdout").write_text(output)
        self.output = output.encode()

    def over(self) -> None:
        """Its end is its exit."""

    def end_input(self) -> bool:
        return False

    def stop(self, why: Failure | None = None, *, hard: bool = False) -> None:
        del why, hard
        self.stopped.set()

    async def chunks(self) -> AsyncGenerator[Chunk, None]:
        yield Chunk("out", self.output, 0.0)
        match self.reply:
            case Fails(code=code, err=err):
                yield Chunk("err", err.encode(), 0.0)
                self.exit = Exit(code)
            case Hangs(then=then):
                then()
                await self.stopped.wait()
                self.exit = Exit(-15)
            case _:
                self.exit = Exit(0)


def human(name: str, title: str | None = None) -> Member:
    return Member(name, "human", Path("/work"), title)


def team_of(folder: Path, protocols: Mapping[str, ProtocolName], humans: Sequence[str] = ("kailai",)) -> Team:
    """A team of people and then of members, each with an agent of its own that has the events of its kind."""
    agents = {
        f"{name}-agent": AgentSpec(f"{name}-agent", (f"{name}-program",), protocol)
        for name, protocol in protocols.items()
    }
    members = (Member(name, "ai", folder, agent=f"{name}-agent") for name in protocols)
    return Team("crew", (*map(human, humans), *members), folder, agents={**BUILTIN_AGENTS, **agents})


@dataclass
class Stage:
    """`says` has each member's replies in order: retries get the same one again.

    `launched` are all processes that were started, in the order of their turns: the members of a group may start in
    another one. `events` is all that was told, `check` runs before each start. `answers`, `session_of` and `usage_of`
    may say otherwise what a process replies and reports; `visible_at` has what the conversation held when each was
    started.
    """

    folder: Path
    team: Team
    says: dict[str, list[Reply]] = field(default_factory=dict)
    check: Callable[[ReadyTurn], None] = lambda _: None
    starts: dict[int, tuple[Launch, list[ConversationMessage]]] = field(default_factory=dict)
    events: list[ConversationEvent] = field(default_factory=list)
    stopper: Stopper = field(default_factory=Stopper)
    make: Callable[[Path], Database] = Database
    moment: Callable[[str], float] = lambda _: 0.0
    hear: Callable[[ConversationEvent], None] = lambda _: None
    answers: Callable[[Launch], Reply | None] = lambda _: None
    session_of: Callable[[Launch], str | None] = lambda _: None
    usage_of: Callable[[Launch], dict[str, int] | None] = lambda _: None
    types_ahead: bool = False
    takes_over: bool = False

    def __post_init__(self) -> None:
        self.db = self.make(self.folder / "teamchat.db")
        STORES.callback(self.db.close)
        self.session = create_session(self.db, self.team.name, self.team.task).id

    def open_real(self) -> ConversationCoordinator:
        """The same with real processes."""
        machine = FakeMachine(env={"PATH": os.environ["PATH"]}, moment=self.moment)
        return self.open(machine)

    def open(self, machine: Machine | None = None) -> ConversationCoordinator:
        """The conversation as a new process finds it."""
        self.stopper = Stopper()
        coordinator = ConversationCoordinator(
            Run(
                self.team,
                self.db,
                self.session,
                folder=self.folder / "turns",
                stopper=self.stopper,
                emit=self._emit,
                machine=machine or FakeMachine(self._launch, self.check, moment=self.moment),
                hand=Hand() if self.types_ahead else None,
                takes_over=self.takes_over,
            )
        )
        coordinator.recover()
        return coordinator

    def _emit(self, event: ConversationEvent) -> None:
        self.events.append(event)
        self.hear(event)

    def _launch(self, launch: Launch) -> Running:
        launch.prepare()
        self.keep(launch)
        name = launch.identity.member
        spoke = sum(message.speaker.role_name == name for message in self.log)
        replies = self.says.get(name, [])
        said = replies[spoke] if spoke < len(replies) else f"{name} has nothing to say"
        reply = self.answers(launch) or said
        protocol = self.team.agent_of(self.team.member(name)).protocol
        going_on = [word for before, word in pairwise(launch.argv) if before in ("--resume", "resume")]
        session = self.session_of(launch) or (going_on[0] if going_on else f"{name}-{len(self.starts)}")
        output = spoken(protocol, reply, session, self.usage_of(launch)) if isinstance(reply, str) else reply.partial
        return Running(launch, output, reply)

    def keep(self, launch: Launch) -> None:
        (turn,) = (turn.id for turn in self.turns if turn.folder == launch.folder)
        self.starts[turn] = launch, self.log

    def send(self, text: str, *, speaker: str | None = None, to: str | None = None) -> Conclusion:
        """Send it as the first person, unless the text or `speaker` says who speaks."""
        if len(self.team.humans) > 1 and "[FROM:" not in text:
            speaker = speaker or self.team.humans[0].name
        return asyncio.run(self._send(text, speaker, to))

    async def _send(self, text: str, speaker: str | None, to: str | None) -> Conclusion:
        return await self.open().run_input(Message(text=text, speaker=speaker, to=to))

    def run_process(self, text: str, process: Process, *, speaker: str | None = None) -> Conclusion:
        async def run() -> Conclusion:
            return await self.open().run_input(Message(text=text, speaker=speaker, process=process))

        return asyncio.run(run())

    def resume(self, mode: ResumeMode = ResumeMode.RETRY) -> Conclusion:
        async def run() -> Conclusion:
            return await self.open().run_input(Resume(mode))

        return asyncio.run(run())

    def member(self, name: str, **changes: object) -> None:
        """Change a member of the team."""
        members = tuple(replace(m, **changes) if m.name == name else m for m in self.team.members)
        self.team = replace(self.team, members=members)

    @property
    def log(self) -> list[ConversationMessage]:
        return SqliteLog(self.db, self.session).all()

    @property
    def said(self) -> list[str]:
        """Every message, as `max: Hello`."""
        return [f"{message.speaker.role_name}: {message.content}" for message in self.log]

    @property
    def launched(self) -> list[Launch]:
        return [launch for _, (launch, _) in sorted(self.starts.items())]

    @property
    def visible_at(self) -> list[list[ConversationMessage]]:
        return [log for _, (_, log) in sorted(self.starts.items())]

    @property
    def spoke(self) -> list[str]:
        """Whose process was started, in the order of the turns."""
        return [launch.identity.member for launch in self.launched]

    @property
    def prompts(self) -> list[str]:
        return [launch.stdin.decode() for launch in self.launched]

    @property
    def turns(self) -> list[Turn]:
        return turns_of(self.db, self.session)

    @property
    def queue(self) -> list[str]:
        return [f"{route.target} {route.status}" for route in self.open().state.queue]

    @property
    def warnings(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, Warned)]
