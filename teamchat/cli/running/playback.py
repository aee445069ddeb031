"""Playing a cassette through the same coordinator, store and output as a live conversation."""

from __future__ import annotations

import asyncio
import contextlib
import math
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from teamchat.cli.output import Output, Silent
from teamchat.cli.output.lines import note
from teamchat.cli.output.transcript import RunTranscript
from teamchat.cli.running.console import Console
from teamchat.cli.running.converse import need_descriptors
from teamchat.cli.running.showing import choose_output, terminal_width
from teamchat.cli.startup.interrupts import raise_again
from teamchat.cli.startup.options import ShownOptions
from teamchat.core.cassette.account import account, differences, progress_mark
from teamchat.core.cassette.format import Cassette, CheckLine, EndLine, HumanLine, ProcessLine, RecordedRun, ResumeLine
from teamchat.core.cassette.player import Player, RecordedTurn
from teamchat.core.cassette.replay import RecordedMachine, recorded_team, recorded_turn
from teamchat.core.cassette.team import in_folder
from teamchat.core.conversation.coordinator import ConversationCoordinator
from teamchat.core.conversation.recovery import turns_dir
from teamchat.core.engine.events import PauseKind, ResumeMode
from teamchat.core.engine.processes.table import TAKES
from teamchat.core.errors import ExitCode, UsageError
from teamchat.core.store.database import Database
from teamchat.core.store.sessions import Session, create_session
from teamchat.core.team.team import Team
from teamchat.core.text.clean import visible
from teamchat.core.text.commands import command_of
from teamchat.core.turn.machine import Cooldowns, Machine
from teamchat.core.turn.run import Run
from teamchat.core.turn.run_events import Conclusion, ConversationEvent, TurnFinished, TurnStarted

DIFFERS = ExitCode.MEMBER_FAILED  # the exit code if something differs from the recording
Plays = Callable[[Iterable[RecordedTurn]], Player]


def play(
    cassette: Cassette, show: ShownOptions, *, speed: float = 1.0, team: Team | None = None, verify: bool = False
) -> int:
    """Replay every input in order, in a temporary store, with `team` instead of the recorded one.

    The exit code is that of the last input. With `verify` it is 0, or 1 if something differs from the recording.
    Raises `NoRecording` for a turn that was not recorded.
    """
    if cassette.header.label and show.talks:
        note(visible(f"a recording with a {cassette.header.label}"))
    with open_stage(cassette, lambda turns: Player(turns, speed or math.inf), show, team) as stage:
        code, same = ExitCode.DONE, True
        for number, run in enumerate(cassette.runs, 1):
            try:
                played = stage.play(run)
            except UsageError as error:
                raise UsageError(f"input {number} of the recording cannot be played: {error}") from None
            code = played.code
            if played.stopped:
                return code
            if verify:
                problems = list(_problems(run.end, played)) if run.end else ["the recording breaks off"]
                same = same and not problems
                for problem in problems:
                    note(f"input {number} is not as recorded: {visible(problem)}")
        if not verify:
            return code
        return ExitCode.DONE if same else DIFFERS


class Played(Struct):
    """The result of replaying one input. `left` and `left_checks` are the recorded turns and checks not played.

    `stopped`: the person who watched it ended it early.
    """

    left: list[RecordedTurn]
    left_checks: list[CheckLine]
    transcript: RunTranscript = field(default_factory=RunTranscript)
    stored: dict[str, Any] = field(default_factory=dict)
    code: ExitCode = ExitCode.DONE
    paused: PauseKind | None = None
    stopped: bool = False


@contextmanager
def open_stage(cassette: Cassette, plays: Plays, show: ShownOptions | None, team: Team | None) -> Iterator[Stage]:
    """Open a temporary place to replay in. `plays` makes the player of a run. With `show` None nothing is shown."""
    raise_again()
    with tempfile.TemporaryDirectory(prefix="teamchat-replay-") as folder:
        root = Path(folder)
        who = in_folder(team, root) if team else recorded_team(cassette, root)
        db = Database(root / "teamchat.db")
        try:
            session = create_session(db, who.name, who.task, "replay", cassette.header.fence_key or "")
            yield Stage(cassette, who, db, session, root, plays, show)
        finally:
            db.close()


class _WithoutReceipts(Struct, frozen=True):
    """An output that refers to no receipts: a replay keeps none. It takes the folders of members from `folders`."""

    inner: Output
    folders: Mapping[str, str]

    def __call__(self, event: ConversationEvent) -> None:
        if isinstance(event, TurnStarted | TurnFinished):
            setup = event.turn.setup
            setup = replace(setup, cwd=self.folders.get(event.turn.member, setup.cwd))
            event = replace(event, turn=replace(event.turn, setup=setup))
        self.inner(replace(event, partial="") if isinstance(event, TurnFinished) else event)

    def finish(self, conclusion: Conclusion) -> None:
        self.inner.finish(conclusion)

    def close(self) -> None:
        self.inner.close()


