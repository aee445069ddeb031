"""A process for its followers: how to start it, its output, its end. A recording is one, too."""

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
FIRST_LINE = b"The output of a turn of teamchat begins below.\n"  # begins `stdout`; the agent's own output follows
# An agent that writes without end is killed before it fills the disk. Bytes that are not UTF-8 take three times the
# room in the store, and an SQLite value has at most 1,000,000,000.
MAX_OUTPUT_BYTES = 256 * 1024**2


class Identity(Struct, frozen=True):
    """The identity of a turn besides its stdin: a recording is found by both."""

    member: str
    agent: str
    system_text: str | None = None


class Stays(Protocol):
    """The place of a turn that has no process of its own: a process for many turns, or a host. Raises `SpawnFailed`."""

    def turn(self, what: Launch, /) -> Running: ...


class Lease(Struct, frozen=True):
    """The end of a process's time, by `guardian.boot_time`, unless it is renewed, and its grace after the soft signal.

    At the end its guardian ends the process, whatever became of teamchat.
    """

    until: float
    grace_s: float


class Launch(Struct, frozen=True):
    """A process to start."""

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    stdin: bytes
    folder: Path
    """The folder for the files `stdout` and `stderr`."""
    scratch: Path | None = None
    prepare: Callable[[], None] = lambda: None
    """Makes `scratch` with its files, and may raise `OSError`.

    It is called right before the process starts, when the guardian knows the folder. The caller removes `scratch` once
    the turn's outcome is stored. If teamchat is killed before the process has ended, the guardian removes it.
    """
    stop: StopRule = field(default_factory=StopRule)
    max_output: int = MAX_OUTPUT_BYTES
    """The largest size of `stdout` and `stderr` together, in bytes."""
    identity: Identity = Identity("", "")
    stays: Stays | None = None
    """With it the turn runs in a process that outlives it, whose standard input is left open."""
    elsewhere: Stays | None = None
    """With it nothing is started here: `argv` names only the agent."""
    through: tuple[str, ...] = ()
    """A program of ours, with its arguments, that runs `argv`."""
    version: str | None = None
    """The version of the installed program, where it is known."""
    login: tuple[str, ...] | None = None
    """The names of the variables that hold its login, as in `Login`."""
    real_cwd: Path | None = None
    """The place where `cwd` must really be; None lets it be anywhere."""
    starts_in: Path | None = None
    """The folder where the process starts; None for `cwd`."""
    may_write: bool = True
    """Whether it may write; False where its CLI bounds it to reading."""
    tree: WorkTree | NoCheckpoint | None = None
    """The work tree before the turn, or why it is unknown."""
    lease: Lease | None = None
    """With it the process runs at most until then, or until the time that `ChildProcess.renew` sets."""


class Chunk(Struct, frozen=True):
    """Bytes as they came, from one stream, `at` seconds after the start."""

    stream: Literal["out", "err"]
    data: bytes
    at: float


class CutShort(Struct, frozen=True):
    """The end of a recorded turn before its own end, `at` seconds after the start, and `why`."""

    why: Failure
    at: float


class Exit(Struct, frozen=True):
    """How the process ended."""

    code: int
    """The exit code; a signal is negative."""
    left: tuple[str, ...] = ()
    """The names of the processes that had to be ended after it."""
    over_limit: int | None = None
    """The limit of output in bytes if the process was killed for that."""
    seconds: float = 0.0
    """How long it ran."""
    cwd: Path | None = None
    """The folder of a recorded process, if its output tells."""
    version: str | None = None
    """The version of a recorded process's CLI; "" if it was not known."""
    login: tuple[str, ...] | None = None
    """The variables that held a recorded process's login, as in `Login`."""
    changed: tuple[str, ...] = ()
    """Files that run things and changed while it ran, relative to where it ran."""
    not_all_looked_at: bool = False
    """Whether there are more such files than are compared."""
    files: FileChanges | NoCheckpoint | None = None
    """The changes in its work tree; None where nobody looked."""
    lapsed: bool = False
    """Whether it was ended when its lease was over."""


class Running(Protocol):
    """A running process, real or recorded."""

    def chunks(self) -> AsyncGenerator[Chunk | CutShort, None]:
        """Yield output as it comes, until the process has ended and all its output was given.

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
        """Tell a process of the CLI's own terminal event: one that stays serves its next turn from here on."""
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
    """Say why something could not start, for people."""
    if isinstance(error, ConnectionError):
        return "the guardian process ended before it could start the agent"
    words = getattr(error, "strerror", None) or str(error)
    return f"{words}: {error.filename}" if isinstance(error, OSError) and error.filename else words
