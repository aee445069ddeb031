"""The shape of `teamchat.toml`: its keys, their types, and the values that each key may have.

The docstring below a key is its description in docs/team-file.md and in editors (`make pages`).

`build.py` checks what takes more than one key to judge. `problems.py` words the errors.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Self, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from teamchat.assemblers.truncation import byte_length
from teamchat.core.agents import AGENT_TYPES
from teamchat.core.check import CHECK_TIMEOUT_S, MOST_TRIES, PROTECTED_SETS
from teamchat.core.engine.processes.table import TAKES
from teamchat.core.engine.workflow import MOST_ROUNDS
from teamchat.core.messages import MAX_TEAM_TASK_BYTES
from teamchat.core.routing.names import LONGEST_NAME, fold, valid_name
from teamchat.core.team.problems import TeamFileProblem, first_problem
from teamchat.core.team.team import MOST, TOKENS, Limits, Member, Team, Workspace
from teamchat.core.text.durations import parse_duration
from teamchat.patterns import regex
from teamchat.runners.agent_row import Mentions, Reply
from teamchat.runners.base import Access, Memory
from teamchat.runners.child.running import MAX_OUTPUT_BYTES
from teamchat.runners.environment import is_teamchats_own
from teamchat.runners.untrusted.json import is_path

if TYPE_CHECKING:
    from collections.abc import Mapping

LONGEST_HEADING = 255  # characters that every prompt repeats; a folder's name, which may name the team, has no more
_MODEL = regex(r"[A-Za-z0-9._:/@\[\]][A-Za-z0-9._:/@\[\]-]*")


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
    if is_teamchats_own(value):
        raise ValueError(f"no agent and no check gets {value}, which is for teamchat alone; remove it")
    return _word(value)


def _pattern(value: str) -> str:
    try:
        re.compile(value)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"expected a regular expression, got {value!r} ({error})") from None
    if re.fullmatch(value, ""):
        raise ValueError(f"expected a pattern that an empty line does not match, got {value!r}")
    return value


def _protected(value: str) -> str:
    if not value.strip() or len(value.splitlines()) > 1 or value.startswith("#"):
        raise ValueError(f"expected a pattern as in a .gitignore, or one of {', '.join(PROTECTED_SETS)}, got {value!r}")
    return value


def _json_path(value: str) -> str:
    if not is_path(value):
        raise ValueError(f"expected a path such as result.text or messages.-1.content, got {value!r}")
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
    if not value.isprintable() or not value or "," in value or value.startswith("-"):  # Gemini would misread them
        raise ValueError(f"expected the name of an MCP server, got {value!r}")
    return value


def _hosts(value: object) -> object:
    names = [value] if isinstance(value, str) else value
    if isinstance(names, list) and names and all(isinstance(name, str) and valid_name(name) for name in names):
        return names
    raise ValueError('expected the name of a host, a list of names, or "any"')


def _program(value: list[str]) -> list[str]:
    if not value or not value[0]:
        raise ValueError('expected a program and its arguments, such as ["ollama", "run", "llama3"]')
    return _few_words(value)


MOST_WORDS = 1_000  # of a command: which files its words name is looked for


def _few_words(value: list[str]) -> list[str]:
    words = sum(len(word.split()) for word in value)
    if words > MOST_WORDS:
        raise ValueError(f"has {words:,} words, over {MOST_WORDS:,}; put them into a script")
    return value


def _command(value: object) -> object:
    """A text for a shell, or a program and its arguments."""
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list) or not words or not all(isinstance(word, str) and word.strip() for word in words):
        raise ValueError('expected a command such as "make test", or a list such as ["make", "test"]')
    for word in words:
        _value(word)
    _few_words(words)
    return value


Value = Annotated[str, AfterValidator(_value)]
Word = Annotated[str, AfterValidator(_word)]
Name = Annotated[str, AfterValidator(_name)]
Variable = Annotated[str, AfterValidator(_variable)]
Server = Annotated[str, AfterValidator(_server)]
Seconds = Annotated[float, BeforeValidator(_seconds, json_schema_input_type=str | float)]


Amount = Annotated[int, Field(le=MOST)]

if TYPE_CHECKING:
    PipeProtocol: TypeAlias = str
    ProcessKind: TypeAlias = str
else:
    PipeProtocol = Literal[tuple(name for name in AGENT_TYPES if name != "terminal")]
    ProcessKind = Literal[tuple(TAKES)]


_LIMITS, _TEAM, _MEMBER = Limits(), Team("", (), Path()), Member("", "ai", Path())
"""The default of each key, except for those that depend on other keys (`build.py`)."""


class Table(BaseModel):
    """A table of the file. An unknown key is an error. No value is converted from another type."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class LimitsTable(Table):
    turns: Amount = Field(default=_LIMITS.turns, ge=1)
    """AI turns per human message."""
    minutes: float = Field(default=_LIMITS.minutes, gt=0)
    """Minutes per human message."""
    tokens: Amount = Field(default=TOKENS, ge=1)
    """Tokens per session, as the CLIs report them."""
    cost_usd: float | None = Field(default=_LIMITS.cost_usd, gt=0)
    """Dollars per session. Every member has to report its cost; these do: {cost}."""
    similarity: float = Field(default=_LIMITS.similarity, ge=0, le=1)
    """How alike two replies are that say nothing new, from 0 to 1. 0 switches this guard off."""
    rounds: Amount = Field(default=_LIMITS.rounds, ge=1)
    """How many rounds may say nothing new."""
    depth: Amount = Field(default=_LIMITS.depth, ge=0, le=5)
    """How deep conversations may be that agents run in their turns. With 1 their own agents run none, with 0 nobody."""
    reply: Amount = Field(default=_LIMITS.reply, ge=1, le=MAX_OUTPUT_BYTES)
    """Bytes of a reply. A turn with a longer one fails, and keeps the first and last 64 KiB of it."""


