"""Playing a cassette through the same coordinator, store and output as a live conversation."""

from __future__ import annotations

import math
import shlex
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from teamchat.cli.conversation import Show, choose_output, run_conversation
from teamchat.cli.output import Silent
from teamchat.cli.output.transcript import Transcript
from teamchat.cli.output.words import note
from teamchat.core.cassette import Cassette, EndLine, HumanLine
from teamchat.core.cassette.account import account, mark
from teamchat.core.cassette.compare import differences
from teamchat.core.cassette.replay import recorded_outside, recorded_team, recorded_turn
from teamchat.core.clean import visible
from teamchat.core.cooldowns import Cooldowns
from teamchat.core.coordinator import ConversationCoordinator
from teamchat.core.errors import ExitCode
from teamchat.core.events import Conclusion
from teamchat.core.member_turn import Outside
from teamchat.core.store.database import Database
from teamchat.core.store.sessions import Session, create_session
from teamchat.core.team import Team
from teamchat.core.team.recorded import in_folder
from teamchat.runners.recorded import Player

DIFFERS = ExitCode.MEMBER_FAILED  # something is not as it was recorded
BROKEN_OFF = (ExitCode.INTERRUPTED, ExitCode.TERMINATED)


def play(cassette: Cassette, show: Show, *, speed: float = 1.0, team: Team | None = None, verify: bool = False) -> int:
    """Replay every input in order, in a temporary store; `team` takes the recorded one's place.

    The exit code is that of the last input; with `verify` 0, or 1 where something is not as it was recorded. Raises
    `NoRecording` for a turn that was not recorded.
    """
    if cassette.header.label and show.talks:
        note(visible(f"a recording with a {cassette.header.label}"))
    player = Player(map(recorded_turn, cassette.turns), speed or math.inf)
    with open_stage(cassette, player, show, team) as stage:
        code, same = ExitCode.DONE, True
        for number, (human, end) in enumerate(cassette.runs, 1):
            run = stage.play(human)
            code = run.code
            if code in BROKEN_OFF and not (end and end.code in BROKEN_OFF):
                return code
            if verify:
                problems = list(_problems(end, run)) if end else ["the recording breaks off"]
                same = same and not problems
                for problem in problems:
                    note(f"input {number} is not as recorded: {visible(problem)}")
        if not verify:
            return code
        return ExitCode.DONE if same else DIFFERS


@dataclass(frozen=True, slots=True)
class Run:
    """What the replay of an input came to."""

    code: ExitCode
    stored: dict[str, Any]
    transcript: Transcript


@contextmanager
def open_stage(cassette: Cassette, player: Player, show: Show | None, team: Team | None) -> Iterator[Stage]:
    """A place to replay in, of which nothing is left; `show` None shows nothing."""
    with tempfile.TemporaryDirectory(prefix="teamchat-replay-") as folder:
        root = Path(folder)
        who = in_folder(team, root) if team else recorded_team(cassette, root)
        db = Database(root / "teamchat.db")
        try:
            session = create_session(db, who.name, who.task, "replay", cassette.header.fence_key or "")
            yield Stage(who, db, session, root, recorded_outside(cassette, player, root), show)
        finally:
            db.close()


@dataclass(frozen=True, slots=True)
class Stage:
    team: Team
    db: Database
    session: Session
    folder: Path
    outside: Outside
    show: Show | None

    def play(self, human: HumanLine) -> Run:
        """One input and all the turns that follow from it."""
        stored: dict[str, Any] = {}
        transcript = Transcript()

        async def work(coordinator: ConversationCoordinator) -> Conclusion:
            before = mark(coordinator)
            done = await coordinator.send(human.text, speaker=human.speaker, to=human.to)
            transcript.finish(done)
            stored.update(account(coordinator, before))
            return done

        if self.show and self.show.talks:
            print(f"$ {visible(shlex.join(command(human)))}\n", flush=True)
        output = choose_output(self.team, self.session.name, self.show) if self.show else Silent()
        code = run_conversation(
            self.team,
            self.db,
            self.session,
            output,
            work,
            self.folder,
            self.outside,
            self._cooldowns(human),
            transcript,
        )
        return Run(code, stored, transcript)

    def _cooldowns(self, human: HumanLine) -> Cooldowns:
        """Who cooled down when the input was recorded."""
        file = self.folder / "cooldowns.json"
        file.unlink(missing_ok=True)
        cooldowns = Cooldowns(file)
        for agent in human.cooling:
            cooldowns.start(agent)
        return cooldowns


def _problems(end: EndLine, run: Run) -> Iterator[str]:
    """How a run differs from the recorded one: in what it stored, or else in what it printed."""
    then = end.model_dump(mode="json")
    if then["code"] != run.code:
        yield f"exit code: {run.code} instead of {then['code']}"
    stored = [line for name, now in run.stored.items() for line in differences(then[name], now, name)]
    yield from stored
    if not stored:
        yield from differences(then["shown"], run.transcript.shown, "--json lines")
        yield from differences(then["printed"], run.transcript.printed, "printed")


def command(human: HumanLine) -> list[str]:
    """What the person had typed."""
    speaker = ["--as", human.speaker] if human.speaker else []
    to = ["--to", human.to] if human.to else []
    return ["teamchat", "send", *speaker, *to, human.text]
