"""The machine of a turn: the parts that the turn touches, the checks before it starts, and when it may start."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from teamchat.core.check import Check
from teamchat.core.checkpoint.find import why_none
from teamchat.core.context.build import BuiltPrompt, exists
from teamchat.core.context.layers.collector import ContextCollector
from teamchat.core.engine.workflow import Part
from teamchat.core.errors import AgentMissing, Interrupted, NotTrusted, StoreError, TeamchatError, UsageError
from teamchat.core.files.folders import state_dir
from teamchat.core.files.whole_files import locked_beside, write_private
from teamchat.core.receipt import Purpose, Ran, Setup
from teamchat.core.team.programs import Unusable, need_tools
from teamchat.core.team.team import AgentSpec, Member, Team
from teamchat.core.team.trust import TrustStore, require
from teamchat.core.team.trusted_files import untrusted_copies
from teamchat.core.text.clean import printable
from teamchat.core.text.commands import quote
from teamchat.core.turn.caller import find_caller
from teamchat.core.turn.watching import watched
from teamchat.runners.base import Command, Job, Runner, Slash
from teamchat.runners.child.process import ChildProcess
from teamchat.runners.child.running import Launch, Running
from teamchat.runners.child.supervisor import Clocks, Stopper
from teamchat.runners.slash_commands import unknown
from teamchat.runners.untrusted.regular_files import read_regular

if TYPE_CHECKING:
    from teamchat.core.checks.command import CheckRun
    from teamchat.core.dispatch.hosted import HostedTurn
    from teamchat.core.turn.hosting import HostPlace

LARGEST = 1 << 16  # bytes
COOL_S = 60.0  # Seconds of a cool-down after a rate limit; CLIs do not say how long theirs lasts.


_BEGAN = time.time() - time.monotonic()


def steady_now() -> float:
    """Return the seconds since 1970 by the clock as this program found it: setting it later changes nothing."""
    return _BEGAN + time.monotonic()


class Cooldowns:
    """Remembers in a file until when agents cool down. An unusable file costs one failed attempt, never a turn."""

    def __init__(self, file: Path, now: Callable[[], float] = time.time) -> None:
        self._file, self._now = file, now

    def left(self, agent: str) -> float:
        """Return the seconds left of the agent's cool-down; 0 without one."""
        return max(0.0, self._known().get(agent, 0.0) - self._now())

    def start(self, agent: str, seconds: float = COOL_S) -> None:
        """Begin a cool-down of the agent now."""
        with contextlib.suppress(OSError), locked_beside(self._file) as new:  # another process may do the same
            write_private(new, json.dumps({**self._known(), agent: self._now() + seconds}).encode())
            new.replace(self._file)

    def _known(self) -> dict[str, float]:
        """Read the ends of all cool-downs. It ignores an end too far ahead, from a wrong clock."""
        now = self._now()
        try:
            known = json.loads(read_regular(self._file, LARGEST)).items()
            return {name: float(until) for name, until in known if now < float(until) <= now + COOL_S}
        except (OSError, ValueError, TypeError, AttributeError, OverflowError, RecursionError):
            return {}


APART_S = 0.25
LONGEST_S = 30.0  # the longest wait; a later moment was taken before the clock was set back
SIZE = 20  # bytes of a moment in the file
PATIENCE_S = 0.2  # longer than taking a moment lasts, unless the process that holds the lock is stopped


def take_moment(vendor: str) -> float:
    """Take the vendor's next free moment to start, in seconds since 1970: now, unless others have just started.

    The caller waits for it. If the file cannot be used, it is always now.
    """
    gap = APART_S * (1.0 + os.urandom(1)[0] / 510)  # `random` takes half a millisecond to load
    now = steady_now()
    try:
        file = os.open(state_dir() / f"{vendor}.start", os.O_RDWR | os.O_CREAT, 0o600)
    except (OSError, StoreError):
        return now
    try:
        _lock(file)
        now = steady_now()
        next_one = _moment(os.pread(file, SIZE, 0)) + gap
        mine = next_one if now < next_one < now + LONGEST_S else now
        os.pwrite(file, f"{mine:0{SIZE}.6f}".encode(), 0)
    except OSError:
        return now
    finally:
        os.close(file)
    return mine


def _lock(file: int) -> None:
    """Lock the file. Raises `BlockingIOError` if another process holds the lock for too long."""
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise
            time.sleep(0.001)
        else:
            return


