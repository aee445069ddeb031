"""What a runner is: how one kind of agent CLI is started, read and stopped.

A runner is pure. It prepares the prompt's bytes, names the command, turns a line of output into events and judges the
end. `process/` runs the command. `events.py` has the events.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from signal import Signals
from typing import Literal, Protocol, TypeAlias, get_args

from msgspec import Struct, field

from teamchat.runners.agent_events import AgentEvent, Failure, Usage
from teamchat.runners.edits import Edits

Access = Literal["read", "edit", "full"]
Memory = Literal["fresh", "resume", "live"]
FIRST_BYTE_S = 60.0
"""The longest wait for the first output of a turn of a vendor's CLI, in seconds. The team file may say otherwise."""
NOT_ENFORCED = "not enforced"
"""How the note on the access of a program begins that nothing bounds."""
NOT_PROVEN = "not proven"
"""How the note on the access of a program ends that is taken to be bounded as another one is."""
Vendor: TypeAlias = str
"""The vendor of a CLI, by the name of its row in `core/agents.py`."""


class Verdict(Struct, frozen=True):
    """The judgement of a finished process: the reply if `failure` is None, else the partial text.

    `usage` is the usage that its output reports for a turn without a `Usage` event, such as a killed one. `cut` says
    that the text was longer than a reply may be, and has no middle. `own_cost` says that the cost is that of the turn
    alone also in a process that stays, which otherwise adds it up. `last_row` is the row of the CLI's own record of the
    session with which its answer ends, if the output names it.
    """

    text: str
    failure: Failure | None = None
    usage: Usage | None = None
    cut: bool = False
    own_cost: bool = False
    last_row: str = ""


class EventParser(Protocol):
    """Reads one process's output. `feed` and `finish` never raise, whatever the bytes.

    With `by_lines`, `feed` receives whole lines; otherwise the bytes as they come. `longest` is how many bytes of
    text a reply may have. `at_end`: its program may print nothing before its reply is complete.
    """

    by_lines: bool
    at_end: bool
    longest: int

    @property
    def answered(self) -> bool:
        """True if the model's answer is complete, so that only the CLI's own terminal event should follow."""
        ...

    def feed(self, *lines: bytes) -> Iterable[AgentEvent]:
        """The events of stdout lines (without their newlines) that were read together, or of some bytes.

        Junk becomes a `Note`. Pieces of text that follow each other may come as one.
        """
        ...

    def feed_stderr(self, line: bytes) -> Iterable[AgentEvent]:
        """The events of one stderr line; most lines of most CLIs have none."""
        ...

    def finish(self, exit_code: int, stderr_tail: str) -> Verdict:
        """Success is exit code 0 and the CLI's terminal success event and non-blank text; else a failure in words.

        A negative exit code is the signal that ended the process.
        """
        ...


class Prepared(Struct, frozen=True):
    """The exact bytes for stdin, and how many mentions and keywords were escaped in them."""

    stdin: bytes
    inert_mentions: int = 0


class Terminal(Struct, frozen=True):
    """How to use a program that has only a terminal.

    `prompt` is a regular expression for the whole line of its prompt; a group `answer` in it is text before the
    prompt. `submit` ends what is typed, and `exit` is typed to end the program (None: the end of file).
    """

    prompt: str
    submit: str = "\r"
    exit: str | None = None


class Images(Struct, frozen=True):
    """How a CLI takes images: `mention` is the prompt's text for a file's path; None if the command passes the file."""

    mention: Callable[[str], str] | None = None


class Slash(Struct, frozen=True):
    """A custom command that a person `typed`, arguments included, and the `file` that defines it ("" for none).

    `text` is its expansion, if the CLI leaves that to teamchat. A command that is `refused` stays as typed; the
    value says why.
    """

    typed: str
    file: str
    text: str = ""
    refused: str | None = None


