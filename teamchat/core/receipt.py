"""The receipt of a turn: its input, its permissions, and its outcome.

`Setup` is stored before the process starts and `Outcome` when it has ended, so that a crash in between leaves a receipt
of the running turn.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from teamchat.assemblers.parts import Block, Trimmed
from teamchat.core.errors import CODES, ExitCode
from teamchat.core.text.clean import printable
from teamchat.runners.agent_events import Denied, Failure, Usage
from teamchat.runners.agent_row import AgentRow
from teamchat.runners.base import Access, Memory
from teamchat.runners.untrusted.file_changes import FileChanges, NoCheckpoint

Purpose = Literal["reply", "summary", "lessons"]
"""The product of a turn: a message of the conversation, or something made of it."""
KILLED = "was running when teamchat was killed"
"""The words for a turn that no process runs and whose end nobody saw."""
STOPPED_ON = "was stopped at {} (teamchat was killed)"
RUNS_ON = "goes on at {} (teamchat was killed)"
"""The words for a turn on a host that no process follows. Whether it has ended there, only the host knows."""
NOT_STORED = "has finished and is not stored yet"
"""The words for a turn that no process runs and whose end is kept beside the store."""
QUANTITIES = ("input_tokens", "cached_tokens", "output_tokens", "cost_usd")
"""The fields of `Usage` that are added up."""
MOST_MARKED = 5  # names of files in a line
NOT_ALL = "there are too many to compare them all"


class Setup(Struct, frozen=True):
    """A turn's input and conditions."""

    argv: tuple[str, ...]
    env: dict[str, str | None]
    """The changed variables: the new value, or None for a removed one.

    Secrets are hidden, and of the team file's `env` only a digest is kept.
    """
    cwd: str
    access: Access
    access_note: str
    why: str
    answers: str
    """The message that it answers."""
    request: str
    """The person's message behind that."""
    attempt: int = 1
    model: str | None = None
    stdin_bytes: int = 0
    system_bytes: int = 0
    inert_mentions: int = 0
    redacted: int = 0
    """The number of secrets that were taken out of other vendors' texts."""
    trimmed: Trimmed = field(default_factory=Trimmed)
    blocks: tuple[Block, ...] = ()
    memory: Memory = "fresh"
    resumes: str | None = None
    """The vendor session that the turn continues."""
    fresh_because: str | None = None
    """Why the turn begins a session."""
    opened: bool = False
    """Whether a person continued the session by hand since."""
    same_process: bool = False
    """Whether the turn runs in the process of an earlier turn."""
    fresh_bytes: int = 0
    """The size of the whole input of a fresh turn, in bytes."""
    shown_from: str | None = None
    """The next turn's memory is judged by this, `beside`, `thread_key` and `edits`."""
    beside: tuple[str, ...] = ()
    thread_key: str = ""
    edits: int = 0
    sources: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The sources of the layers (files, lessons), by the layer's name."""
    purpose: Purpose = "reply"
    images: tuple[str, ...] = ()
    """The names of the images that it was shown."""
    slash: str | None = None
    """What became of a custom command that its person typed."""
    without: tuple[str, ...] = ()
    """The features that the plain CLI would also have; only in a member's first turn."""
    adopted: str | None = None
    """A person's vendor session whose copy the turn continues."""
    asked_in: str | None = None
    """The later request that the message was written for, if it is another one."""
    host: str | None = None
    """The host that it was sent to: then `argv` and `env` are empty, and `Outcome.ran` has the host's."""
    row: AgentRow | None = None
    """The row of its program."""
    place: str | None = None
    """The member's place in a process, if it does several parts at a time: `sarah#3`."""
    lost: tuple[int, ...] = ()
    """The numbers of turns that the session has lost, because somebody continued it beside them.

    The turn is shown their messages again.
    """

    @property
    def lost_in_words(self) -> str:
        """`turn 2`, or `turns 2, 3`."""
        return f"turn{'s' * (len(self.lost) > 1)} {', '.join(map(str, self.lost))}"


class Ran(Struct, frozen=True):
    """The place of a turn on another machine: the host, the process of its worker, and the conditions.

    The fields are those of `Setup`, and `teamchat` is the version there. It was `lost` if the host went away meanwhile,
    and `gone` says how, in words that follow its name. For a turn that did not begin, only the host is known.
    """

    host: str
    executor: str = ""
    cwd: str = ""
    argv: tuple[str, ...] = ()
    env: dict[str, str | None] = field(default_factory=dict)
    access_note: str = ""
    teamchat: str = ""
    lost: bool = False
    gone: str = ""


