"""The team as the rest of the program sees it: its members, their agents, and the limits of a conversation.

It is plain data, checked when the team file was read (`find.py`). A command that reads no file needs no parser.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterable, Mapping
from itertools import chain, count
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from msgspec import Struct, field

from teamchat.assemblers.parts import MAX_BYTES
from teamchat.assemblers.truncation import BYTES_PER_TOKEN
from teamchat.core.agents import CLIS, AgentType, ProtocolName, agent_type, normalize_agent_type
from teamchat.core.errors import UnknownName
from teamchat.core.messages import well_formed
from teamchat.core.routing.names import fold, valid_name
from teamchat.core.text.commands import quote
from teamchat.runners.agent_row import AgentRow
from teamchat.runners.base import NOT_PROVEN, Access, Memory, Terminal
from teamchat.runners.longest import LONGEST_REPLY

if TYPE_CHECKING:
    from teamchat.core.check import Check
    from teamchat.core.engine.workflow import NamedProcess

Workspace = Literal["shared", "worktree"]


class AgentSpec(Struct, frozen=True):
    """A program that speaks for members. `protocol` names its prompt format and its events (`like` in the team file).

    `local` marks a program that the team file names relative to its own folder; `command` then begins with its absolute
    path. `terminal` is set for the protocol of that name, and only for it. `row` is what is known of a plain program.
    """

    name: str
    command: tuple[str, ...]
    protocol: ProtocolName = "plain"
    terminal: Terminal | None = None
    local: bool = False
    row: AgentRow | None = None

    @property
    def type(self) -> AgentType:
        """The agent's row of the table, which says how it is prompted and run."""
        return agent_type(self.protocol, self.row)

    def access_note(self, access: Access) -> str:
        """Say what that access allows a member, and what limits it."""
        note = self.type.runner.access_notes[access]
        if access == "full" or not (vendor := self.unproven):
            return note
        return f"{note}, if {Path(self.command[0]).name} obeys what {vendor} does: {NOT_PROVEN}"

    @property
    def unproven(self) -> str | None:
        """The CLI whose bounds it is taken to obey, if it is another program than that CLI; else None."""
        vendor = self.type.runner.vendor
        return vendor if vendor and (self.local or Path(self.command[0]).name != vendor) else None


BUILTIN_AGENTS: Mapping[str, AgentSpec] = MappingProxyType(
    {row.full_name: AgentSpec(row.name, (row.name,), row.name) for row in CLIS}
)
"""The agents that a team file may use without an `[agents]` table, by their full names."""

TOKENS = 2_000_000  # tokens after which a session pauses; the team file may change it
KEPT_TOKENS = 20_000  # tokens of people's newest messages, quoted verbatim beside a summary
MOST = 10**12
"""The largest number in a team file. The machine's own integers end somewhere above."""

INSTALL: Mapping[str, str] = MappingProxyType({row.name: row.row.install_command for row in CLIS})
"""How each built-in agent's program is installed."""


class Limits(Struct, frozen=True):
    """The guards: `turns` and `minutes` are per human message, `tokens` and `cost_usd` per session; None is no limit.

    Replies at least as alike as `similarity` (0 to 1; 0 is off) say nothing new. After `rounds` of them the
    conversation pauses. `cost_usd` is None unless the team file sets it: not every CLI reports its cost. `depth` is how
    deep conversations may be inside the turns of agents that run teamchat. `reply` is how many bytes a reply may have.
    """

    turns: int = 12
    minutes: float = 60.0
    tokens: int | None = TOKENS
    cost_usd: float | None = None
    similarity: float = 0.9
    rounds: int = 2
    depth: int = 1
    reply: int = LONGEST_REPLY


class Member(Struct, frozen=True):
    """A member. `cwd` is absolute. `agent` is the name as written, None for a human, who has only a name and a title.

    Times are seconds; `stall_s` and `first_byte_s` None are the runner's own defaults. With `mcp` None the access
    decides which of the user's MCP servers start. `fallback` are the members that answer instead, in order, if it has
    no quota, no login or no program. `knowledge` are files and folders by their names in the team file, including the
    team's own.
    `host` names the hosts that may run its turns (none: this machine), `host_wait_s` is how long one of them is waited
    for (None: `Clock`), and with `rerun` a turn runs again whose host has gone.
    With `workspace` None it is "shared", but in a group of members that may write in the same folder each has a
    worktree.
    """

    name: str
    type: Literal["ai", "human"]
    cwd: Path
    title: str | None = None
    agent: str | None = None
    model: str | None = None
    system_instruction: str | None = None
    instruction_file: Path | None = None
    instruction_file_text: str | None = None
    access: Access = "read"
    allow: tuple[str, ...] = ()
    timeout_s: float = 1800.0
    stall_s: float | None = None
    first_byte_s: float | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    env_keep: tuple[str, ...] = ()
    project_settings: bool = False
    web: bool = False
    mcp: tuple[str, ...] | None = None
    git: bool = False
    memory: Memory = "fresh"
    retries: int = 0
    fallback: tuple[str, ...] = ()
    knowledge: Mapping[str, Path] = field(default_factory=dict)
    workspace: Workspace | None = None
    host: tuple[str, ...] = ()
    host_wait_s: float | None = None
    rerun: bool = False

    @property
    def hosts(self) -> str:
        """The hosts for its turns, in words; empty for this machine."""
        return "any host" if self.host == ("any",) else " or ".join(self.host)

    @property
    def has_folder(self) -> bool:
        """Whether its `cwd` is a folder. False for a path that cannot be examined."""
        return os.path.isdir(self.cwd)  # noqa: PTH112 (pathlib raises errors)