class TeamTable(Table):
    name: Heading | None = None
    """The team's name. Without it the folder's name is used."""
    task: Annotated[str, AfterValidator(_task)] | None = None
    """What the team works on. Every member is told. Copied into a session when the session begins. At most 5 KiB."""
    lead: str | None = None
    """The AI member that answers when your message names nobody."""
    compactor: str | None = None
    """The AI member that summarises a long conversation. Without it only `teamchat compact` does."""
    compact_at_tokens: Amount = Field(default=_TEAM.compact_at_tokens, ge=1)
    """Tokens (bytes / 4) of history without a summary at which the compactor is asked for one."""
    context_window: Amount = Field(default=_TEAM.context_window, ge=0)
    """Messages of history in a prompt."""
    max_bytes: Amount = Field(default=_TEAM.max_bytes, ge=1)
    """Bytes of a prompt with its system text, at most. A message that does not fit is refused."""
    max_prompt_tokens: Amount = Field(default=_TEAM.max_prompt_tokens, ge=1)
    """Tokens (bytes / 4) of a prompt. Above this, old history is left out."""
    max_message_tokens: Amount = Field(default=_TEAM.max_message_tokens, ge=10)
    """Tokens (bytes / 4) of one message of the history. A longer one loses its middle."""
    share_context: bool = _TEAM.share_context
    """Tell members the shared layers: lessons, knowledge, todo list and summary."""
    fence: bool = _TEAM.fence
    """Quote every message between fences, so that no text can pass for another speaker."""
    redact: bool = _TEAM.redact
    """Take well-known secrets out of what one vendor said before another vendor is told it."""
    keep_checkpoints: Seconds = _TEAM.keep_checkpoints_s
    """How long files can be restored as they were before a turn: seconds, or a time such as "30d"."""
    limits: LimitsTable = LimitsTable()
    """What pauses the conversation, and how long a reply may be."""