def _moment(written: bytes) -> float:
    try:
        return float(written)
    except ValueError:  # the file is new
        return 0.0


class ReadyTurn(Struct, frozen=True):
    """A planned turn. `env` is the whole environment of the agent.

    `program` is where the program of `command` is, or why it cannot be run. A replay looks for none, and has its name.
    With `hosted` the turn runs on a host, which makes command and environment itself.
    """

    member: Member
    agent: AgentSpec
    runner: Runner
    prompt: BuiltPrompt
    command: Command
    program: str | Unusable
    env: Mapping[str, str]
    setup: Setup
    scratch: Path
    clocks: Clocks
    hosted: HostedTurn | None = None


class TurnReason(Struct, frozen=True):
    """The reason for a turn on its receipt: why it runs, the message that it serves, the number of the attempt.

    `first`: the member has had no turn in this conversation yet.
    """

    why: str
    request: str
    attempt: int = 1
    edits: int = 0
    first: bool = False
    purpose: Purpose = "reply"


def temporary_folder() -> Path:
    """Return the folder for temporary files. Raises `OSError` if there is none.

    It takes the first choice of `tempfile` if that can be used, since loading `tempfile` takes a millisecond.
    """
    first = Path(next(filter(None, map(os.environ.get, ("TMPDIR", "TEMP", "TMP"))), "/tmp"))  # noqa: S108
    with contextlib.suppress(OSError):
        if first.is_dir() and os.access(first, os.W_OK | os.X_OK) and os.statvfs(first).f_bavail:
            return first.absolute()
    import tempfile

    return Path(tempfile.gettempdir())


def scratch_of(folder: Path) -> Path:
    """Return the private folder of the turn whose output is in `folder`: its TMPDIR, with its command's files.

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
    """Raise the errors that are known before anything is started. A host judges by itself."""
    if turn.hosted:
        return
    if refusal := turn.runner.refusal(turn.member.access, turn.env):
        raise NotTrusted(f"{turn.member.name} cannot have access {turn.member.access!r}: {refusal}")
    need_program(turn.member, turn.command.argv[0], turn.program)
    need_tools(turn.member, turn.agent, turn.runner, turn.env)


def need_program(member: Member, program: str, found: str | Unusable) -> str:
    """Return the path of the member's program, as `find_program` has found it.

    Raises `UsageError` (no folder to run it in) and `AgentMissing`.
    """
    if not member.has_folder:
        folder = f"{member.name}'s folder {member.cwd}"
        if os.path.lexists(member.cwd):
            raise UsageError(f"{folder} is not a folder; change cwd in the team file")
        raise UsageError(
            f"{folder} does not exist; create it, or change cwd in the team file", f"mkdir -p {quote(str(member.cwd))}"
        )
    if isinstance(found, Unusable):
        raise AgentMissing(f"{member.name}'s program {program!r} {found.why}", found.hint)
    return found


class Machine:
    """The effects of turns on the machine, with its environment `env`. A replay uses one made of a recording.

    `live` is False in a replay: its turns have no clocks and no pauses.
    """

    live = True
    check_at: float | None = None  # when the last check began in the recorded run

    def __init__(self, env: Mapping[str, str] | None = None) -> None:
        self.env = os.environ if env is None else env

    def check(self, turn: ReadyTurn) -> None:
        """Raise the errors that are known before anything is started."""
        check_runnable(turn)

    def start(self, what: Launch) -> Running:
        """Start a turn's process, or use one that was kept running. Raises `SpawnFailed` and `OSError`."""
        if what.elsewhere:
            return what.elsewhere.turn(what)
        what = self.placed(what)
        watch = watched(what)
        return watch(what.stays.turn(what) if what.stays else ChildProcess(what))

    def placed(self, what: Launch) -> Launch:
        """Return the launch with its start folder."""
        return what

    async def run_check(self, check: Check, cwd: Path, folder: Path, scratch: Path, stopper: Stopper) -> CheckRun:
        """Run a check in `cwd`, with its output in `folder`."""
        from teamchat.core.checks.command import check_environment, run_command

        env = check_environment(check, self.env)
        return await run_command(check, cwd, env, folder=folder, scratch=scratch, stopper=stopper)

    def keep_check(self, check: Check, ran: CheckRun) -> None:
        """Learn the result of a check, with the changes of the files."""

    def exists(self, member: Member, runner: Runner, _part: Part | None = None) -> Callable[[str], bool]:
        """Return a function that tells whether a mention names a file, in a turn for that part."""
        return exists(member, runner)

    def slash(self, _member: Member, runner: Runner, job: Job, typed: str) -> Slash | None:
        """Return the custom command at the beginning of a typed text, or an unknown one; None without any."""
        if runner.vendor is None:
            return None
        return (runner.slash.find(typed, job) if runner.slash else None) or unknown(typed, runner.vendor)

    def scratch(self, folder: Path) -> Path:
        """Return the private folder of the turn whose output is in `folder`."""
        return scratch_of(folder)

    def collected(self, collector: ContextCollector) -> ContextCollector:
        """Return the collector of the layers of files and lessons."""
        return collector

    def now(self) -> float:
        """Return the time in seconds since 1970. It never goes back."""
        return steady_now()

    def moment(self, vendor: str) -> float:
        """Return the time at which a CLI of that vendor may start."""
        return take_moment(vendor)

    def stopped(self, _member: str | None) -> bool:
        """Whether a person stopped the recorded run before a turn of that member, or of anybody."""
        return False

    def place(self, _member: Member, _part: Part | None = None) -> HostPlace | None:
        """Return the recorded place of a hosted member's turn for that part, in a replay. Raises why none ran."""
        return None

    def no_host(self, _member: Member, _error: TeamchatError) -> None:
        """Learn that the turn of a member has no host."""

    def ran(self, turn: ReadyTurn, _process: Running) -> tuple[Ran, bool] | None:
        """Return the host of a turn and whether its end is known; None for a turn on this machine."""
        if turn.hosted is None:
            return None
        from teamchat.core.turn.hosting import ran_on

        return ran_on(turn.hosted)

    async def comes(self, turn: ReadyTurn) -> None:
        """Wait for the place of the turn in the recorded order of its group."""

    def in_work_tree(self, folder: Path) -> bool:
        """Whether a folder is in a git work tree. It may block."""
        return why_none(folder) is None