class Team(Struct, frozen=True):
    """The members, their agents, and the limits."""

    name: str
    members: tuple[Member, ...]
    root: Path
    """The folder that the members' `cwd` is relative to."""
    path: Path | None = None
    """The team file; None if the installed CLIs are the team."""
    task: str | None = None
    lead: str | None = None
    compactor: str | None = None
    """Summarises the conversation once the part without a summary has `due_tokens` (`core/conversation/summary.py`)."""
    compact_at_tokens: int = 40_000
    context_window: int = 30  # messages; what a `ContextManager` without a team shows is smaller
    max_bytes: int = MAX_BYTES
    max_prompt_tokens: int = 50_000
    max_message_tokens: int = 10_000
    share_context: bool = True
    fence: bool = False
    """Whether prompts put messages between fences (`core/context/history.py`)."""
    redact: bool = True
    """Whether secrets are removed from what goes from one vendor to another (`core/context/history.py`)."""
    keep_checkpoints_s: float = 30 * 86_400.0
    """The age in seconds at which checkpoints of files are removed."""
    knowledge_tokens: int = 4000
    """The maximum size of this layer; 0 switches it off."""
    experience_tokens: int = 500
    """The maximum size of this layer; 0 switches it off."""
    limits: Limits = field(default_factory=Limits)
    agents: Mapping[str, AgentSpec] = field(default_factory=lambda: BUILTIN_AGENTS)
    """The built-in agents and the file's own, by normalised name."""
    option: str | None = None
    """The value of `--team` that selects this team again; None if no option is needed."""
    digest: str | None = None
    """The sha256 of the file's text."""
    processes: Mapping[str, NamedProcess] = field(default_factory=dict)
    """The file's own, by name."""
    hooks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The commands that the command line runs at events, by the names of the events."""
    checks: Mapping[str, Check] = field(default_factory=dict)
    """The file's own, by name."""
    as_written: Team | None = None
    """The file's team, if a person has typed hosts for a run: that one needs the trust."""

    @property
    def ai_members(self) -> tuple[Member, ...]:
        return tuple(member for member in self.members if member.type == "ai")

    @property
    def humans(self) -> tuple[Member, ...]:
        return tuple(member for member in self.members if member.type == "human")

    @property
    def prompt_bytes(self) -> int:
        """The maximum size of a prompt, by its two limits."""
        return min(self.max_bytes, self.max_prompt_tokens * BYTES_PER_TOKEN)

    @property
    def message_bytes(self) -> int:
        """The maximum size of an old message or a summary in a prompt: half of it at most, so that others fit."""
        return min(self.max_message_tokens * BYTES_PER_TOKEN, self.prompt_bytes // 2)

    @property
    def due_tokens(self) -> int:
        """The maximum size of history without a summary. It is summarised before prompts have to leave anything out."""
        return min(self.compact_at_tokens, self.prompt_bytes // BYTES_PER_TOKEN * 4 // 5)

    @property
    def kept_tokens(self) -> int:
        """The size of people's newest messages quoted with a summary. A small prompt keeps room for the rest."""
        return min(KEPT_TOKENS, self.prompt_bytes // BYTES_PER_TOKEN * 2 // 5)

    @property
    def typed(self) -> str:
        """The option that selects this team in a command: empty, or ` --team X`."""
        return "" if self.option is None else f" --team {quote(self.option)}"

    def member(self, name: str) -> Member:
        """Return the member with that name. Case, spaces, `-` and `_` are ignored. Raises `UnknownName`."""
        for member in self.members:
            if fold(member.name) == fold(name):
                return member
        there = ", ".join(member.name for member in self.members)
        raise UnknownName(f"no member {name!r} in team {self.name!r} (there are: {there})", "teamchat team")

    def agent_of(self, member: Member) -> AgentSpec:
        """Return the agent of an AI member. Raises `ValueError` for a human."""
        if member.agent is None:
            raise ValueError(f"{member.name!r} is a human: no agent runs it")
        return self.agents[normalize_agent_type(member.agent)]


def default_human(login: str, members: Iterable[Member], root: Path) -> Member:
    """Build the person at the keyboard, for a team that names no human, with the login name and no title.

    The name is "you" (then "you-2", ...) if the login name is not a valid name, or is already a member's name or title.
    """
    taken = {fold(word) for member in members for word in (member.name, member.title) if word}
    names = chain((login, "you"), (f"you-{n}" for n in count(2)))
    return Member(next(name for name in names if valid_name(name) and fold(name) not in taken), "human", root)


def folder_name(folder: Path) -> str:
    """Name a team by its folder, in characters that can be stored and sent."""
    return well_formed(folder.name) or "team"


def login_name() -> str:
    """Return the user's login name, or "you" on a machine without one for this user (a container, say)."""
    for variable in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        if name := os.environ.get(variable):
            return name
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return "you"
