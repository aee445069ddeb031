"""`send --record`: the same run with a cassette that listens."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from teamchat.cli.conversation import Work, converse
from teamchat.cli.output import Output
from teamchat.core.coordinator import ConversationCoordinator
from teamchat.core.errors import ExitCode
from teamchat.core.events import Conclusion
from teamchat.core.member_turn import REAL
from teamchat.core.recording import CassetteWriter
from teamchat.core.store.database import Database
from teamchat.core.store.sessions import Session
from teamchat.core.team import Team
from teamchat.runners.recorded import Recorder

Said = tuple[str, str | None, str | None]
LABEL = "TEAMCHAT_CASSETTE_LABEL"  # set where a recording is not what a real model said


def converse_recorded(
    file: Path,
    team: Team,
    db: Database,
    session: Session,
    output: Output,
    work: Work,
    said: tuple[str, str | None, str | None],
    *,
    wait: bool,
) -> ExitCode:
    """`converse`, recording the input `said` (text, speaker, to), its turns and its end into `file`."""
    writer = CassetteWriter(file, team, os.environ, os.environ.get(LABEL))

    def exists(folder: Path, path: str) -> bool:
        there = REAL.exists(folder, path)
        if there:
            writer.existing.add(path)
        return there

    async def recorded(coordinator: ConversationCoordinator) -> Conclusion:
        before = len(coordinator.manager.get_messages())
        writer.begin(before)
        writer.human(*said)
        conclusion = await work(coordinator)
        writer.end(conclusion.code, coordinator.manager.get_messages()[before:])
        return conclusion

    outside = replace(REAL, launcher=Recorder(REAL.launcher, writer.turn), exists=exists)
    return converse(team, db, session, output, recorded, outside, wait=wait)
