from __future__ import annotations

import math
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from msgspec import Struct, field
from msgspec.structs import replace

from teamchat.cli.output.jsonl import write_line
from teamchat.cli.output.lines import plural
from teamchat.cli.running.playback import Played, Stage, open_stage
from teamchat.cli.running.recorder import RecordingMachine
from teamchat.cli.startup.interrupts import raise_again
from teamchat.cli.startup.options import JsonOption, TeamOption
from teamchat.cli.startup.workspace import find_team
from teamchat.core.cassette.account import standing_of, text_difference
from teamchat.core.cassette.format import Cassette, RecordedRun, read_cassette
from teamchat.core.cassette.player import LenientPlayer, RecordedTurn
from teamchat.core.cassette.writer import CassetteWriter
from teamchat.core.errors import ExitCode, Interrupted, NoRecording, TeamchatError, UsageError
from teamchat.core.store.sessions import fence_key
from teamchat.core.team.team import Team
from teamchat.core.text.clean import printable, visible
from teamchat.core.text.commands import saying
from teamchat.runners.child.running import Identity


class _Count:
    def __init__(self) -> None:
        self.cassettes = self.changed = 0

    def add(self, checked: TestedRecording) -> None:
        self.cassettes += 1
        self.changed += not checked.same

    @property
    def code(self) -> int:
        return ExitCode.MEMBER_FAILED if self.changed else ExitCode.DONE


class CheckedText(_Count):
    def __call__(self, checked: TestedRecording) -> None:
        self.add(checked)
        print(f"{printable(str(checked.file))}: {_word(checked)}")
        for (member, what, lines), turns in checked.changes.items():
            where = ", ".join(map(str, turns))
            print(f"  {member}, {what} of turn{'s' if len(turns) > 1 else ''} {where}")
            for line in lines:
                print(f"    {visible(line)}")

    def finish(self) -> int:
        print(f"{plural(self.cassettes, 'cassette')}, {self.changed} changed")
        return self.code


def _word(checked: TestedRecording) -> str:
    if checked.problem:
        return f"cannot be played: {visible(checked.problem)}"
    if checked.updated:
        return f"updated ({plural(checked.turns, 'turn')})"
    return "changed" if checked.changes else f"as recorded ({plural(checked.turns, 'turn')})"


class CheckedJson(_Count):
    def __call__(self, checked: TestedRecording) -> None:
        self.add(checked)
        changes = [
            {"member": member, "what": what, "turns": turns, "diff": list(lines)}
            for (member, what, lines), turns in checked.changes.items()
        ]
        write_line(
            "cassette",
            file=str(checked.file),
            ok=checked.same,
            turns=checked.turns,
            changes=changes,
            problem=checked.problem,
            updated=checked.updated,
        )

    def finish(self) -> int:
        write_line("result", code=int(self.code), cassettes=self.cassettes, changed=self.changed)
        return self.code


def test(
    where: Annotated[
        Path, typer.Argument(metavar="DIR", help="A cassette, or a folder that is searched for cassettes.")
    ],
    team: TeamOption = None,
    update: Annotated[bool, typer.Option("--update", help="Update the recordings to the current prompts.")] = False,
    as_json: JsonOption = False,
) -> int:
    """Show how the prompts of recorded conversations have changed. Replies come from the recordings.

    Exits with 1 if a prompt has changed. With --team, the recordings are compared with that team.
    """
    output = CheckedJson() if as_json else CheckedText()
    other = find_team(team) if team is not None else None
    for file in cassettes_in(where):
        output(check(file, other, update=update))
    return output.finish()


