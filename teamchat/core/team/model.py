"""The shape of `teamchat.toml`: its keys, their types, and the values that each key may have.

`build.py` checks what takes more than one key to judge. `mistakes.py` words the errors.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from teamchat.assemblers.truncation import byte_length
from teamchat.core.durations import parse_duration
from teamchat.core.messages import MAX_TEAM_TASK_BYTES
from teamchat.core.names import LONGEST_NAME, fold, valid_name
from teamchat.core.team import MOST
from teamchat.core.team.mistakes import Mistake, explain
from teamchat.runners.base import Access, Memory

if TYPE_CHECKING:
    from collections.abc import Mapping

LONGEST_HEADING = 255  # characters that every prompt repeats; a team may be called as its folder, which has no more
_MODEL = re.compile(r"[A-Za-z0-9._:/@\[\]][A-Za-z0-9._:/@\[\]-]*")


def _line(value: str) -> str:
    if not value.strip() or not value.isprintable():
        raise ValueError(f"expected one line of text, got {value!r}")
    return value


def _task(value: str) -> str:
    if (size := byte_length(value)) > MAX_TEAM_TASK_BYTES:
        raise ValueError(f"expected at most {MAX_TEAM_TASK_BYTES:,} bytes, got {size:,}")
    return value


def _heading(value: str) -> str:
    if len(value) > LONGEST_HEADING:
        raise ValueError(f"expected at most {LONGEST_HEADING} characters, got {len(value):,}")
    return _line(value)


def _value(value: str) -> str:
    # The system ends an argument, a variable and a path at a NUL.
    if "\0" in value:
        raise ValueError("expected text without NUL characters")
    return value


def _word(value: str) -> str:
    if not value:
        raise ValueError("expected text, got ''")
    return _value(value)


def _name(value: str) -> str:
    if fold(value) == "all":
        raise ValueError(f"{value!r} means everybody and cannot be a name")
    if len(value) > LONGEST_NAME:
        raise ValueError(f"expected at most {LONGEST_NAME} characters, got {len(value):,}")
    if not valid_name(value):
        raise ValueError(f"expected letters, digits, _ . and -, got {value!r}")
    return value


def _model(value: str) -> str:
    if not _MODEL.fullmatch(value):
        raise ValueError(f"expected letters, digits and ._:/@[]- not beginning with -, got {value!r}")
    return value


def _variable(value: str) -> str:
    if "=" in value:
        raise ValueError(f"expected the name of an environment variable, got {value!r}")
    return _word(value)


def _pattern(value: str) -> str:
    try:
        re.compile(value)
    except re.error as error:
        raise ValueError(f"expected a regular expression, got {value!r} ({error})") from None
    if re.fullmatch(value, ""):
        raise ValueError(f"expected a pattern that an empty line does not match, got {value!r}")
    return value


def _joined(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        return "\n".join(value)
    raise ValueError("expected a string or a list of strings")


def _seconds(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise ValueError('expected a time such as "90s", "30m" or "1h30m"')  # noqa: TRY004 (pydantic collects it)
    return parse_duration(str(value))


Line = Annotated[str, AfterValidator(_line)]
Heading = Annotated[str, AfterValidator(_heading)]


def _server(value: str) -> str:
    if not value.isprintable() or not value or "," in value or value.startswith("-"):  # as Gemini would take them
        raise ValueError(f"expected the name of an MCP server, got {value!r}")
    return value


def _program(value: list[str]) -> list[str]:
    if not value or not value[0]:
        raise ValueError('expected a program and its arguments, such as ["ollama", "run", "llama3"]')
    return value


Value = Annotated[str, AfterValidator(_value)]
Word = Annotated[str, AfterValidator(_word)]
Name = Annotated[str, AfterValidator(_name)]
Variable = Annotated[str, AfterValidator(_variable)]
Server = Annotated[str, AfterValidator(_server)]
Seconds = Annotated[float, BeforeValidator(_seconds)]


Amount = Annotated[int, Field(le=MOST)]


class Table(BaseModel):
    """A table of the file. A key that is not known is a mistake; a value is never converted from another type."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class LimitsTable(Table):
    turns: Amount = Field(default=12, ge=1)
    """AI turns per human message."""
    minutes: float = Field(default=60.0, gt=0)
    """Per human message."""
    tokens: Amount = Field(default=2_000_000, ge=1)
    """Per session."""
    cost_usd: float | None = Field(default=None, gt=0)
    """Per session; refused when a member reports no cost."""
    similarity: float = Field(default=0.9, ge=0, le=1)
    """How alike replies must be to say nothing new; 0 switches this guard off."""
    rounds: Amount = Field(default=2, ge=1)
    """How many rounds may say nothing new."""