async def wait_to_start(turn: ReadyTurn, machine: Machine, stopper: Stopper) -> bool:
    """Wait while others start CLIs of the same vendor. Return whether it had to: the turn must be checked once more.

    Raises `Interrupted` if a stop is requested while it waits.
    """
    await machine.comes(turn)
    if not machine.live:
        return False
    vendor = None if turn.setup.same_process else turn.runner.vendor
    if not vendor or (left := machine.moment(vendor) - machine.now()) <= 0:
        return False
    await stopper.sleep(left)
    if stopper.asked:
        raise Interrupted(f"{turn.member.name} was interrupted before its turn began")
    return True


class TrustedMachine(Machine):
    """The machine, whose turns start only while the team is trusted and each member's folder is still the same one.

    The check raises `NotTrusted` with the changes. The process starts in the folder found now, not in another one that
    has its path later.
    """

    def __init__(self, team: Team, store: TrustStore) -> None:
        super().__init__()
        self._team, self._store, self._caller = team, store, find_caller()
        self._members = {member.name: member for member in team.ai_members}
        self._folders = {member.name: Path(os.path.realpath(member.cwd)) for member in team.ai_members}

    def check(self, turn: ReadyTurn) -> None:
        if self._caller:
            self._caller.check_access(turn.member, turn.agent)
        member = self._members[turn.member.name]
        now = Path(os.path.realpath(member.cwd))
        if now != self._folders[member.name]:
            before = self._folders[member.name]
            moved = f"{member.name}'s folder was {before} when this command began, and now is {now}"
            raise NotTrusted(printable(moved), "teamchat resume")
        require(self._team, self._store)
        if turn.member.cwd != member.cwd and (other := untrusted_copies(self._team, member, turn.member)):
            changed = f"{member.name} runs {other[0]}, which in its worktree is not as you trusted it"
            merge, remove = f"teamchat merge {member.name}", f"teamchat worktrees remove {member.name}"
            raise NotTrusted(printable(changed), f"{merge}\n{remove}")
        super().check(turn)

    def placed(self, what: Launch) -> Launch:
        name = what.identity.member
        shared = name in self._members and what.cwd == self._members[name].cwd
        return replace(what, real_cwd=self._folders[name] if shared else what.cwd)