class TestedRecording(Struct):
    """The changes in a cassette's prompts: each difference with its turns, by member and text.

    `problem` says why the cassette could not be played to its end.
    """

    file: Path
    turns: int = 0
    changes: dict[tuple[str, str, tuple[str, ...]], list[int]] = field(default_factory=dict)
    problem: str | None = None
    updated: bool = False

    @property
    def same(self) -> bool:
        return self.problem is None and (self.updated or not self.changes)

    def meet(self, recorded: RecordedTurn, identity: Identity, stdin: bytes) -> None:
        """Compare the prompt of a played turn with the recorded one."""
        self.turns += 1
        texts = {
            "system text": (recorded.identity.system_text or "", identity.system_text or ""),
            "prompt": (recorded.stdin.decode(), stdin.decode()),
        }
        for what, (then, now) in texts.items():
            if then != now:
                lines = tuple(text_difference(then.split("\n"), now.split("\n"), what))
                self.changes.setdefault((identity.member, what, lines), []).append(self.turns)


def cassettes_in(where: Path) -> Sequence[Path]:
    """List the cassettes of a folder and its subfolders, by name. A file is a cassette itself. Raises `UsageError`."""
    if not where.is_dir():
        if where.suffix != ".cassette" and not os.path.lexists(where):
            raise UsageError(f"there is no folder {printable(str(where))}")
        read_cassette(where)  # a named file must be a cassette
        return [where]
    cassettes = sorted(where.rglob("*.cassette"))
    if not cassettes:
        raise UsageError(
            f"there is no *.cassette in {printable(str(where))}",
            saying("--new", "--record", str(where / "session.cassette")),
        )
    return cassettes


def check(file: Path, team: Team | None, *, update: bool) -> TestedRecording:
    """Play the cassette with the team (None: its own). With `update`, it gets today's prompts. Raises `Interrupted`."""
    checked = TestedRecording(file)
    try:
        cassette = read_cassette(file)
        _play(cassette, team, checked)
        if update and checked.changes:
            _rewrite(file, cassette, team)
            checked.updated = True
    except Interrupted:
        raise
    except NoRecording as error:
        checked.problem = str(error).partition(";")[0]
    except TeamchatError as error:
        checked.problem = str(error)
    return checked


def _play(cassette: Cassette, team: Team | None, checked: TestedRecording) -> None:
    with open_stage(cassette, lambda turns: LenientPlayer(turns, math.inf, checked.meet), None, team) as stage:
        left = [turn.identity.member for played in _all_runs(stage) for turn in played.left]
    if left:
        raise NoRecording(f"recorded turns that nobody asks for now: {', '.join(dict.fromkeys(left))}")


def _all_runs(stage: Stage, begin: Callable[[RecordedRun], None] = lambda _: None) -> Iterator[Played]:
    for run in stage.cassette.runs:
        begin(run)
        played = stage.play(run)
        if played.stopped:
            raise Interrupted("interrupted")
        yield played


def _rewrite(file: Path, cassette: Cassette, team: Team | None) -> None:
    """Record the conversation again, with the recorded replies. The recorded commands stay as they were."""
    sources: dict[tuple[Identity, bytes], RecordedTurn] = {}

    def meet(recorded: RecordedTurn, identity: Identity, stdin: bytes) -> None:
        sources[identity, stdin] = recorded

    raise_again()
    with tempfile.TemporaryDirectory(prefix=".teamchat-", dir=file.parent) as folder:
        with open_stage(cassette, lambda turns: LenientPlayer(turns, math.inf, meet), None, team) as stage:
            path, key = Path(folder) / file.name, fence_key(stage.db, stage.session.id)
            writer = CassetteWriter(path, team or stage.team, os.environ, cassette.header.label, fence_key=key)
            writer.begin(standing_of(()))

            def keep(turn: RecordedTurn) -> None:
                source = sources[turn.key]
                writer.turn(replace(turn, argv=source.argv, env_names=source.env_names, at=source.at))

            heard = replace(stage, heard=lambda machine: RecordingMachine(machine, writer, keep))
            for played in _all_runs(
                heard, lambda run: writer.input(run.input.input, run.input.cooling, run.input.bounds)
            ):
                shown, printed = played.transcript.shown, played.transcript.printed
                writer.end(played.code, played.paused, played.stored, shown, printed)
        shutil.copymode(file, writer.path)
        writer.path.replace(file)
