"""`send --record` and `resume --record`: the same run, while a cassette records it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from teamchat.cli.output.lines import note
from teamchat.cli.output.transcript import RunTranscript
from teamchat.cli.running.console import Work
from teamchat.core.cassette.account import account, progress_mark, standing
from teamchat.core.cassette.player import RecordedTurn, Recorder, Recording
from teamchat.core.cassette.replay import key_of, not_started, without_prompt
from teamchat.core.cassette.writer import CassetteWriter
from teamchat.core.check import Check
from teamchat.core.checks.command import CheckRun
from teamchat.core.context.layers.collector import ContextCollector
from teamchat.core.context.layers.collector import Listening as ListeningCollector
from teamchat.core.conversation.coordinator import ConversationCoordinator
from teamchat.core.conversation.inputs import Input, Message
from teamchat.core.engine.state import Bounds
from teamchat.core.engine.workflow import Part
from teamchat.core.errors import ExitCode, TeamchatError, UsageError
from teamchat.core.files.folders import state_dir
from teamchat.core.receipt import Ran
from teamchat.core.store.database import Database
from teamchat.core.store.sessions import Session, fence_key
from teamchat.core.team.team import Member, Team
from teamchat.core.turn.machine import Cooldowns, Machine, ReadyTurn
from teamchat.core.turn.run_events import Conclusion
from teamchat.runners.base import Job, Runner, Slash
from teamchat.runners.child.running import Launch, Running
from teamchat.runners.child.supervisor import Stopper

if TYPE_CHECKING:
    from teamchat.core.turn.hosting import HostPlace

Keep = Callable[[RecordedTurn], None]
LABEL = "TEAMCHAT_CASSETTE_LABEL"  # set if no real model gave the recorded replies


def recorded(
    file: Path, given: Input, bounds: Bounds, team: Team, db: Database, session: Session, work: Work, machine: Machine
) -> tuple[Work, Machine, RunTranscript]:
    """Make the `Record` of that file, which begins with the input."""
    key = fence_key(db, session.id)
    writer = CassetteWriter(file, team, os.environ, os.environ.get(LABEL), fence_key=key)
    transcript = RunTranscript()
    cooldowns = Cooldowns(state_dir() / "cooldowns.json")

    async def record(coordinator: ConversationCoordinator) -> Conclusion:
        before = progress_mark(coordinator)
        writer.hide((given.process if isinstance(given, Message) else None) or coordinator.state.process)
        writer.begin(standing(coordinator))
        with writer.whole():
            left = {agent.name: cooldowns.left(agent.name) for agent in team.agents.values()}
            writer.input(given, {name: seconds for name, seconds in left.items() if seconds}, bounds)
            conclusion = await work(coordinator)
        transcript.finish(conclusion)
        stored = account(coordinator, before)
        try:
            writer.end(conclusion.code, conclusion.paused, stored, transcript.shown, transcript.printed)
        except UsageError as error:  # the conversation has stored all of it
            if conclusion.code is ExitCode.DONE:
                return replace(conclusion, code=error.code, reason=str(error))
            note(str(error))
        return conclusion

    return record, RecordingMachine(machine, writer), transcript


class RecordingMachine(Machine):
    """Another machine. Each turn that passes through it is recorded by the writer, or by `keep` if that is given."""

    def __init__(self, inner: Machine, writer: CassetteWriter, keep: Keep | None = None) -> None:
        super().__init__(inner.env)
        self.live, self._inner, self._writer = inner.live, inner, writer
        self._keep = keep or writer.turn
        self._recorder = Recorder(inner.start, self._keep)
        self._check_began = 0.0

    def check(self, turn: ReadyTurn) -> None:
        try:
            self._inner.check(turn)
        except TeamchatError as error:
            self._writer.planned(key_of(turn))
            self._keep(RecordedTurn(*key_of(turn), (), (), (), None, error=not_started(error)))
            raise
        self._writer.planned(key_of(turn))
        self._recorder.begins(key_of(turn))

    def start(self, what: Launch) -> Running:
        return self._recorder(what)

    def place(self, member: Member, part: Part | None = None) -> HostPlace | None:
        try:
            return self._inner.place(member, part)
        except TeamchatError as error:
            self.no_host(member, error)
            raise

    def no_host(self, member: Member, error: TeamchatError) -> None:
        self._keep(RecordedTurn(without_prompt(member), b"", (), (), (), None, error=not_started(error)))

    def ran(self, turn: ReadyTurn, process: Running) -> tuple[Ran, bool] | None:
        return self._inner.ran(turn, process.process if isinstance(process, Recording) else process)

    async def run_check(self, check: Check, cwd: Path, folder: Path, scratch: Path, stopper: Stopper) -> CheckRun:
        self._check_began = self._recorder.now()
        return await self._inner.run_check(check, cwd, folder, scratch, stopper)

    def keep_check(self, check: Check, ran: CheckRun) -> None:
        recorded_at = self._inner.check_at
        self._writer.check(check, ran, self._check_began if recorded_at is None else recorded_at)

    def exists(self, member: Member, runner: Runner, part: Part | None = None) -> Callable[[str], bool]:
        real = self._inner.exists(member, runner, part)

        def there(name: str) -> bool:
            if known := real(name):
                self._writer.plans[member.name].existing.add(name)
            return known

        return there

    def slash(self, member: Member, runner: Runner, job: Job, typed: str) -> Slash | None:
        self._writer.plans[member.name].slash = slash = self._inner.slash(member, runner, job, typed)
        return slash

    def collected(self, collector: ContextCollector) -> ContextCollector:
        return ListeningCollector(self._inner.collected(collector), self._writer.told)

    def scratch(self, folder: Path) -> Path:
        return self._inner.scratch(folder)

    def now(self) -> float:
        return self._inner.now()

    def moment(self, vendor: str) -> float:
        return self._inner.moment(vendor)

    def stopped(self, member: str | None) -> bool:
        return self._inner.stopped(member)

    async def comes(self, turn: ReadyTurn) -> None:
        await self._inner.comes(turn)

    def in_work_tree(self, folder: Path) -> bool:
        return self._inner.in_work_tree(folder)
