"""A runner: how one kind of agent CLI is started, read and stopped.

A runner is pure. It prepares the prompt's bytes, names the command, turns a line of output into events and judges the
end. `child/` runs the command. `agent_events.py` has the events.
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
"""The beginning of the note on the access of a program without bounds."""
NOT_PROVEN = "not proven"
"""The end of the note on the access of a program that is assumed to have the bounds of another one."""
Vendor: TypeAlias = str
"""The vendor of a CLI, by the name of its row in `core/agents.py`."""


class Verdict(Struct, frozen=True):
    """The judgement of a finished process."""

    text: str
    """The reply if `failure` is None, else the partial text."""
    failure: Failure | None = None
    usage: Usage | None = None
    """The usage that the output reports for a turn without a `Usage` event, such as a killed one."""
    cut: bool = False
    """Whether the text was longer than a reply may be, and lacks its middle."""
    own_cost: bool = False
    """Whether the cost is that of the turn alone also in a process that stays, which otherwise adds it up."""
    last_row: str = ""
    """The row of the CLI's own record of the session where the answer ends, if the output names it."""


class EventParser(Protocol):
    """The reader of one process's output. `feed` and `finish` never raise, whatever the bytes."""

    by_lines: bool
    """Whether `feed` receives whole lines; otherwise it receives the bytes as they come."""
    at_end: bool
    """Whether the program may print nothing before its reply is complete."""
    longest: int
    """The largest size of a reply's text, in bytes."""

    @property
    def answered(self) -> bool:
        """Whether the model's answer is complete, so that only the CLI's own terminal event should follow."""
        ...

    def feed(self, *lines: bytes) -> Iterable[AgentEvent]:
        """Return the events of stdout lines (without their newlines) that were read together, or of some bytes.

        Junk becomes a `Note`. Pieces of text that follow each other may come as one.
        """
        ...

    def feed_stderr(self, line: bytes) -> Iterable[AgentEvent]:
        """Return the events of one stderr line; most lines of most CLIs have none."""
        ...

    def finish(self, exit_code: int, stderr_tail: str) -> Verdict:
        """Judge the process: success is exit code 0 and the CLI's terminal success event and non-blank text.

        Anything else is a failure in words. A negative exit code is the signal that ended the process.
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
    """The facts of a turn that a runner needs."""

    program: tuple[str, ...]
    cwd: Path
    scratch: Path
    """The turn's own folder for files of the command."""
    system_text: str | None = None
    access: Access = "read"
    allow: tuple[str, ...] = ()
    model: str | None = None
    args: tuple[str, ...] = ()
    project_settings: bool = False
    web: bool = False
    """Whether the CLI's own search and fetch are allowed."""
    mcp: tuple[str, ...] | None = None
    """The names of the user's MCP servers that start; None lets the access decide."""
    git: Path | None = None
    """A folder for teamchat's own git server, which does not start without one."""
    env: Mapping[str, str] = field(default_factory=dict)
    """The user's environment, which locates the CLI's settings."""
    budget_usd: float | None = None
    """The most that the turn may cost, if the CLI can limit that."""
    memory: Memory = "fresh"
    """A turn of memory "fresh" leaves no session behind, if the CLI has a switch for that."""
    resumes: str | None = None
    """The vendor session to continue."""
    forks: str | None = None
    """The vendor session whose copy is continued."""
    terminal: Terminal | None = None
    """How to use the program's terminal; only jobs of the agent type "terminal" have it."""
    first_byte_s: float = FIRST_BYTE_S
    """The longest wait for the prompt of a program at a terminal, in seconds."""
    images: tuple[Path, ...] = ()
    """Files to show to the model."""
    slash: bool = False
    """Whether `SlashRule.add` has put a command into the turn's input."""

    @property
    def servers(self) -> tuple[str, ...] | None:
        """The names of the user's MCP servers that start; None: all that the plain CLI starts."""
        return () if self.mcp is None and self.access == "read" else self.mcp


KnownSkills = Callable[[Path, Mapping[str, str]], Callable[[str], bool]]
"""Makes, for a folder and an environment, a test whether a mention, as written, names a skill of the CLI."""


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
    """A command to run."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    """Changes to the environment."""
    files: Mapping[Path, bytes] = field(default_factory=dict)
    """Files to write first: absolute path -> content."""
    live: LiveRule | None = None
    """How the process takes further turns; with it the process may stay."""
    through: tuple[str, ...] = ()
    """One of our own programs with its arguments, which runs argv; people are shown only argv."""
    starts_in: Path | None = None
    """The start folder of the CLI, if that is not the turn's: an argument then names the turn's."""

    def write_files(self) -> None:
        """Write the files, for the user alone. All are executable, since one may be a script. Raises OSError."""
        for path, content in self.files.items():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.write_bytes(content)
            path.chmod(0o700)


class StopRule(Struct, frozen=True):
    """The CLI's own soft stop: `signal` to its process `group` or to its pid alone, SIGKILL after `grace_s` seconds."""

    signal: Signals = Signals.SIGTERM
    group: bool = True
    grace_s: float = 2.0