class MemberTable(Table):
    name: Name
    """What markers call the member. Up to 40 letters and digits of any script, `_`, `.` and `-`."""
    type: Literal["ai", "human"] = "ai"
    """`human` for a person, who has a name and a title and nothing else."""
    title: Heading | None = None
    """A role such as "Architect", shown to the others. Markers may use it as a name."""
    agent: str | None = None
    """{agents}, a name under `[agents]`, or an agent with a row: `teamchat help clis`."""
    model: Annotated[str, AfterValidator(_model)] | None = None
    """A model name for the CLI. teamchat passes it on as it is. A plain program takes none, unless its row says how."""
    system_instruction: Annotated[str, BeforeValidator(_joined, json_schema_input_type=str | list[str])] | None = None
    """Instructions for this member only. A list is joined into lines."""
    instruction_file: Word | None = None
    """A file with the instructions, relative to the team file."""
    access: Access = _MEMBER.access
    """What the member may do to files and commands."""
    allow: list[Line] = []
    """Commands that `edit` may also run, where the CLI can bound them; an error for opencode, which cannot."""
    cwd: Word = "."
    """The folder it works in, relative to the team file."""
    host: Annotated[list[Line], BeforeValidator(_hosts, json_schema_input_type=str | list[str])] = []
    """The host that runs it: its name, a list of names, or "any". Without it this machine does."""
    host_wait: Seconds | None = None
    """How long a host is waited for that is not there. Without it 60 s, and 10 s where no person looks on."""
    rerun: bool = _MEMBER.rerun
    """Run a turn again whose host has gone while it ran."""
    workspace: Workspace | None = None
    """`worktree` gives it a git worktree, `shared` your files. Without it groups have one, and writers on hosts."""
    timeout: Seconds = _MEMBER.timeout_s
    """The most a turn may take, in seconds or as "90s", "30m" or "1h30m"."""
    stall: Seconds | None = None
    """The longest silence while no tool runs. Without it the CLI's own value: {stall}, none for a plain program."""
    first_byte: Seconds | None = None
    """The longest wait for the first output. Without it {first_byte}."""
    args: Annotated[list[Value], AfterValidator(_few_words)] = []
    """Extra arguments for the CLI."""
    env: dict[Variable, Value] = {}
    """Variables that are added to the environment."""
    env_keep: list[Variable] = []
    """Other vendors' key variables that this member keeps."""
    project_settings: bool = _MEMBER.project_settings
    """Let the CLI run the project's own hooks and MCP commands."""
    web: bool = _MEMBER.web
    """The CLI's own web search and fetch. Without it only `full` has them."""
    mcp: list[Server] | None = None
    """Names of your MCP servers that start, and whose tools need no question. Without it the access decides."""
    git: bool = _MEMBER.git
    """teamchat's own read-only git: log, diff, show, blame and status."""
    memory: Memory | None = None
    """Whether a turn continues the CLI's own session. Without it `resume` with `edit` and `full`, else `fresh`."""
    retries: int = Field(default=_MEMBER.retries, ge=0, le=10)
    """How often to try again after a rate limit, an overload or a network error that the CLI reports."""
    fallback: list[Name] = []
    """Members that answer instead, in order, on quota, rate limit, overload, missing login or missing CLI."""
    knowledge: list[Word] = []
    """Files and folders for this member, besides the team's."""


class KnowledgeTable(Table):
    paths: list[Word] = []
    """Files and folders for every member, relative to the team file."""
    max_tokens: Amount = Field(default=_TEAM.knowledge_tokens, ge=100)
    """Tokens (bytes / 4) of a prompt. What does not fit whole is searched for the best pieces."""


class ExperienceTable(Table):
    enabled: bool = True
    """Tell members the lessons that `teamchat learn` stored."""
    max_tokens: Amount = Field(default=_TEAM.experience_tokens, ge=50)
    """Tokens (bytes / 4) of a prompt."""


class AgentTable(Table):
    command: Annotated[list[Value], AfterValidator(_program)]
    """The program and its arguments. It reads the prompt on stdin and answers on stdout."""
    like: PipeProtocol | None = None
    """Whose prompt format and output the program has. Without it the built-in agent's own, else `plain`."""
    transport: Literal["pipe", "pty"] = "pipe"
    """`pty` for a program that has only a terminal."""
    prompt_pattern: Annotated[str, AfterValidator(_pattern)] | None = None
    """With `pty`: a regular expression that matches the whole line of its prompt."""
    submit: Word | None = None
    """With `pty`: the key that ends what is typed. Without it Enter."""
    exit: Word | None = None
    """With `pty`: what is typed to end the program. Without it the end of file (Ctrl-D)."""
    stdin: Literal["file", "pipe"] = "file"
    """What standard input is: a regular file, or a pipe where the program refuses a file."""
    mentions: Mentions = "inert"
    """`inert`: an `@path` of others' messages gets a backslash where the path exists. Some programs read such files."""
    reply: Reply = "plain"
    """`strip` takes bullets, indents and colours of a terminal off the reply."""
    json_path: Annotated[str, AfterValidator(_json_path)] | None = Field(default=None, alias="json")
    """The output is JSON, and this is the path to the reply in it, such as `result.text` or `messages.-1.content`."""
    fail_pattern: Annotated[str, AfterValidator(_pattern)] | None = None
    """A regular expression. A reply in which it finds something is a failed turn."""


