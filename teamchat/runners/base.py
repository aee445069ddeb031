"""What a runner is: how one kind of agent CLI is started, read and stopped.

A runner is pure. It says how the prompt's bytes are prepared, which command runs, how a line of output becomes events
and how the end is judged; `process/` does the running. What the lines become is in `events.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from signal import Signals
from typing import Literal, Protocol, TypeAlias

from teamchat.runners.edits import Edits
from teamchat.runners.events import AgentEvent, Failure, Usage

Access = Literal["read", "edit", "full"]
Memory = Literal["fresh", "resume", "live"]
FIRST_BYTE_S = 60.0
"""The longest wait for the first output of a turn, in seconds, unless the team file says another one."""
Vendor: TypeAlias = str
"""Who makes a CLI, by the name of its row in `core/agents.py`."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judgement over a finished process: the reply when `failure` is None, else the partial text.

    `usage` is what its output tells of a turn without a `Usage` event: one that was killed, for instance.
    """

    text: str
    failure: Failure | None = None
    usage: Usage | None = None


class EventParser(Protocol):
    """Reads one process's output. `feed` and `finish` are total: no bytes make them raise.

    `by_lines` says that `feed` is given whole lines; without it, whatever bytes have come.
    """

    by_lines: bool

    @property
    def answered(self) -> bool:
        """Whether the model's answer is whole, so that nothing but the CLI's own terminal event should follow."""
        ...

    def feed(self, line: bytes, /) -> Iterable[AgentEvent]:
        """The events of one stdout line (without its newline), or of some bytes; junk becomes a `Note`."""
        ...

    def feed_stderr(self, line: bytes) -> Iterable[AgentEvent]:
        """The events of one stderr line; most lines of most CLIs have none."""
        ...

    def finish(self, exit_code: int, stderr_tail: str) -> Verdict:
        """Success is exit code 0 and the CLI's terminal success event and non-blank text; else a failure in words.

        A negative exit code is the signal that ended the process.
        """
        ...


@dataclass(frozen=True, slots=True)
class Prepared:
    """The exact bytes that go to stdin, and how many mentions and keywords were made inert in them."""

    stdin: bytes
    inert_mentions: int = 0


@dataclass(frozen=True, slots=True)
class Terminal:
    """How a program is talked to that has nothing but a terminal.

    `prompt` is a regular expression for the whole line in which its prompt stands; a group `answer` in it is text
    before the prompt. `submit` ends what is typed, and `exit` is typed to end the program (None: the end of file).
    """

    prompt: str
    submit: str = "\r"
    exit: str | None = None


@dataclass(frozen=True, slots=True)
class Images:
    """How a CLI takes images: `mention` is what a prompt says for a file, by its path; None where the command does."""

    mention: Callable[[str], str] | None = None


@dataclass(frozen=True, slots=True)
class Slash:
    """A custom command that a person `typed`, arguments included, and the `file` that defines it ("" for none).

    `text` is what it expands to, where the CLI leaves that to teamchat. A `refused` one stays as typed; it says why.
    """

    typed: str
    file: str
    text: str = ""
    refused: str | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """One turn, as far as a runner needs to know it.

    `scratch` is the turn's own folder for files of the command; `env` the user's environment, which says where the CLI
    has its settings. `budget_usd` is the most the turn may cost, where the CLI can bound that.

    `web` is the CLI's own search and fetch, `mcp` the user's MCP servers that start, by name (None: as the access has
    it), `git` a folder for teamchat's own git server, which without one does not start.

    `images` are files that the CLI is to show its model.

    `resumes` is the vendor session to continue. A turn of memory "fresh" leaves none behind, where the CLI has a
    switch for that. `terminal` goes with the agent type of that name; `first_byte_s` is how long its prompt may take.
    `slash` says that `SlashRule.add` has put a command into its input.
    """

    program: tuple[str, ...]
    cwd: Path
    scratch: Path
    system_text: str | None = None
    access: Access = "read"
    allow: tuple[str, ...] = ()
    model: str | None = None
    args: tuple[str, ...] = ()
    project_settings: bool = False
    web: bool = False
    mcp: tuple[str, ...] | None = None
    git: Path | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    budget_usd: float | None = None
    memory: Memory = "fresh"
    resumes: str | None = None
    terminal: Terminal | None = None
    first_byte_s: float = FIRST_BYTE_S
    images: tuple[Path, ...] = ()
    slash: bool = False

    @property
    def servers(self) -> tuple[str, ...] | None:
        """The user's MCP servers that start, by name; None: all that the plain CLI starts."""
        return () if self.mcp is None and self.access == "read" else self.mcp


@dataclass(frozen=True, slots=True)
class SlashRule:
    """How a CLI's custom commands reach its model: `find` reads the files of a turn, `add` puts one into its stdin."""

    find: Callable[[str, Job], Slash | None]
    add: Callable[[bytes, Slash], bytes]


@dataclass(frozen=True, slots=True)
class SkillRule:
    """How a prompt mentions a skill: `known` makes of a turn's folder and environment what knows the CLI's skills.

    That tells of a mention, as it is written, whether it names one.
    """

    known: Callable[[Path, Mapping[str, str]], Callable[[str], bool]]


