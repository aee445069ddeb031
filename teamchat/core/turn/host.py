"""The host of a turn: what the turn touches of the machine, and what is checked there before it starts."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from msgspec import Struct, field

from teamchat.core.checkpoint.find import why_none
from teamchat.core.context.build import Exists, exists
from teamchat.core.context.layers.collector import ContextCollector
from teamchat.core.errors import AgentMissing, Interrupted, NotTrusted, StoreError, UsageError
from teamchat.core.team.programs import Unusable
from teamchat.core.team.team import Member
from teamchat.core.team.tools import need_tools
from teamchat.core.text.commands import quote
from teamchat.core.turn.ready import ReadyTurn
from teamchat.core.turn.vendor_limits import steady_now, take_moment
from teamchat.core.turn.watching import watching
from teamchat.runners.base import Job, Runner, Slash
from teamchat.runners.process.process import launch
from teamchat.runners.process.running import Launcher
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


async def at_once(_member: str) -> None:
    """A live turn begins without waiting for others."""


def in_work_tree(folder: Path) -> bool:
    return why_none(folder) is None


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


def find_slash(_member: Member, runner: Runner, job: Job, typed: str) -> Slash | None:
    """The custom command that a typed text begins with, or an unknown one; None if it begins with none."""
    if runner.vendor is None:
        return None
    from teamchat.runners.mentions import unknown

    return (runner.slash.find(typed, job) if runner.slash else None) or unknown(typed, runner.vendor)


class Host(Struct, frozen=True):
    """What turns touch of the machine. A replay uses a host made of a recording.

    - `check` raises what is known to fail before anything is started.
    - `exists` tells whether a mention names a file.
    - `scratch` names the private folder of a turn.
    - `live` is False in a replay: its turns have no clocks and no pauses.
    - `collected` may change the layers that are gathered of files and lessons.
    - `now` is the time in seconds since the epoch, `moment` the time at which a CLI of that vendor may start.
    - `stopped` is True when a person stopped the recorded run before a turn of that member, or of anybody.
    - `comes` waits for the member's place in the recorded order of its group.
    - `in_work_tree` tells whether a folder is in a git work tree. It may block.
    """

    launcher: Launcher
    check: Callable[[ReadyTurn], None]
    exists: Exists = exists
    slash: Callable[[Member, Runner, Job, str], Slash | None] = find_slash
    env: Mapping[str, str] = field(default_factory=lambda: os.environ)
    scratch: Callable[[Path], Path] = scratch_of
    live: bool = True
    collected: Callable[[ContextCollector], ContextCollector] = lambda collector: collector
    now: Callable[[], float] = steady_now
    moment: Callable[[str], float] = lambda _vendor: 0.0
    stopped: Callable[[str | None], bool] = lambda _: False
    comes: Callable[[str], Awaitable[None]] = at_once
    in_work_tree: Callable[[Path], bool] = in_work_tree


REAL = Host(watching(launch), check_runnable, moment=take_moment)


async def wait_to_start(turn: ReadyTurn, host: Host, stopper: Stopper) -> bool:
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
