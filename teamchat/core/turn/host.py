"""The host of a turn: what the turn touches of the machine, and what is checked there before it starts."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from teamchat.core.checkpoint.find import why_none
from teamchat.core.context.build import exists
from teamchat.core.context.layers.collector import ContextCollector
from teamchat.core.errors import AgentMissing, Interrupted, NotTrusted, StoreError, UsageError
from teamchat.core.team.programs import Unusable
from teamchat.core.team.team import Member
from teamchat.core.team.tools import need_tools
from teamchat.core.text.commands import quote
from teamchat.core.turn.ready import ReadyTurn
from teamchat.core.turn.vendor_limits import steady_now, take_moment
from teamchat.core.turn.watching import watched
from teamchat.runners.base import Job, Runner, Slash
from teamchat.runners.process.process import Process
from teamchat.runners.process.running import Launch, Running
from teamchat.runners.process.supervisor import Stopper


def temporary_folder() -> Path:
    """The folder for temporary files. Raises `OSError` if there is none.

    `tempfile` looks for one, and takes a millisecond to load; where its first choice can be used, so can this.
    """
    first = Path(next(filter(None, map(os.environ.get, ("TMPDIR", "TEMP", "TMP"))), "/tmp"))  # noqa: S108
    with contextlib.suppress(OSError):
        if first.is_dir() and os.access(first, os.W_OK | os.X_OK) and os.statvfs(first).f_bavail:
            return first.absolute()
    import tempfile

    return Path(tempfile.gettempdir())


def scratch_of(folder: Path) -> Path:
    """The private folder of the turn whose output is in `folder`. It is its TMPDIR and holds its command's files.

    `execute` has it made, and it is removed once the turn is stored. After a crash it is found by its name. Raises
    `StoreError`.
    """
    try:
        parent = temporary_folder()
        usable = os.access(parent, os.W_OK | os.X_OK)
    except OSError:
        usable = False
    if not usable:
        raise StoreError("no temporary folder can be made; set TMPDIR to a folder that can be written")
    return parent / f"teamchat-{folder.name}"


def check_runnable(turn: ReadyTurn) -> None:
    """Raise what is known to fail before anything is started."""
    if refusal := turn.runner.refusal(turn.member.access, turn.env):
        raise NotTrusted(f"{turn.member.name} cannot have access {turn.member.access!r}: {refusal}")
    need_program(turn.member, turn.command.argv[0], turn.program)
    need_tools(turn.member, turn.agent, turn.runner, turn.env)


def need_program(member: Member, program: str, found: str | Unusable) -> str:
    """The path of the member's program, as `find_program` has found it.

    Raises `UsageError` (no folder to run it in) and `AgentMissing`.
    """
    if not member.has_folder:
        folder = f"{member.name}'s folder {member.cwd}"
        if os.path.lexists(member.cwd):
            raise UsageError(f"{folder} is not a folder; change cwd in the team file")
        raise UsageError(
            f"{folder} does not exist; create it, or change cwd in the team file",
            f"mkdir -p {quote(str(member.cwd))}",
        )
    if isinstance(found, Unusable):
        raise AgentMissing(f"{member.name}'s program {program!r} {found.why}", found.hint)
    return found


class Machine:
    """What turns touch of the machine, with its environment `env`. A replay uses one made of a recording.

    `live` is False in a replay: its turns have no clocks and no pauses.
    """

    live = True

    def __init__(self, env: Mapping[str, str] | None = None) -> None:
        self.env = os.environ if env is None else env

    def check(self, turn: ReadyTurn) -> None:
        """Raise what is known to fail before anything is started."""
        check_runnable(turn)

    def start(self, what: Launch) -> Running:
        """Start a turn's process, or use one that was kept running. Raises `SpawnFailed` and OSError."""
        what, watch = watched(self.placed(what))
        return watch(what.stays.turn(what) if what.stays else Process(what))

    def placed(self, what: Launch) -> Launch:
        """The launch in the folder in which it has to start."""
        return what

    def exists(self, member: Member, runner: Runner) -> Callable[[str], bool]:
        """Tells whether a mention names a file."""
        return exists(member, runner)

    def slash(self, _member: Member, runner: Runner, job: Job, typed: str) -> Slash | None:
        """The custom command that a typed text begins with, or an unknown one; None if it begins with none."""
        if runner.vendor is None:
            return None
        from teamchat.runners.mentions import unknown

        return (runner.slash.find(typed, job) if runner.slash else None) or unknown(typed, runner.vendor)

    def scratch(self, folder: Path) -> Path:
        """The private folder of the turn whose output is in `folder`."""
        return scratch_of(folder)

    def collected(self, collector: ContextCollector) -> ContextCollector:
        """What gathers the layers of files and lessons."""
        return collector

    def now(self) -> float:
        """The time in seconds since the epoch. It never goes back."""
        return steady_now()

    def moment(self, vendor: str) -> float:
        """The time at which a CLI of that vendor may start."""
        return take_moment(vendor)

    def stopped(self, _member: str | None) -> bool:
        """True when a person stopped the recorded run before a turn of that member, or of anybody."""
        return False

    async def comes(self, member: str) -> None:
        """Wait for the member's place in the recorded order of its group."""

    def in_work_tree(self, folder: Path) -> bool:
        """Whether a folder is in a git work tree. It may block."""
        return why_none(folder) is None


async def wait_to_start(turn: ReadyTurn, host: Machine, stopper: Stopper) -> bool:
    """Wait while others start CLIs of the same vendor. True if it had to: the turn must be checked once more.

    Raises `Interrupted` when a stop is requested while it waits.
    """
    await host.comes(turn.member.name)
    if not host.live:
        return False
    vendor = None if turn.setup.same_process else turn.runner.vendor
    if not vendor or (left := host.moment(vendor) - host.now()) <= 0:
        return False
    await stopper.sleep(left)
    if stopper.asked:
        raise Interrupted(f"{turn.member.name} was interrupted before its turn began")
    return True