class KeptSession(Struct, frozen=True):
    """A session that a CLI has kept: when it was last used, in seconds since the epoch, and its first prompt.

    `first` is empty where that cannot be read, as of a compressed record. One that is `too_large` cannot be copied.
    """

    id: str
    at: float
    first: str
    too_large: bool = False


class Sessions(Struct, frozen=True):
    """A CLI's abilities with its own sessions."""

    system_each_time: bool
    """Whether it also takes the system text in every turn (Claude by a flag, opencode by a file).

    Otherwise it takes it only when a session starts.
    """
    live: bool
    """Whether one process can run several turns."""
    open: Callable[[str, Path], tuple[str, ...]]
    """The arguments that open a session of a folder for a person at a terminal."""
    stays_in: str
    """The folder where the CLI keeps its sessions."""
    starts_in: Path | None = None
    """The start folder of the CLI to open a session; None for the session's folder."""
    refused: Callable[[Mapping[str, str]], str | None] = lambda _env: None
    """Why a session is not opened in an environment; None if it is."""
    keeps_all: bool = False
    """Whether no switch of the CLI turns sessions off, so that fresh turns leave sessions, too."""
    used: Callable[[Mapping[str, str], str], Usage | None] = lambda _env, _session: None
    """The total usage of a session, from a turn's environment.

    Only for a CLI that counts over its sessions, and only if that can be known.
    """
    kept: Callable[[Mapping[str, str], Path], Iterable[KeptSession]] | None = None
    """Finds the sessions of a folder, by the CLI's environment; None: they cannot be listed, and none is adopted."""
    any_folder: str = ""
    """The first version of the CLI that continues a session in any folder; empty: only in the one where it began.

    An older version does not find the session, and the turn is repeated with a fresh one.
    """
    continues: Callable[[Mapping[str, str], Path, str], Collection[str] | None] = lambda _env, _cwd, _session: None
    """The rows of a session's record that its next turn continues, by the CLI's environment and the turn's folder.

    None: they are not known, and no turn is taken for lost.
    """


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
    """How one kind of agent CLI is run. The defaults fit any other program."""

    vendor: Vendor | None = None
    """The vendor whose keys it may see; None for a pipe agent, which keeps all keys."""
    limit: Limit | None = None
    stop = StopRule()
    first_byte_s = FIRST_BYTE_S
    """The default for the longest wait for the first output of a turn, in seconds."""
    stall_s = 300.0
    """The default for the longest silence after the first output, in seconds."""
    reports_denials = False
    hides_denials: frozenset[str] = frozenset()  # tools that call subagents whose refusals it does not report
    """Whether a turn without a reported denial had none; the ledger proves it for some versions.

    In any other version the receipt says unknown.
    """
    sessions: Sessions | None = None
    """None: it has no sessions, so every turn is a fresh one."""
    images: Images | None = None
    """None: it takes no images."""
    reads_mentions = False
    """Whether it adds the file of an `@path` that a person typed to its prompt."""
    slash: SlashRule | None = None
    """None: it has no custom commands to call."""
    skills: KnownSkills | None = None
    """None: a prompt cannot mention a skill."""
    edits: Edits | None = None
    """None: nothing limits it."""
    access_notes: Mapping[Access, str] = dict.fromkeys(
        get_args(Access), f"{NOT_ENFORCED}: teamchat cannot bound what another program does"
    )
    """A line for `teamchat team` for each access: what it allows, and what limits it."""

    def prepare(self, prompt: str, *, typed: range, exists: Callable[[str], bool]) -> Prepared:  # noqa: ARG002
        """Prepare the prompt's bytes, as the last step before stdin: the result is sent, stored, recorded and shown.

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
        """Say why the CLI would refuse this access to this user (Claude its bypass to root); None if it would not."""
        return None

    def reads_note(self, job: Job) -> str:  # noqa: ARG002
        """Say which instructions and settings the CLI reads besides its prompt, as one line for `teamchat team`.

        It names the user's MCP servers if all of them start. Servers that a member names are listed with its tools.
        """
        return "its prompt, and whatever the program reads by itself"

    def lacks(self, job: Job) -> tuple[str, ...]:  # noqa: ARG002
        """List the parts of its project that a member lacks and the plain CLI has."""
        return ()

    def unreadable(self, job: Job) -> Iterable[tuple[Path, str]]:  # noqa: ARG002
        """List the settings files that keep it from starting because they cannot be read, and why."""
        return ()

    def servers(self, cwd: Path, env: Mapping[str, str]) -> Collection[str]:  # noqa: ARG002
        """List the names of the MCP servers that the user has set up for the CLI, for that folder included."""
        return ()

    def login(self, cwd: Path, env: Mapping[str, str]) -> Login | None:  # noqa: ARG002
        """Tell whether the CLI has a login, by the environment and existing files; None if nothing is known.

        It opens no file that may hold a login.
        """
        return None
