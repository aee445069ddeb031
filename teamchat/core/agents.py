"""The one table of agent types.

Adding an agent type is a folder in `runners` and a row here: names, keys, install hints, the values of `like` and the
lists of `doctor` follow from the row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

from teamchat.assemblers.formats import CLAUDE, CODEX, GEMINI, OPENCODE, PLAIN_TEXT
from teamchat.assemblers.parts import Assembler
from teamchat.runners.agent_row import ANY, AgentRow
from teamchat.runners.base import Runner, Vendor


def _claude() -> Runner:
    from teamchat.runners.claude.runner import ClaudeRunner

    return ClaudeRunner()


def _codex() -> Runner:
    from teamchat.runners.codex.runner import CodexRunner

    return CodexRunner()


def _gemini() -> Runner:
    from teamchat.runners.gemini.runner import GeminiRunner

    return GeminiRunner()


def _opencode() -> Runner:
    from teamchat.runners.opencode.runner import OpencodeRunner

    return OpencodeRunner()


def _pipe() -> Runner:
    from teamchat.runners.pipe import PipeRunner

    return PipeRunner()


def _terminal() -> Runner:
    from teamchat.runners.terminal.runner import TerminalRunner

    return TerminalRunner()


class AgentType(Struct, frozen=True):
    """How a kind of agent is called, spoken to and run. The runner knows its input limit and how it is stopped.

    A team file writes `name` or `full_name`. For the CLI of a vendor `name` is also its program, its `Runner.vendor`
    and its folder in `runners`.

    `load` imports the runner lazily. `row` has what is known of its program as of one that needs no code: its npm
    package, the version whose behaviour the runner knows, the files of a project that make it run something (`*` for
    any name). `keys` are the variables with the vendor's keys, `homes` those that name where the CLI keeps the user's
    files. `help` are the arguments that print the options of its turns. `reports_cost`: its turns say what they cost,
    `reports_tools`: which tools they used. `allow` says what it makes of the commands that a member may run: it bounds
    them, it needs none named, or it cannot bound them, so that a team file may name none.
    """

    name: str
    assembler: Assembler
    load: Callable[[], Runner]
    row: AgentRow = ANY
    keys: frozenset[str] = frozenset()
    homes: frozenset[str] = frozenset()
    help: tuple[str, ...] = ("--help",)
    reports_cost: bool = False
    reports_tools: bool = True
    allow: Literal["bounded", "needless", "refused"] = "bounded"

    @property
    def full_name(self) -> str:
        """The full name of the agent type, such as `claude-code`."""
        return self.assembler.get_agent_type()

    @property
    def runner(self) -> Runner:
        """The one runner of this type."""
        return _loaded(self.load)

    @property
    def package(self) -> str | None:
        """The npm package of its program, if it has one."""
        return self.row.package or None


@cache
def _loaded(load: Callable[[], Runner]) -> Runner:
    return load()


_ROWS = (
    AgentType("plain", PLAIN_TEXT, _pipe, reports_tools=False),
    AgentType(
        "claude",
        CLAUDE,
        _claude,
        AgentRow(
            command=("claude",),
            package="@anthropic-ai/claude-code",
            proven=("2.1.332",),
            files_that_run=(
                *(".claude/settings.json", ".claude/settings.local.json", ".claude/scheduled_tasks.json", ".mcp.json"),
                *(".claude/agents/*", ".claude/commands/*", ".claude/hooks/*", ".claude/skills/*/*"),
            ),
        ),
        keys=frozenset({"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"}),
        homes=frozenset({"CLAUDE_CONFIG_DIR"}),
        reports_cost=True,
    ),
    AgentType(
        "codex",
        CODEX,
        _codex,
        AgentRow(
            command=("codex",),
            package="@openai/codex",
            proven=("0.171.0",),
            files_that_run=(
                *(".codex/config.toml", ".codex/hooks.json", ".codex/prompts/*", ".codex/rules/*"),
                ".agents/skills/*/*",
            ),
        ),
        keys=frozenset({"OPENAI_API_KEY", "CODEX_API_KEY"}),
        homes=frozenset({"CODEX_HOME"}),
        help=("exec", "--help"),
        allow="needless",  # it runs any command, in its sandbox
    ),
    AgentType(
        "gemini",
        GEMINI,
        _gemini,
        AgentRow(
            command=("gemini",),
            package="@google/gemini-cli",
            proven=("0.61.0",),
            files_that_run=(
                *(".gemini/settings.json", ".gemini/.env", ".gemini/commands/*", ".gemini/policies/*"),
                ".gemini/extensions/*/*",
            ),
        ),
        keys=frozenset({"GEMINI_API_KEY", "GOOGLE_API_KEY"}),
        homes=frozenset({"GEMINI_CLI_HOME"}),
    ),
    AgentType(
        "opencode",
        OPENCODE,
        _opencode,
        AgentRow(
            command=("opencode",),
            package="opencode-ai",
            proven=("1.18.33",),
            files_that_run=(
                *("opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc"),
                *(f".opencode/{name}/*" for name in ("agent", "agents", "command", "commands", "mode", "modes")),
                *(f".opencode/{name}/*" for name in ("plugin", "plugins", "tool", "tools")),
            ),
        ),
        keys=frozenset({"OPENCODE_API_KEY", "OPENCODE_AUTH_CONTENT"}),
        help=("run", "--help"),
        allow="refused",  # it takes `declare -i n='a[$(touch X)]'` for no command at all
    ),
    AgentType("terminal", PLAIN_TEXT, _terminal, reports_tools=False),
)
AGENT_TYPES: Mapping[str, AgentType] = MappingProxyType({row.name: row for row in _ROWS})
ROWS = Path(__file__).parents[1] / "agents"
"""The folder of teamchat's own rows: `core/team/agent_rows.py` reads them."""
CLIS = tuple(row for row in _ROWS if row.package)
"""The CLIs of vendors, which a team file may use without an `[agents]` table."""
HOMES: frozenset[str] = frozenset().union(*(row.homes for row in CLIS))
_VENDORS = frozenset(row.name for row in CLIS)
_FULL_NAMES = {word: row.full_name for row in CLIS for word in (row.name, row.full_name)}

if TYPE_CHECKING:
    ProtocolName: TypeAlias = str
else:
    ProtocolName = Literal[tuple(AGENT_TYPES)]
"""The name of a row: the protocol that a program speaks. A team file, a stored turn and a cassette call it `like`."""


def agent_type(protocol: ProtocolName, row: AgentRow | None = None) -> AgentType:
    """The agent type of a protocol; with a `row` that of a plain program which the row describes."""
    if row is None:
        return AGENT_TYPES[protocol]

    def load() -> Runner:
        from teamchat.runners.pipe import PipeRunner

        return PipeRunner(row, AGENT_TYPES[row.stream].runner.parser if row.stream in _VENDORS else None)

    return AgentType(
        "plain",
        PLAIN_TEXT,
        load,
        row=row,
        reports_tools=row.stream in _VENDORS,
        allow="refused" if row.access else "bounded",
    )


def normalize_agent_type(name: str) -> str:
    """The full name of a known agent type, whatever its case; any other name as it was written."""
    return _FULL_NAMES.get(name.lower(), name)


def foreign_keys(vendor: Vendor | None) -> frozenset[str]:
    """The keys of the other vendors, which an agent of this one is not given; None is a pipe agent: it loses none."""
    if vendor is None:
        return frozenset()
    return frozenset().union(*(row.keys for row in CLIS)) - AGENT_TYPES[vendor].keys