class ProcessTable(Table):
    kind: ProcessKind
    """How its members work on a task: `teamchat help processes`."""
    members: list[str] = []
    """The AI members that take part, in the order of speaking. Without it all of them."""
    rounds: int | None = Field(default=None, ge=1, le=MOST_ROUNDS)
    """How often each member of a `sequential` process speaks, or of a `debate` after its blind answer."""
    prompt: Annotated[str, BeforeValidator(_joined, json_schema_input_type=str | list[str])] | None = None
    """What every member of the process is told, besides what its kind asks. A list is joined into lines."""
    planner: str | None = None
    """Of a `mapreduce`: the member that splits the task, by default the lead. Of an `until`: who plans the work."""
    workers: list[str] = []
    """Of a `mapreduce`: the members that do the subtasks. Without it all AI members but the planner."""
    reducer: str | None = None
    """Of a `mapreduce`: the member that merges the results. Without it the lead."""
    judge: str | None = None
    """Of a `best`: the member that picks the best work. Without it the lead."""
    lead: str | None = None
    """Of a `hierarchical` process or a `debate`: another lead than the team's."""
    options: list[Line] = []
    """Of a `vote`: what the members choose from, at least two."""
    do: str | None = None
    """Of an `until`: the member that works."""
    check: list[str] = []
    """Of an `until`: what must be green. Each is the name of a check, or a shell command."""
    review: list[str] = []
    """Of an `until`: the members that review the work."""
    quorum: int | None = Field(default=None, ge=1)
    """Of an `until`: how many reviewers must pass. Of a `vote`: how many must vote. Without it all."""
    worktree: bool | None = None
    """Of an `until`: all of it is done in a worktree of its own."""
    jobs: Amount | None = Field(default=None, ge=1)
    """How many turns run at the same time, at most."""


class CheckTable(Table):
    command: Annotated[str | list[str], BeforeValidator(_command)]
    """A text for `/bin/sh -c`, or a list of a program and its arguments.

    A program of a list that has a `/` is relative to the team file.
    """
    timeout: Seconds = CHECK_TIMEOUT_S
    """The most it may take, in seconds or as "90s", "30m" or "1h30m"."""
    folder: Word = "."
    """The folder it runs in, relative to the one that the `cwd` of members is relative to."""
    env: dict[Variable, Value] = {}
    """Variables that are added to the environment."""
    env_keep: list[Variable] = []
    """Variables that a check otherwise does not get."""
    needs: list[str] = []
    """Names of checks that must be green before it runs."""
    protect: list[Annotated[Value, AfterValidator(_protected)]] = []
    """Patterns of gitignore, relative to `folder`, or the sets "pytest", "npm" and "make".

    What changes there in a turn of the member that works makes the check red.
    """
    expect: Annotated[str, AfterValidator(_pattern)] | None = None
    """A regular expression that the output of a green check must have."""
    not_fewer: bool = False
    """The numbers that `expect` finds must not add up to less than before the work began."""
    tries: int = Field(default=1, ge=1, le=MOST_TRIES)
    """A red check runs again, up to so often in all."""
    fresh: bool = False
    """A green check runs again in a new folder, without what git ignores."""

    @model_validator(mode="after")
    def _counted(self) -> Self:
        if self.not_fewer and self.expect is None:
            raise ValueError('not_fewer: expected a pattern to count by, such as expect = "([1-9][0-9]*) passed"')
        return self


Hook = Annotated[list[Value], AfterValidator(_program)]


class HooksTable(Table):
    message: Hook | None = None
    """A program and its arguments, which run when a message was stored. It gets the line of `--json` on stdin."""
    turn_started: Hook | None = None
    """The same when a turn begins."""
    turn_finished: Hook | None = None
    """The same when a turn has ended, with its receipt."""
    asked: Hook | None = None
    """The same when a run ends with a question to a person. It gets the `result`."""
    paused: Hook | None = None
    """The same when a guard has paused a run. It gets the `result`."""
    task_changed: Hook | None = None
    """The same when the task was set or removed."""


class TeamFile(Table):
    team: TeamTable = TeamTable()
    members: list[MemberTable] = Field(min_length=1)
    knowledge: KnowledgeTable = KnowledgeTable()
    experience: ExperienceTable = ExperienceTable()
    agents: dict[Line, AgentTable] = {}
    processes: dict[Name, ProcessTable] = {}
    checks: dict[Name, CheckTable] = {}
    hooks: HooksTable = HooksTable()


_KEYS: Mapping[str, tuple[str, ...]] = {
    where: tuple(field.alias or name for name, field in table.model_fields.items())
    for where, table in (
        ("", TeamFile),
        ("team", TeamTable),
        ("team.limits", LimitsTable),
        ("members", MemberTable),
        ("knowledge", KnowledgeTable),
        ("experience", ExperienceTable),
        ("agents", AgentTable),
        ("processes", ProcessTable),
        ("checks", CheckTable),
        ("hooks", HooksTable),
    )
}


def parse(raw: Mapping[str, object]) -> TeamFile:
    """The team file's content, checked key by key. Raises `TeamFileProblem` for the first key that is wrong."""
    try:
        return TeamFile.model_validate(raw)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        raise TeamFileProblem(first_problem(problem, raw, _KEYS)) from None
