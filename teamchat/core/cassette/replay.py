"""Replays a cassette: the whole tool in a temporary store, with recorded processes instead of real ones.

Prompts are built again from the team and the inputs, so a changed instruction or a changed teamchat shows: a turn that
was not recorded is an error that names the difference, and never a live call.
"""

from __future__ import annotations

import base64
import difflib
import math
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from teamchat.core.cassette.account import text_difference
from teamchat.core.cassette.format import Cassette, CheckLine, RanLine, RecordedRun, TurnLine
from teamchat.core.cassette.player import SPAWN, NotRecorded, NotStarted, Playback, Player, RecordedTurn, nameless
from teamchat.core.cassette.team import team_from_json
from teamchat.core.check import Check, CheckResult
from teamchat.core.checks.command import CheckRun
from teamchat.core.context.layers.collector import ContextCollector, Telling
from teamchat.core.engine.events import PauseKind
from teamchat.core.engine.workflow import Part
from teamchat.core.errors import AgentMissing, HostUnavailable, NoRecording, NotTrusted, TeamchatError, UsageError
from teamchat.core.made import made_of
from teamchat.core.receipt import Ran
from teamchat.core.team.team import Member, Team
from teamchat.core.text.clean import printable
from teamchat.core.text.commands import saying
from teamchat.core.turn.machine import Machine, ReadyTurn
from teamchat.runners.agent_events import Failure
from teamchat.runners.base import Runner, Slash
from teamchat.runners.child.running import Chunk, CutShort, Exit, Identity, Launch, Running
from teamchat.runners.child.supervisor import Stopper
from teamchat.runners.untrusted.file_changes import FileChanges

if TYPE_CHECKING:
    from teamchat.core.turn.hosting import HostPlace

LONGEST_COMPARED = 100_000  # characters; the worst cost of comparing is their square
NO_HOST = "host"
ERRORS: Mapping[str, type[TeamchatError]] = {
    NO_HOST: HostUnavailable,
    "missing": AgentMissing,
    "refused": NotTrusted,
    "usage": UsageError,
}
"""The errors that are known before a turn starts, by their kind in a cassette."""


def recorded_turn(line: TurnLine) -> RecordedTurn:
    cut, error, code = line.cut, line.error, line.exit_code
    cwd, version = Path(line.cwd) if line.cwd else None, line.version or ""
    return RecordedTurn(
        identity=Identity(line.member, line.agent, line.system),
        stdin=line.stdin.encode(),
        argv=tuple(line.argv),
        env_names=tuple(line.env),
        chunks=tuple(_chunk(at, stream, text) for at, stream, text in line.output),
        exit=None if code is None else made_of(Exit, line, code=code, cwd=cwd, version=version),
        cut=CutShort(Failure(cut.kind, cut.reason, cut.hint), cut.at) if cut else None,
        error=NotStarted(error.kind, error.text, error.hint) if error else None,
        at=line.at,
        ran=_ran(line.ran) if line.ran else None,
    )


def _ran(line: RanLine) -> tuple[Ran, bool]:
    """Return where a turn ran. A recording has no process of that host: its name stands for one that began."""
    executor = line.host if line.began else ""
    return Ran(line.host, executor, access_note=line.access_note, teamchat=line.teamchat), line.ended


def recorded_check(line: CheckLine) -> CheckRun:
    output = line.output.encode() if line.output64 is None else base64.b64decode(line.output64)
    return CheckRun(made_of(CheckResult, line), output, line.files)


def _check_in_words(check: Check | CheckLine) -> str:
    command = check.command if isinstance(check.command, str) else " ".join(check.command)
    shown = "" if command == check.name else f" ({command})"
    return printable(f"the check {check.name}{shown}")


def _chunk(at: float, stream: str, text: str) -> Chunk:
    data = base64.b64decode(text) if stream.endswith("64") else text.encode()
    return Chunk("err" if stream.startswith("err") else "out", data, at)


def not_started(error: TeamchatError) -> NotStarted:
    """Build the recorded form of the error that kept a turn from starting."""
    kind = next((kind for kind, known in ERRORS.items() if isinstance(error, known)), "usage")
    return NotStarted(kind, str(error), error.hint)


def key_of(turn: ReadyTurn) -> tuple[Identity, bytes]:
    """Build the key that finds a recorded turn."""
    identity = Identity(turn.member.name, turn.agent.protocol, turn.prompt.system_text)
    return identity, nameless(turn.prompt.prepared.stdin, turn.scratch)


def without_prompt(member: Member) -> Identity:
    """Build the identity of a turn that had no host, so that no prompt was made for it."""
    return Identity(member.name, "plain", None)


def recorded_team(cassette: Cassette, root: Path) -> Team:
    """Build the recorded team; its members work below `root`."""
    return team_from_json(cassette.header.team, root)