class Stage(Struct, frozen=True):
    """A place to replay a cassette in. `heard` may listen to every call of the recorded machine."""

    cassette: Cassette
    team: Team
    db: Database
    session: Session
    folder: Path
    plays: Plays
    show: ShownOptions | None
    heard: Callable[[Machine], Machine] = lambda machine: machine

    def play(self, run: RecordedRun) -> Played:
        """Play one input and all turns that follow from it."""
        player = self.plays(map(recorded_turn, run.turns))
        machine = RecordedMachine(self.cassette, run, player, self.folder)
        played = Played(player.waiting, machine.checks)

        async def work(coordinator: ConversationCoordinator) -> Conclusion:
            before = progress_mark(coordinator)
            done = await coordinator.run_input(run.input.input)
            played.transcript.finish(done)
            played.stored = account(coordinator, before)
            played.paused, played.stopped = done.paused, bool(coordinator.run.stopper.asked)
            return replace(done, hint=None) if played.stopped else done

        if self.show and self.show.talks:
            print(f"{_on_screen(f'$ {visible(command_of(*typed_command(run.input)))}')}\n", flush=True)
        console = Console(self._output(run), played.transcript)
        its_run = Run(
            self.team,
            self.db,
            self.session.id,
            folder=turns_dir(self.db),
            stopper=console.stopper,
            emit=console.emit,
            machine=self.heard(machine),
            cooldowns=self._cooldowns(run, player),
            bounds=run.input.bounds,
        )
        need_descriptors()
        with contextlib.closing(console):
            played.code = asyncio.run(console.run(ConversationCoordinator(its_run), work))
        return played

    def _output(self, run: RecordedRun) -> Output:
        if self.show is None:
            return Silent()
        output = choose_output(self.team, self.session.name, self.show, receipts=False)
        turns = map(recorded_turn, run.turns)
        folders = {turn.identity.member: str(turn.exit.cwd) for turn in turns if turn.exit and turn.exit.cwd}
        return output if self.show.as_json else _WithoutReceipts(output, folders)

    def _cooldowns(self, run: RecordedRun, player: Player) -> Cooldowns:
        """Restore the cooldowns at the time of recording, by the recording's clock."""
        file = self.folder / "cooldowns.json"
        file.unlink(missing_ok=True)
        cooldowns = Cooldowns(file, lambda: player.clock)
        for agent, seconds in run.input.cooling.items():
            cooldowns.start(agent, seconds)
        return cooldowns


def _on_screen(line: str) -> str:
    """Break the line at words for a terminal."""
    if not sys.stdout.isatty():
        return line
    from teamchat.cli.output.terminal.wrap import wrapped

    return "\n".join(wrapped(line, terminal_width()))


def _problems(end: EndLine, run: Played) -> Iterator[str]:
    """Say how a run differs from the recorded one: in its stored values or, if these are equal, in its output."""
    then = end.model_dump(mode="json", exclude_unset=True)
    if then["code"] != run.code:
        yield f"exit code: {run.code} instead of {then['code']}"
    yield from differences({"paused": then["paused"]} if "paused" in then else {}, {"paused": run.paused})
    yield from (f"a recorded turn of {turn.identity.member} that nobody asked for" for turn in run.left)
    yield from (f"a recorded run of the check {check.name} that nobody asked for" for check in run.left_checks)
    known = {name: now for name, now in run.stored.items() if name in then}
    stored = [line for name, now in known.items() for line in differences(then[name], now, name)]
    yield from stored
    if not stored:
        yield from differences(then["shown"], run.transcript.shown, "--json lines")
        yield from differences(then["printed"], run.transcript.printed, "printed")


def typed_command(line: HumanLine | ResumeLine) -> list[str]:
    """Return the command that the person typed."""
    only = ["--only"] if line.only else []
    window = ["--window", str(line.window)] if line.window is not None else []
    bounds = [*only, *(["--turns", str(line.turns)] if line.turns else []), *window]
    if isinstance(line, ResumeLine):
        mode = [f"--{line.mode.value}"] if line.mode is not ResumeMode.RETRY else []
        return ["teamchat", "resume", *mode, *bounds]
    speaker = ["--as", line.speaker] if line.speaker else []
    to = ["--to", line.to] if line.to else []
    if line.process:
        return ["teamchat", "run", *_typed_process(line.process), *speaker, *bounds, line.text]
    return ["teamchat", "send", *speaker, *to, *bounds, line.text]


def _typed_process(line: ProcessLine) -> list[str]:
    """Return the process as a person may have typed it."""
    settings = {**dict(line), "workers": line.members, "rounds": line.rounds if line.rounds > 1 or line.do else None}
    given = {setting: settings[setting] for setting in TAKES[line.kind] if setting != "check" and settings[setting]}
    words = [(setting, ",".join(value) if isinstance(value, tuple) else str(value)) for setting, value in given.items()]
    words += [("check", check.command or check.name) for check in line.checks]
    typed = (word for setting, value in words for word in (f"--{setting}", value) if word != str(True))
    return [line.name or line.kind, *typed]
