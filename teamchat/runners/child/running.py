"""A process for those who follow it: what to start, what it writes, how it ended. A recording is one, too."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from pathlib import Path
from typing import Literal, Protocol

from msgspec import Struct, field

from teamchat.runners.agent_events import Failure
from teamchat.runners.base import StopRule
from teamchat.runners.untrusted.file_changes import FileChanges, NoCheckpoint, WorkTree

LIVE = ".live"  # the folder of a kept process is named after its first turn, with this suffix
BEGINS = "begins"  # this file in the folder of a kept process's turn has the offset at which the turn's output begins
FIRST_LINE = b"The output of a turn of teamchat begins below.\n"  # of the file `stdout`; the agent's own follows it
# An agent that writes without end is killed before it fills the disk. Bytes that are no UTF-8 take three times the room
# in the store, and a value of SQLite's has at most 1,000,000,000.
MAX_OUTPUT_BYTES = 256 * 1024**2


class Identity(Struct, frozen=True):
    """The turn's identity besides its stdin: a recording is found by both."""

    member: str
    agent: str
    system_text: str | None = None


class Stays(Protocol):
    """What a turn runs in, if not in a process of its own: one for many turns, or a host. Raises `SpawnFailed`."""

    def turn(self, what: Launch, /) -> Running: ...


class Lease(Struct, frozen=True):
    """Until when a process may run, by `guardian.boot_time`, unless it is renewed, and its grace after the soft signal.

    Its guardian ends it then, whatever became of teamchat.
    """

    until: float
    grace_s: float


class Launch(Struct, frozen=True):
    """What to start. `folder` gets the files `stdout` and `stderr`, of at most `max_output` bytes together.

    `prepare` makes `scratch` with its files, and may raise `OSError`. It is called right before the process starts,
    when the guardian knows the folder. The caller removes it once the turn's outcome is stored. If teamchat is killed
    before the process has ended, the guardian removes it. With `stays` the turn runs in a process that outlives it,
    whose standard input is left open. `through` is a program of ours, with its arguments, that runs `argv`. `version`
    is that of the installed program, where it is known. `login` names the variables that its login is from, as `Login`
    does.
    With `elsewhere` nothing is started here: `argv` names only the agent.
    `real_cwd` is where `cwd` must really be; None lets it be anywhere. The process starts in `starts_in` (None: in
    `cwd`). `may_write` is False where its CLI bounds it to reading. `tree` is the work tree as it was before the turn,
    or why that is not known. With a `lease` it runs at most until then, or until what `ChildProcess.renew` says.
    """

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    stdin: bytes
    folder: Path
    scratch: Path | None = None
    prepare: Callable[[], None] = lambda: None
    stop: StopRule = field(default_factory=StopRule)
    max_output: int = MAX_OUTPUT_BYTES
    identity: Identity = Identity("", "")
    stays: Stays | None = None
    elsewhere: Stays | None = None
    through: tuple[str, ...] = ()
    version: str | None = None
    login: tuple[str, ...] | None = None
    real_cwd: Path | None = None
    starts_in: Path | None = None
    may_write: bool = True
    tree: WorkTree | NoCheckpoint | None = None
    lease: Lease | None = None


class Chunk(Struct, frozen=True):
    """Bytes as they came, from one stream, `at` seconds after the start."""

    stream: Literal["out", "err"]
    data: bytes
    at: float


class CutShort(Struct, frozen=True):
    """In a recording: the turn was ended here, `at` seconds after the start, and `why`."""

    why: Failure
    at: float


class Exit(Struct, frozen=True):
    """How the process ended: its code (a signal is negative) and the names of what had to be ended after it.

    `seconds` is how long it ran. `over_limit` is the limit of output in bytes if it was killed for that. `cwd` is where
    a recorded one ran, if its output tells, `version` that of its CLI ("" if it was not known) and `login` the
    variables that its login was from, as `Login` has them. `changed` are files that run things and
    changed while it ran, relative to where it ran; `not_all_looked_at`: there are more of them than are compared.
    `files` is what changed in its work tree; None where nobody looked. `lapsed`: it was ended when its lease was over.
    """

    code: int
    left: tuple[str, ...] = ()
    over_limit: int | None = None
    seconds: float = 0.0
    cwd: Path | None = None
    version: str | None = None
    login: tuple[str, ...] | None = None
    changed: tuple[str, ...] = ()
    not_all_looked_at: bool = False
    files: FileChanges | NoCheckpoint | None = None
    lapsed: bool = False


class Running(Protocol):
    """A running process, real or recorded."""

    def chunks(self) -> AsyncGenerator[Chunk | CutShort, None]:
        """Output as it comes; ends when the process has ended and everything it wrote has been given.

        Closing it early ends the process and waits until everything of it is gone.
        """
        ...

    def stop(self, why: Failure | None = None, *, hard: bool = False) -> None:
        """Ask for the end: the CLI's soft signal first, or SIGKILL at once. Returns immediately.

        A recording keeps `why`.

        After a hard stop a backlog of output that was not read yet is left in its file.
        """
        ...

    def over(self) -> None:
        """Called at the CLI's own terminal event: a process that stays serves its next turn from here on."""
        ...

    def end_input(self) -> bool:
        """Let a process that stays end with this turn, which it may finish; False where none stays."""
        ...

    @property
    def exit(self) -> Exit | None: ...


class SpawnFailed(Exception):
    """The operating system refused to start the program; the message says why."""


class HasEnded(SpawnFailed):
    """The process that was to stay for this turn has already ended."""


class OwnFileFailed(SpawnFailed):
    """A file of teamchat's own for the process could not be created. This says nothing about the program."""


class FolderReplaced(SpawnFailed):
    """Another folder is now at the path of the one to start in."""


def start_error(error: OSError | ValueError | RuntimeError) -> str:
    """Why something could not start, for people."""
    if isinstance(error, ConnectionError):
        return "the guardian process ended before it could start the agent"
    words = getattr(error, "strerror", None) or str(error)
    return f"{words}: {error.filename}" if isinstance(error, OSError) and error.filename else words