class RecordedMachine(Machine):
    """The machine as the recording has it in that run: processes, `@paths` that existed. It writes below `root`.

    Once the whole recording of the run is played, the time is over or a person stops it, if that is how it ended.
    """

    live = False

    def __init__(self, cassette: Cassette, run: RecordedRun, player: Player, root: Path) -> None:
        super().__init__({})
        self._cassette, self._run, self._player, self._root = cassette, run, player, root
        self._paused = run.end and run.end.paused
        self.checks = list(run.checks)  # checks not played yet

    def check(self, turn: ReadyTurn) -> None:
        """Raise the recorded error of a turn that was refused before it started."""
        recorded = self._player.find(*key_of(turn))
        if recorded and recorded.error and recorded.error.kind != SPAWN:
            self._player.take(*key_of(turn))
            raise ERRORS[recorded.error.kind](recorded.error.text, recorded.error.hint)

    def start(self, what: Launch) -> Running:
        try:
            return self._player(what)
        except NotRecorded as error:
            raise NoRecording(
                f"the cassette has no recording of this turn of {error.identity.member}"
                f"{difference(self._cassette.turns, error.identity, error.stdin)}",
                saying("--new", "--record", "again.cassette"),
            ) from None

    async def run_check(self, check: Check, _cwd: Path, _folder: Path, _scratch: Path, stopper: Stopper) -> CheckRun:
        """Play the next recorded run of a check, in its recorded time. Raises `NoRecording` if it is of another one."""
        line = next(iter(self.checks), None)
        same = line and line.name == check.name and (self._player.lenient or line.command == check.command)
        if line is None or not same:
            there = f"the next recorded one is {_check_in_words(line)}" if line else "none is left"
            raise NoRecording(
                f"the cassette has no recording of {_check_in_words(check)}: {there}",
                saying("--new", "--record", "again.cassette"),
            )
        self.checks.remove(line)
        self.check_at = line.at
        if not await self._player.passes(line.at, line.seconds, stopper):
            return CheckRun(CheckResult("not_run", "was interrupted", not_run="interrupted"), b"", line.files)
        return recorded_check(line)

    def exists(self, member: Member, _runner: Runner, part: Part | None = None) -> Callable[[str], bool]:
        line = self._upcoming(member, part)
        return frozenset(line.existing if line else ()).__contains__

    def slash(self, member: Member, *_: object) -> Slash | None:
        line = self._upcoming(member)
        return Slash(**line.slash.model_dump()) if line and line.slash else None

    def place(self, member: Member, part: Part | None = None) -> HostPlace | None:
        from teamchat.core.turn.hosting import place_of_old  # only a member with `host` needs it

        line = self._upcoming(member, part)
        if line and line.error and line.error.kind == NO_HOST:
            self._player.take(without_prompt(member), b"")
            raise ERRORS[NO_HOST](line.error.text, line.error.hint)
        return place_of_old(member, line.ran.host, line.agent) if line and line.ran else None

    def ran(self, _turn: ReadyTurn, process: Running) -> tuple[Ran, bool] | None:
        return process.turn.ran if isinstance(process, Playback) else None

    def collected(self, collector: ContextCollector) -> ContextCollector:
        gathered = [
            (
                (turn.member, turn.told.answers, turn.told.part, turn.told.go),
                {str(name): text for name, text in turn.told.layers.items()},
            )
            for turn in self._run.turns
            if turn.told
        ]
        return Telling(collector, gathered)

    def scratch(self, folder: Path) -> Path:
        return self._root / f"scratch-{folder.name}"

    def now(self) -> float:
        return math.inf if self._paused is PauseKind.TIME and not self._waits() else 0.0

    def moment(self, _vendor: str) -> float:
        return 0.0

    def stopped(self, member: str | None) -> bool:
        return self._paused is PauseKind.INTERRUPTED and not self._waits(member)

    def _waits(self, member: str | None = None) -> bool:
        """Whether something of that member, or anything at all, was not played yet."""
        return self._player.waits(member) or (member is None and bool(self.checks))

    async def comes(self, turn: ReadyTurn) -> None:
        await self._player.comes(*key_of(turn))

    def in_work_tree(self, _folder: Path) -> bool:
        return any(isinstance(turn.files, FileChanges) for turn in self._run.turns)

    def _upcoming(self, member: Member, part: Part | None = None) -> TurnLine | None:
        """Find the member's next turn; of several at the same time, the one with that part."""
        left = Counter(turn.key for turn in self._player.waiting if turn.identity.member == member.name)
        its = [line for line in reversed(self._run.turns) if line.member == member.name]
        its = [line for line in its if _took(left, Identity(line.member, line.agent, line.system), line.stdin.encode())]
        does = (part.role, part.number) if part else None
        same = [line for line in its if does and line.told and line.told.part == does]
        return next(reversed(same or its), None)


def _took(left: Counter[tuple[Identity, bytes]], identity: Identity, stdin: bytes) -> bool:
    """Take such a turn out of the turns `left`; return False if there is none."""
    left[identity, stdin] -= 1
    return left[identity, stdin] >= 0


def difference(turns: tuple[TurnLine, ...], identity: Identity, stdin: bytes) -> str:
    """Write the difference between the nearest recorded prompt (-) and this one (+)."""
    mine = _told_lines(identity.system_text, stdin.decode())
    same = [turn for turn in turns if turn.member == identity.member] or list(turns)
    if not same:
        return ": there is none at all"
    nearest = max(same, key=lambda turn: _likeness(_told_lines(turn.system, turn.stdin), mine))
    theirs = _told_lines(nearest.system, nearest.stdin)
    if (nearest.member, theirs) == (identity.member, mine):
        return ", which has the same prompt as one that was played already"
    return "; the nearest one differs:\n" + "\n".join(text_difference(theirs, mine, "prompt"))


def _told_lines(system: str | None, stdin: str) -> list[str]:
    """List everything that a member received, line by line."""
    return [*(system or "").split("\n"), *stdin.split("\n")]


def _likeness(one: list[str], other: list[str]) -> float:
    if sum(map(len, one)) + sum(map(len, other)) > LONGEST_COMPARED:
        return 0.0
    return difflib.SequenceMatcher(None, one, other, autojunk=False).quick_ratio()