class Job(Struct, frozen=True):
    """One turn, as far as a runner needs to know it.

    `scratch` is the turn's own folder for files of the command, `env` the user's environment, which locates the
    CLI's settings. `budget_usd` is the most that the turn may cost, if the CLI can limit that. `web` is the CLI's
    own search and fetch. `mcp` names the user's MCP servers that start (None: the access decides). `git` is a
    folder for teamchat's own git server, which does not start without one. `images` are files to show to the model.
    `resumes` is the vendor session to continue, `forks` one whose copy is continued. A turn of memory "fresh" leaves no
    session behind, if the CLI has a
    switch for that. `terminal` belongs to the agent type of that name; `first_byte_s` is how long its prompt may
    take. `slash` says that `SlashRule.add` has put a command into its input.
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
    forks: str | None = None
    terminal: Terminal | None = None
    first_byte_s: float = FIRST_BYTE_S
    images: tuple[Path, ...] = ()
    slash: bool = False

    @property
    def servers(self) -> tuple[str, ...] | None:
        """The user's MCP servers that start, by name; None: all that the plain CLI starts."""
        return () if self.mcp is None and self.access == "read" else self.mcp


KnownSkills = Callable[[Path, Mapping[str, str]], Callable[[str], bool]]
"""Of a folder and an environment: what tests whether a mention, as written, names a skill of the CLI."""


class SlashRule(Struct, frozen=True):
    """How custom commands reach a CLI's model: `find` reads the files of a turn, `add` adds one to its stdin."""

    find: Callable[[str, Job], Slash | None]
    add: Callable[[bytes, Slash], bytes]


class LiveRule(Struct, frozen=True):
    """How a process that stays takes turns: `line` turns a prompt into its input, `interrupt` stops a turn.

    A turn ends when the parser of its output sees the CLI's terminal event.
    """

    line: Callable[[bytes], bytes]
    interrupt: bytes


class Command(Struct, frozen=True):
    """What to run: argv, changes to the environment, and files to write first (absolute path -> content).

    `starts_in` is the folder in which the CLI starts, if that is not the turn's: an argument then names the turn's.
    With `live` the process may stay for further turns. `through` is one of our own programs with its arguments,
    which runs argv; people are shown only argv.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[Path, bytes] = field(default_factory=dict)
    live: LiveRule | None = None
    through: tuple[str, ...] = ()
    starts_in: Path | None = None

    def write_files(self) -> None:
        """Write the files, for the user alone. All are executable, since one may be a script. Raises OSError."""
        for path, content in self.files.items():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.write_bytes(content)
            path.chmod(0o700)


class StopRule(Struct, frozen=True):
    """The CLI's own soft stop: `signal` to its process `group` or to its pid alone, SIGKILL after `grace_s`."""

    signal: Signals = Signals.SIGTERM
    group: bool = True
    grace_s: float = 2.0


class KeptSession(Struct, frozen=True):
    """A session that a CLI has kept: when it was last used, in seconds since the epoch, and its first prompt.

    `first` is empty where that cannot be read, as of a compressed record.
    """

    id: str
    at: float
    first: str


class Sessions(Struct, frozen=True):
    """What a CLI can do with its own sessions.

    `system_each_time`: it also takes the system text in every turn (Claude by a flag, opencode by a file); else only
    when a session starts. `open` are the arguments that open a session of a folder for a person at a terminal; the
    CLI starts in `starts_in` (None: in that folder). `refused` says why it is not opened in that environment.
    `stays_in` is the folder where the CLI keeps them. `keeps_all`: it has no switch to turn that off, so fresh turns
    leave sessions, too. `used` reports the total usage of a session, from a turn's environment, if the CLI counts
    over its sessions and that can be known. `kept` finds the sessions of a folder, by the CLI's environment; None:
    they cannot be listed, and none is adopted. `any_folder` is the version from which the CLI continues a session in
    any folder (empty: only in the one where it began). An older one does not find the session, and the turn is repeated
    with a fresh one. `continues` are the rows of a session's record that its next turn continues, by the CLI's
    environment; None: they are not known, and no turn is taken for lost.
    """

    system_each_time: bool
    live: bool
    open: Callable[[str, Path], tuple[str, ...]]
    stays_in: str
    starts_in: Path | None = None
    refused: Callable[[Mapping[str, str]], str | None] = lambda _env: None
    keeps_all: bool = False
    used: Callable[[Mapping[str, str], str], Usage | None] = lambda _env, _session: None
    kept: Callable[[Mapping[str, str], Path], Iterable[KeptSession]] | None = None
    any_folder: str = ""
    continues: Callable[[Mapping[str, str], str], Collection[str] | None] = lambda _env, _session: None


