"""Orders for a turn on another machine, and the pieces that come back, as data.

An order names an agent, never a command, an argument, a variable or a path of the machine that sends it: these belong
to the host. The pieces that come back contain the output and the end of a process as if it had run here, so that
parsers, receipts and the store do not know where a turn ran.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, TypeVar

from msgspec import DecodeError, Struct, ValidationError, field
from msgspec.json import Decoder, encode

from teamchat.core.checkpoint.packs import CheckpointPack
from teamchat.patterns import regex
from teamchat.runners.agent_events import Failure, FailureKind
from teamchat.runners.base import Access, Memory
from teamchat.runners.child.running import MAX_OUTPUT_BYTES
from teamchat.runners.longest import LONGEST_REPLY

FORMAT = 3
"""The version of everything here. Home and worker must have the same one."""
ANY = "any"
"""The host of a member that any worker may run."""
_HOST = regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")


class Project(Struct, frozen=True, forbid_unknown_fields=True):
    """A git repository, identified by the common facts of its clones: the address they are fetched from, and their
    first commit.

    `folder` is the member's folder in it ("" for its top), with `/` between names.
    """

    remotes: tuple[str, ...] = ()
    root: str | None = None
    folder: str = ""

    def is_of(self, other: Project) -> bool:
        """Whether both are clones of one repository."""
        return bool(set(self.remotes) & set(other.remotes)) or (self.root is not None and self.root == other.root)


class OrderFiles(Struct, frozen=True, forbid_unknown_fields=True):
    """The files that a turn begins with. `worktree` names theirs among all of a host, `place` and `session` call it."""

    worktree: str
    place: str
    session: str
    packed: CheckpointPack


class Order(Struct, frozen=True, forbid_unknown_fields=True):
    """One try of a turn, for the host `host`.

    Each try is a turn of its own in the store, so that a name is never ordered twice. Times are seconds, sizes bytes.
    """

    turn: str
    """Its name among all turns that the database has."""
    host: str
    member: str
    agent: str
    protocol: str
    """How home reads the agent's output."""
    project: Project
    prompt: bytes
    """The exact bytes of its standard input."""
    system_text: str | None
    access: Access
    timeout_s: float
    first_byte_s: float | None
    """None: the CLI's own value."""
    stall_s: float | None = None
    """None: the CLI's own value."""
    allow: tuple[str, ...] = ()
    model: str | None = None
    web: bool = False
    memory: Memory = "fresh"
    resumes: str | None = None
    budget_usd: float | None = None
    longest: int = LONGEST_REPLY
    max_output: int = MAX_OUTPUT_BYTES
    patience: dict[FailureKind, int] = field(default_factory=dict)
    """How many retries of a kind the CLI may report."""
    teamchat: str = ""
    files: OrderFiles | None = None
    """The files that it works with, in a worktree; without them it works in the project's folder."""
    expires: float = 0.0
    """When no host takes it any more, in seconds since 1970."""
    format: int = FORMAT


class Began(Struct, frozen=True, forbid_unknown_fields=True, tag="began"):
    """The host starts the agent: the worker's process (`executor`), the command, the folder.

    `env` has the changed variables as `Setup` does. `login` and `version` are those of `Launch`.
    """

    attempt: str
    executor: str
    argv: tuple[str, ...]
    env: dict[str, str | None]
    cwd: str
    access_note: str = ""
    version: str | None = None
    login: tuple[str, ...] | None = None
    teamchat: str = ""


class Output(Struct, frozen=True, forbid_unknown_fields=True, tag="output"):
    """What the agent wrote to a stream, from the byte `begins` on, `at` seconds after its start."""

    attempt: str
    stream: Literal["out", "err"]
    begins: int
    data: bytes
    at: float


class Ended(Struct, frozen=True, forbid_unknown_fields=True):
    """The end of the turn: how the process ended as `Exit` has it, or why none was started (`refused`).

    It travels as `Signed`, with its `turn` and `host`, and with the facts sent before it.
    """

    attempt: str
    code: int | None = None
    left: tuple[str, ...] = ()
    over_limit: int | None = None
    seconds: float = 0.0
    changed: tuple[str, ...] = ()
    not_all_looked_at: bool = False
    cut: Failure | None = None
    """Why the host ended it."""
    cut_at: float = 0.0
    """When the host ended it, in seconds after the start."""
    refused: Failure | None = None
    files: CheckpointPack | None = None
    """The outcome of the order's files."""
    unsent: str | None = None
    """Why the files stay there."""
    stays: tuple[str, ...] = ()
    """The new paths that do not travel, with why."""
    lacks: bool = False
    """Whether the base of the files of the order is no longer there."""
    turn: str = ""
    host: str = ""
    began: Began | None = None
    """The earlier report of the start."""
    out: str = ""
    """The SHA-256 of all that came from the standard output."""
    err: str = ""
    """The SHA-256 of all that came from the standard error."""


class Signed(Struct, frozen=True, forbid_unknown_fields=True, tag="signed"):
    """An order or the end of a turn as text, and a signature of it; "" where both sides do without."""

    text: str
    signature: str = ""


Piece: TypeAlias = Began | Output | Ended
"""The reports on a turn to home."""
SentPiece: TypeAlias = Began | Output | Signed
"""A piece as it is written to the database."""
_PIECE: Decoder[Any] = Decoder(Began | Output | Signed)
_PIECES: Decoder[list[SentPiece]] = Decoder(list[Began | Output | Signed])
_SIGNED, _ORDER, _END = Decoder(Signed), Decoder(Order), Decoder(Ended)
T = TypeVar("T")


class Unreadable(ValueError):
    """A value of the database that teamchat has not written."""


def written(value: Order | Ended | SentPiece | list[SentPiece]) -> str:
    """Write the value as text for the database."""
    return encode(value).decode()


def read_signed_order(text: object) -> Signed:
    """Read an order with its signature. Raises `Unreadable`."""
    return _read(_SIGNED, text, "an order")


def read_order(text: str) -> Order:
    """Read an order. Raises `Unreadable`."""
    return _read(_ORDER, text, "an order")


def read_end(text: str) -> Ended:
    """Read the end of a turn. Raises `Unreadable`."""
    return _read(_END, text, "an end")


def read_piece(text: object) -> SentPiece:
    """Read a piece of a turn. Raises `Unreadable`."""
    piece: SentPiece = _read(_PIECE, text)
    return piece


def read_pieces(text: object) -> list[SentPiece]:
    """Read several pieces of a turn. Raises `Unreadable`."""
    return _read(_PIECES, text)


def is_host_name(name: str) -> bool:
    """Whether a host may have the name: letters, digits, `_`, `.` and `-`, as it also stands in lists of keys."""
    return _HOST.fullmatch(name) is not None and name.casefold() != ANY


def minor(program: str) -> tuple[str, ...]:
    """Return a version of teamchat without the part that may differ between two machines."""
    return tuple(program.split(".")[:2])


def _read(decoder: Decoder[T], text: object, what: str = "a piece of a turn") -> T:
    if not isinstance(text, str):
        raise Unreadable(f"{what} that is no text")
    try:
        return decoder.decode(text)
    except (ValidationError, DecodeError, UnicodeError, RecursionError) as error:
        raise Unreadable(f"{what} that cannot be read: {error}") from None
