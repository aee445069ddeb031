"""Playing a cassette through the same coordinator, store and output as a live conversation."""

from __future__ import annotations

import shlex
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from teamchat.cli.conversation import Show, choose_output, run_conversation
from teamchat.cli.output.words import note
from teamchat.core.cassette import Cassette, EndLine, HumanLine
from teamchat.core.coordinator import ConversationCoordinator
from teamchat.core.errors import ExitCode
from teamchat.core.events import Conclusion
from teamchat.core.member_turn import Outside
from teamchat.core.replay import differences, recorded_outside, recorded_team
from teamchat.core.store.database import Database
from teamchat.core.store.sessions import Session, create_session
from teamchat.core.team import Team

STOPS = (ExitCode.NO_RECORDING, ExitCode.INTERRUPTED, ExitCode.TERMINATED)


def play(cassette: Cassette, show: Show, *, speed: float = 1.0, team: Team | None = None, verify: bool = False) -> int:
    """Replay every input in order, in a temporary store; `team` takes the recorded one's place.

    The exit code is 0, or what stopped it: 10 where something is not as it was recorded.
    """
    if cassette.header.label and show.talks:
        note(f"a recording with a {cassette.header.label}")
    with tempfile.TemporaryDirectory(prefix="teamchat-replay-") as folder:
        root = Path(folder)
        who = in_folder(team, root) if team else recorded_team(cassette, root)
        db = Database(root / "teamchat.db")
        try:
            session = create_session(db, who.name, who.task, "replay")
            stage = _Stage(who, db, session, root, recorded_outside(cassette, speed), show, verify)
            codes = (stage.play(human, end) for human, end in cassette.runs)
            return next((code for code in codes if code in STOPS), ExitCode.DONE)
        finally:
            db.close()


def in_folder(team: Team, root: Path) -> Team:
    """The team with all its members working in `root`: a replay touches no other folder."""
    return replace(team, root=root, members=tuple(replace(member, cwd=root) for member in team.members))


@dataclass(frozen=True, slots=True)
class _Stage:
    team: Team
    db: Database
    session: Session
    folder: Path
    outside: Outside
    show: Show
    verify: bool

    def play(self, human: HumanLine, end: EndLine | None) -> ExitCode:
        """One input and all the turns that follow from it."""
        problems: list[str] = []

        async def work(coordinator: ConversationCoordinator) -> Conclusion:
            before = len(coordinator.manager.get_messages())
            done = await coordinator.send(human.text, speaker=human.speaker, to=human.to)
            if self.verify and end:
                problems.extend(differences(coordinator, before, done.code, end))
            return done

        if self.show.talks:
            print(f"$ {shlex.join(command(human))}\n", flush=True)
        output = choose_output(self.team, self.session.name, self.show)
        code = run_conversation(self.team, self.db, self.session, output, work, self.folder, self.outside)
        for problem in problems:
            note(f"not as recorded: {problem}")
        return ExitCode.NO_RECORDING if problems else code


def command(human: HumanLine) -> list[str]:
    """What the person had typed."""
    speaker = ["--as", human.speaker] if human.speaker else []
    to = ["--to", human.to] if human.to else []
    return ["teamchat", "send", *speaker, *to, human.text]