class TeamTable(Table):
    name: Heading | None = None
    """The folder's name when not given."""
    task: Annotated[str, AfterValidator(_task)] | None = None
    """Copied into a session when that is created."""
    lead: str | None = None
    """The AI member that answers a human message which names nobody."""
    compactor: str | None = None
    """The AI member that sums the conversation up when it has grown long."""
    compact_at_tokens: Amount = Field(default=40_000, ge=1)
    """How long, estimated, of what is not summed up yet."""
    context_window: Amount = Field(default=30, ge=0)
    """Messages of history in a prompt."""
    max_bytes: Amount = Field(default=768 * 1024, ge=1)
    """Hard ceiling of prompt and system text together."""
    max_prompt_tokens: Amount = Field(default=50_000, ge=1)
    """What a prompt may cost, estimated."""
    max_message_tokens: Amount = Field(default=10_000, ge=10)
    """What one message of the history may cost, estimated; a longer one loses its middle."""
    share_context: bool = True
    """Whether members see the shared layers."""
    fence: bool = False
    """Whether what was said stands between fences in a prompt."""
    redact: bool = True
    """Whether secrets are taken out of what crosses from one vendor to another."""
    limits: LimitsTable = LimitsTable()
    """The guards."""


class MemberTable(Table):
    name: Name
    """Unique when folded."""
    type: Literal["ai", "human"] = "ai"
    """A human has a name and a title, nothing else."""
    title: Heading | None = None
    """Shown to teammates; markers may use it."""
    agent: str | None = None
    """A built-in agent or a name under `[agents]`."""
    model: Annotated[str, AfterValidator(_model)] | None = None
    """Handed to the CLI, which gives it a meaning."""
    system_instruction: Annotated[str, BeforeValidator(_joined)] | None = None
    """Text, or lines of text."""
    instruction_file: Word | None = None
    """Relative to the team file."""
    access: Access = "read"
    """What the agent may do to files and commands."""
    allow: list[Line] = []
    """Commands that `edit` may also run."""
    cwd: Word = "."
    """Relative to the team file."""
    timeout: Seconds = 1800.0
    """Of a whole turn."""
    stall: Seconds | None = None
    """Without an event while no tool call is open; the runner knows its CLI's default."""
    first_byte: Seconds = 60.0
    """Until anything is heard of the CLI."""
    args: list[Value] = []
    """Extra arguments for the CLI."""
    env: dict[Variable, Value] = {}
    """Added to the inherited environment."""
    env_keep: list[Variable] = []
    """Other vendors' keys that this agent may see."""
    project_settings: bool = False
    """Lets the CLI run the project's own hooks and MCP commands."""
    web: bool = False
    """The CLI's own web search and fetch; without it only `full` has them."""
    mcp: list[Server] | None = None
    """The MCP servers of the user's own configuration that start, and whose tools may be called."""
    git: bool = False
    """teamchat's own read-only git."""
    memory: Memory | None = None
    """Whether its turns go on with the CLI's own session; `resume` by default where it may edit, else `fresh`."""
    retries: int = Field(default=0, ge=0, le=10)
    """Further tries after what the CLI reports as rate limit, overload or network."""
    fallback: list[Name] = []
    """Members that answer in its place, in order, on quota, rate limit, missing login or missing CLI."""
    knowledge: list[Word] = []
    """Files and folders that it is told of besides the team's."""


class KnowledgeTable(Table):
    paths: list[Word] = []
    """Files and folders that every member is told of, relative to the team file."""
    max_tokens: Amount = Field(default=4000, ge=100)
    """Of a prompt, estimated; what is more is searched for what fits."""


class ExperienceTable(Table):
    enabled: bool = True
    """Whether members are told what `teamchat learn` has stored."""
    max_tokens: Amount = Field(default=500, ge=50)
    """Of a prompt, estimated."""


class AgentTable(Table):
    command: Annotated[list[Value], AfterValidator(_program)]
    """Reads the prompt on stdin and answers on stdout."""
    like: Literal["plain", "claude", "codex", "gemini"] | None = None
    """Whose prompt format and events it has; a built-in agent's own, else plain."""
    transport: Literal["pipe", "pty"] = "pipe"
    """How it is talked to: "pty" is for a program that has nothing but a terminal."""
    prompt_pattern: Annotated[str, AfterValidator(_pattern)] | None = None
    """With "pty": the whole line in which its prompt stands."""
    submit: Word | None = None
    """With "pty": the key that ends what is typed, Enter if not given."""
    exit: Word | None = None
    """With "pty": what is typed to end the program, the end of file if not given."""


class TeamFile(Table):
    team: TeamTable = TeamTable()
    members: list[MemberTable] = Field(min_length=1)
    knowledge: KnowledgeTable = KnowledgeTable()
    experience: ExperienceTable = ExperienceTable()
    agents: dict[Line, AgentTable] = {}


_KEYS: Mapping[str, tuple[str, ...]] = {
    where: tuple(table.model_fields)
    for where, table in (
        ("", TeamFile),
        ("team", TeamTable),
        ("team.limits", LimitsTable),
        ("members", MemberTable),
        ("knowledge", KnowledgeTable),
        ("experience", ExperienceTable),
        ("agents", AgentTable),
    )
}


def parse(raw: Mapping[str, object]) -> TeamFile:
    """The team file's content, checked key by key. Raises `Mistake` for the first key that is wrong."""
    try:
        return TeamFile.model_validate(raw)
    except ValidationError as error:
        found = error.errors(include_url=False)[0]
        raise Mistake(explain(found, raw, _KEYS)) from None
