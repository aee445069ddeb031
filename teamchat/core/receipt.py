"""The receipt of a turn: what went in, under which permissions, and what came of it.

`Setup` is stored before the process starts and `Outcome` when it has ended, so that a crash in between leaves a
receipt that says what was running.
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
"""What a turn is to give: a message of the conversation, or something that is made of it."""
KILLED = "was running when teamchat was killed"
"""What is said of a turn that no process runs, and whose end nobody saw."""
STOPPED_ON = "was stopped at {} (teamchat was killed)"
RUNS_ON = "goes on at {} (teamchat was killed)"
"""What is said of a turn on a host that no process follows. Whether it has ended there, only the host knows."""
NOT_STORED = "has finished and is not stored yet"
"""What is said of a turn that no process runs, and whose end is kept beside the store."""
QUANTITIES = ("input_tokens", "cached_tokens", "output_tokens", "cost_usd")
"""The fields of `Usage` that are added up."""
MOST_MARKED = 5  # names of files in a line
NOT_ALL = "there are too many to compare them all"


class Setup(Struct, frozen=True):
    """What a turn was given.

    `answers` is the message that it answers, `request` the person's behind it. `asked_in` is the later request that the
    message was written for, if it is another one.
    `env` has the changed variables: the new value (secrets hidden, of the team file's `env` a digest), or None for a
    removed one. `redacted` counts the
    secrets that were taken out of other vendors' texts.

    `resumes` is the vendor session that the turn continues, or `adopted` one of a person's, whose copy it continues;
    else `fresh_because` says why it begins one; `opened`: a person continued it by hand since; `lost` are the numbers
    of turns that it has lost, because somebody continued it beside them, and whose messages the turn is shown again;
    `same_process`: in the process of an earlier turn. `fresh_bytes` is what a fresh turn would have been sent in all.
    `shown_from`, `beside`, `thread_key` and `edits` are what the next turn's memory is judged by. `sources` names what
    layers are made of (files, lessons), by the layer's name. `images` names those it was shown. `slash` says what
    became of a custom command that its person typed. `without` names, in a member's first turn, what the plain CLI
    would also have. `host` is the host that it was sent to: then `argv` and `env` are empty, and `Outcome.ran` has
    those of the host. `row` is that of its program. `place` is the member's place in a process that has it do several
    parts at the same time: `sarah#3`.
    """

    argv: tuple[str, ...]
    env: dict[str, str | None]
    cwd: str
    access: Access
    access_note: str
    why: str
    answers: str
    request: str
    attempt: int = 1
    model: str | None = None
    stdin_bytes: int = 0
    system_bytes: int = 0
    inert_mentions: int = 0
    redacted: int = 0
    trimmed: Trimmed = field(default_factory=Trimmed)
    blocks: tuple[Block, ...] = ()
    memory: Memory = "fresh"
    resumes: str | None = None
    fresh_because: str | None = None
    opened: bool = False
    same_process: bool = False
    fresh_bytes: int = 0
    shown_from: str | None = None
    beside: tuple[str, ...] = ()
    thread_key: str = ""
    edits: int = 0
    sources: dict[str, tuple[str, ...]] = field(default_factory=dict)
    purpose: Purpose = "reply"
    images: tuple[str, ...] = ()
    slash: str | None = None
    without: tuple[str, ...] = ()
    adopted: str | None = None
    asked_in: str | None = None
    host: str | None = None
    row: AgentRow | None = None
    place: str | None = None
    lost: tuple[int, ...] = ()

    @property
    def lost_in_words(self) -> str:
        """`turn 2`, or `turns 2, 3`."""
        return f"turn{'s' * (len(self.lost) > 1)} {', '.join(map(str, self.lost))}"


class Ran(Struct, frozen=True):
    """Where a turn ran that did not run here: on which host, by which process of its worker, and with what.

    The fields are those of `Setup`, and `teamchat` is the version there. It was `lost` if the host went away meanwhile,
    and `gone` says how, in words that follow its name. Of a turn that did not begin only the host is known.
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
    """What a session has used that the agent of a turn ran, so far or in all. `store` is the file that it is stored in.

    Each sum is of the turns of which it is known, `no_...` counts the others.
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
    """What came of a turn. None is unknown, never zero.

    `seconds` is unknown where teamchat was killed in the turn. `version` is that of the CLI. `denied` are the actions
    that it refused the agent: None if it reported none and its version is not proven to report them. `left` names
    processes that outlived the agent and were ended.
    `files` are the files that changed in the work tree, whoever changed them, and `changes` says how. Where `changes`
    cannot tell, `files` are those of `reported`: what the CLI says that it changed. All are relative to the folder of
    the member.
    `failed_tools` counts the calls that failed, those that were refused included. `files_that_run` are files by which
    other tools run something (hooks, tasks, build rules) and that changed in the turn, whoever changed them;
    `not_all_looked_at`: there are more such files than are compared. `children` are the sessions that the agent ran.
    `last_row` is that of `Verdict`.
    """

    exit_code: int | None
    seconds: float | None
    failure: Failure | None = None
    first_byte_s: float | None = None
    model: str | None = None
    version: str | None = None
    usage: Usage | None = None
    denied: tuple[Denied, ...] | None = ()
    files: tuple[str, ...] = ()
    reported: tuple[str, ...] = ()
    changes: FileChanges | NoCheckpoint | None = None
    files_that_run: tuple[str, ...] = ()
    not_all_looked_at: bool = False
    tools: int = 0
    failed_tools: int | None = None
    left: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    stderr_tail: str = ""
    reply: str | None = None
    children: tuple[Child, ...] = ()
    ran: Ran | None = None
    last_row: str = ""

    @property
    def marked(self) -> str | None:
        """What a person is told of files that run things, with all of them; None where it is known none changed."""
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
        """The warning for a read-only turn during which files changed; None if none did."""
        changes = self.known_changes
        if access != "read" or not (changes and changes.count) or changes.shared_with:
            return None
        return f"may only read, and {changes.count} file{'s' * (changes.count > 1)} changed during its turn"

    @property
    def code(self) -> ExitCode:
        return CODES[self.failure.kind] if self.failure else ExitCode.DONE