class Limit(Struct, frozen=True):
    """The most that a CLI takes on stdin, as observed; checked before anything starts."""

    size: int
    unit: Literal["bytes", "characters"] = "bytes"


class Login(Struct, frozen=True):
    """Whether a CLI has a login (None: only the CLI could tell), the evidence, and how to get one.

    `variables` are those whose values the CLI sends: none for a stored login, None if that is unknown.
    """

    there: bool | None
    reason: str
    hint: str | None = None
    variables: tuple[str, ...] | None = None


class Runner(ABC):
    """How one kind of agent CLI is run. What is not said here is as for any other program.

    `vendor` names whose keys it may see (None: a pipe agent, which keeps all). `first_byte_s` and `stall_s` are the
    default clocks. `reports_denials`: a turn without a reported denial had none, in a version for which the ledger
    proves it; in any other the receipt says unknown.
    `sessions` None: it has none, so every turn is a fresh one. `images` None: it takes none. `reads_mentions`: it adds
    the file of an `@path` that a person typed to its prompt. `slash` None: it has no custom commands to call. `skills`
    None: a prompt cannot mention one. `edits` None: nothing limits what it does. `access_notes` have a line for
    `teamchat team` for each access: what a member may do, and what limits it.
    """

    vendor: Vendor | None = None
    limit: Limit | None = None
    stop = StopRule()
    first_byte_s = FIRST_BYTE_S
    stall_s = 300.0
    reports_denials = False
    sessions: Sessions | None = None
    images: Images | None = None
    reads_mentions = False
    slash: SlashRule | None = None
    skills: KnownSkills | None = None
    edits: Edits | None = None
    access_notes: Mapping[Access, str] = dict.fromkeys(
        get_args(Access), f"{NOT_ENFORCED}: teamchat cannot bound what another program does"
    )

    def prepare(self, prompt: str, *, typed: range, exists: Callable[[str], bool]) -> Prepared:  # noqa: ARG002
        """The last step before stdin: its result is what is sent, stored, recorded and shown.

        The characters of the prompt that a person `typed` stay unchanged. Nothing else in it may expand.
        `exists` tells whether the target of a mention exists: a path (as written, relative to the member's
        cwd), or a skill.
        """
        from teamchat.runners.untrusted.json import scalar  # the table of agents needs none

        return Prepared(scalar(prompt).encode())

    @abstractmethod
    def command(self, job: Job) -> Command: ...

    @abstractmethod
    def parser(self) -> EventParser: ...

    def refusal(self, access: Access, env: Mapping[str, str]) -> str | None:  # noqa: ARG002
        """Why the CLI would refuse this access to this user (Claude its bypass to root), or None."""
        return None

    def reads_note(self, job: Job) -> str:  # noqa: ARG002
        """One line for `teamchat team`: which instructions and settings the CLI reads besides its prompt.

        It names the user's MCP servers if all of them start. Servers that a member names are listed with what
        it may use.
        """
        return "its prompt, and whatever the program reads by itself"

    def lacks(self, job: Job) -> tuple[str, ...]:  # noqa: ARG002
        """The parts of its project that a member lacks and the plain CLI has."""
        return ()

    def unreadable(self, job: Job) -> Iterable[tuple[Path, str]]:  # noqa: ARG002
        """The settings files that keep it from starting because they cannot be read, and why."""
        return ()

    def servers(self, cwd: Path, env: Mapping[str, str]) -> Collection[str]:  # noqa: ARG002
        """The names of the MCP servers that the user has set up for the CLI, for that folder included."""
        return ()

    def login(self, cwd: Path, env: Mapping[str, str]) -> Login | None:  # noqa: ARG002
        """Its login, as far as the environment and existing files tell; None if none is known.

        It opens no file that may hold a login.
        """
        return None