class Child(Struct, frozen=True):
    """The use of a session that the agent of a turn ran, so far or in all. `store` is the file of its store.

    Each sum is over the turns with a known value; `no_...` counts the others.
    """

    session: str
    store: str
    turns: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    no_input_tokens: int = 0
    no_cached_tokens: int = 0
    no_output_tokens: int = 0
    no_cost_usd: int = 0

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    @property
    def used(self) -> str:
        """`2 turns, 1,234 tokens, ≥$0.0123`, with what is known."""
        unknown = max(self.no_input_tokens, self.no_output_tokens)
        tokens = self._known(f"{self.tokens:,} tokens", unknown, "tokens unknown")
        cost = self._known(f"${self.cost_usd:.4f}", self.no_cost_usd, "cost unknown")
        return f"{self.turns} turn{'s' * (self.turns != 1)}, {tokens}, {cost}"

    def _known(self, words: str, unknown: int, otherwise: str) -> str:
        return otherwise if unknown >= self.turns else f"{'≥' * (unknown > 0)}{words}"


class Outcome(Struct, frozen=True):
    """A turn's outcome. None is unknown, never zero."""

    exit_code: int | None
    seconds: float | None
    """How long it ran; unknown where teamchat was killed in the turn."""
    failure: Failure | None = None
    first_byte_s: float | None = None
    model: str | None = None
    version: str | None = None
    """The version of the CLI."""
    usage: Usage | None = None
    denied: tuple[Denied, ...] | None = ()
    """The actions that the CLI refused the agent.

    None if it reported none and its version is not proven to report them.
    """
    files: tuple[str, ...] = ()
    """The files that changed in the work tree, whoever changed them, relative to the folder of the member.

    If `changes` cannot tell, they are the files of `reported`.
    """
    reported: tuple[str, ...] = ()
    """The files that the CLI says it changed, relative to the folder of the member."""
    changes: FileChanges | NoCheckpoint | None = None
    """How the files changed."""
    files_that_run: tuple[str, ...] = ()
    """Changed files that make other tools run something (hooks, tasks, build rules), whoever changed them."""
    not_all_looked_at: bool = False
    """Whether there are more such files than are compared."""
    tools: int = 0
    failed_tools: int | None = None
    """The number of failed calls, refused ones included."""
    left: tuple[str, ...] = ()
    """The names of processes that outlived the agent and were ended."""
    notes: tuple[str, ...] = ()
    stderr_tail: str = ""
    reply: str | None = None
    children: tuple[Child, ...] = ()
    """The sessions that the agent ran."""
    ran: Ran | None = None
    last_row: str = ""
    """As in `Verdict`."""

    @property
    def marked(self) -> str | None:
        """The note on files that run things, naming all of them; None if certainly none changed."""
        return self._marked(len(self.files_that_run))

    @property
    def marked_in_brief(self) -> str | None:
        """`marked` for one line: the first files by name, the others by number."""
        return self._marked(MOST_MARKED)

    def _marked(self, most: int) -> str | None:
        names, more = self.files_that_run[:most], len(self.files_that_run) - most
        if not names:
            return f"may have changed files that run things: {NOT_ALL}" if self.not_all_looked_at else None
        rest = f" and {more} more" if more > 0 else ""
        unknown = f"; {NOT_ALL}" if self.not_all_looked_at else ""
        return f"changed files that run things: {', '.join(map(printable, names))}{rest}{unknown}"

    @property
    def known_changes(self) -> FileChanges | None:
        """The difference between the turn's checkpoints; None without checkpoints."""
        return self.changes if isinstance(self.changes, FileChanges) else None

    def broken_access(self, access: Access) -> str | None:
        """Warn of a read-only turn during which files changed; None if none did."""
        changes = self.known_changes
        if access != "read" or not (changes and changes.count) or changes.shared_with:
            return None
        return f"may only read, and {changes.count} file{'s' * (changes.count > 1)} changed during its turn"

    @property
    def code(self) -> ExitCode:
        return CODES[self.failure.kind] if self.failure else ExitCode.DONE
