"""`send --record` and `resume --record`: the same run, while a cassette records it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from teamchat.cli.output.lines import note
from teamchat.cli.output.transcript import Transcript
from teamchat.cli.shared.conversation import Work
from teamchat.core.cassette.account import account, progress_mark, standing
from teamchat.core.cassette.player import RecordedTurn, Recorder, nameless
from teamchat.core.cassette.replay import identity_of, not_started
from teamchat.core.cassette.writer import CassetteWriter, Cooling
from teamchat.core.context.layers.collector import ContextCollector, Listening
from teamchat.core.conversation.coordinator import ConversationCoordinator
from teamchat.core.errors import ExitCode, TeamchatError, UsageError
from teamchat.core.files.folders import state_dir
from teamchat.core.store.database import Database
from teamchat.core.store.sessions import Session, fence_key
from teamchat.core.team.team import Member, Team
from teamchat.core.turn.events import Conclusion
from teamchat.core.turn.host import Host
from teamchat.core.turn.ready import ReadyTurn
from teamchat.core.turn.vendor_limits import Cooldowns
from teamchat.runners.base import Job, Runner, Slash

Keep = Callable[[RecordedTurn], None]
WriteInput = Callable[[CassetteWriter, Cooling], None]
LABEL = "TEAMCHAT_CASSETTE_LABEL"  # set if no real model gave the recorded replies


def recorded(
    file: Path, write_input: WriteInput, team: Team, db: Database, session: Session, work: Work, host: Host
) -> tuple[Work, Host, Transcript]:
    """The `Record` of that file. `write_input` records what the person did."""
    key = fence_key(db, session.id)
    writer = CassetteWriter(file, team, os.environ, os.environ.get(LABEL), fence_key=key)
    transcript = Transcript()
    cooldowns = Cooldowns(state_dir() / "cooldowns.json")

    async def record(coordinator: ConversationCoordinator) -> Conclusion:
        before = progress_mark(coordinator)
        writer.begin(standing(coordinator))
        with writer.whole():
            left = {agent.name: cooldowns.left(agent.name) for agent in team.agents.values()}
            write_input(writer, {name: seconds for name, seconds in left.items() if seconds})
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

    return record, listening(writer, host), transcript


def listening(writer: CassetteWriter, host: Host, keep: Keep | None = None) -> Host:
    """The same host. Each turn that passes through it is recorded by the writer, or by `keep` if that is given."""
    keep = keep or writer.turn

    def exists(member: Member, runner: Runner) -> Callable[[str], bool]:
        real = host.exists(member, runner)

        def there(name: str) -> bool:
            if found := real(name):
                writer.existing[member.name].add(name)
            return found

        return there

    def slash(member: Member, runner: Runner, job: Job, typed: str) -> Slash | None:
        writer.slashes[member.name] = found = host.slash(member, runner, job, typed)
        return found

    def check(turn: ReadyTurn) -> None:
        try:
            host.check(turn)
        except TeamchatError as error:
            identity, stdin = identity_of(turn), nameless(turn.prompt.prepared.stdin, turn.scratch)
            keep(RecordedTurn(identity, stdin, (), (), (), None, error=not_started(error)))
            raise
        recorder.begins(turn.member.name)

    def collected(inner: ContextCollector) -> ContextCollector:
        return Listening(host.collected(inner), writer.told)

    recorder = Recorder(host.launcher, keep)
    return replace(host, launcher=recorder, exists=exists, slash=slash, check=check, collected=collected)