@dataclass(frozen=True, slots=True)
class LiveRule:
    """How a process that stays is spoken to: `line` makes a turn's input of a prompt, `interrupt` stops a turn.

    A turn ends where the parser of its output sees the CLI's terminal event.
    """

    line: Callable[[bytes], bytes]
    interrupt: bytes


@dataclass(frozen=True, slots=True)
class Command:
    """What is to be run: argv, changes to the environment, and files to write first (absolute path -> content).

    With `live` the process may stay for further turns. `through` is a program of ours with its arguments that runs argv
    in its turn; people are shown argv alone.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[Path, bytes] = field(default_factory=dict)
    live: LiveRule | None = None
    through: tuple[str, ...] = ()

    def write_files(self) -> None:
        """Write the files, for the user alone; all may be run, since a script may be among them. Raises OSError."""
        for path, content in self.files.items():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.write_bytes(content)
            path.chmod(0o700)


@dataclass(frozen=True, slots=True)
class StopRule:
    """The CLI's own soft stop: `signal` to its process `group` or to its pid alone, SIGKILL after `grace_s`."""

    signal: Signals = Signals.SIGTERM
    group: bool = True
    grace_s: float = 2.0


@dataclass(frozen=True, slots=True)
class Sessions:
    """What a CLI can do with its own sessions.

    `system_each_time`: it is given the system text in every turn, too (Claude by a flag, opencode by a file); else when
    a session starts. `open` are the arguments that hand one to a person at a terminal. `stays_in` is the folder where
    the CLI keeps them; with `keeps_all` those of fresh turns, too, for it has no switch. `used` tells what one has used
    in all by now, by a turn's environment, where the CLI counts over its sessions and that can be known.
    """

    system_each_time: bool
    live: bool
    open: Callable[[str], tuple[str, ...]]
    stays_in: str
    keeps_all: bool = False
    used: Callable[[Mapping[str, str], str], Usage | None] = lambda _env, _session: None


@dataclass(frozen=True, slots=True)
class Limit:
    """The most a CLI takes on stdin, as observed; checked before anything is spawned."""

    size: int
    unit: Literal["bytes", "characters"] = "bytes"


@dataclass(frozen=True, slots=True)
class Login:
    """Whether a CLI has a login (None: only the CLI itself could tell), why that is thought, and how to get one.

    `variables` are those that the CLI sends it from: none where it is a stored login, None where that is not known.
    """

    there: bool | None
    reason: str
    hint: str | None = None
    variables: tuple[str, ...] | None = None


class Runner(Protocol):
    """How one kind of agent CLI is run.

    `vendor` names whose keys it may see (None: a pipe agent, which loses none). `stall_s` is the default stall clock.
    `reports_denials`: no denial seen means that there was none, in a version that the ledger knows for it; else the
    receipt says unknown. `sessions` None: it has none, so every turn is a fresh one. `images` None: it
    takes none. `slash` None: it has no custom commands that can be called. `skills` None: a prompt cannot mention one.
    `edits` None: nothing bounds what it does.
    """

    vendor: Vendor | None
    limit: Limit | None
    stop: StopRule
    stall_s: float
    reports_denials: bool
    sessions: Sessions | None
    images: Images | None
    slash: SlashRule | None
    skills: SkillRule | None
    edits: Edits | None

    def prepare(self, prompt: str, *, typed: range, exists: Callable[[str], bool]) -> Prepared:
        """The last step before stdin: what it returns is what is sent, stored, recorded and shown.

        The characters of the prompt that a person `typed` stay as they are: nothing else in it may expand to more than
        it says. `exists` tells whether what a mention names is there: a path (as written, relative to the member's
        cwd), or a skill as `SkillRule` knows it.
        """
        ...

    def command(self, job: Job) -> Command: ...

    def parser(self) -> EventParser: ...

    def refusal(self, access: Access, env: Mapping[str, str]) -> str | None:
        """Why the CLI would refuse this access to this user (Claude its bypass to root), or None."""
        ...

    def access_note(self, access: Access) -> str:
        """One line for `teamchat team`: what a member of this access may do, and what bounds it."""
        ...

    def reads_note(self, job: Job) -> str:
        """One line for `teamchat team`: which instructions and settings the CLI reads beside its prompt.

        It names the user's MCP servers where all of them start; named ones stand with what the member may use.
        """
        ...

    def lacks(self, job: Job) -> tuple[str, ...]:
        """What of its project a member goes without that the plain CLI has."""
        ...

    def settings_files(self, job: Job) -> tuple[Path, ...]:
        """The JSON files without which it does not start if they cannot be read."""
        ...

    def servers(self, cwd: Path, env: Mapping[str, str]) -> Collection[str]:
        """The names of the MCP servers that the user has set up for the CLI, for that folder included."""
        ...

    def login(self, cwd: Path, env: Mapping[str, str]) -> Login | None:
        """Its login, as far as the environment and the presence of files tell; None where none is known of.

        No file that may hold a login is opened.
        """
        ...
