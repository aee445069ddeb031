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
    """How a kind of agent is called, addressed and run. The runner knows its input limit and how it is stopped."""

    name: str
    """The short name. A team file writes `name` or `full_name`.

    For the CLI of a vendor it is also its program, its `Runner.vendor` and its folder in `runners`.
    """
    assembler: Assembler
    load: Callable[[], Runner]
    """Imports the runner lazily."""
    row: AgentRow = ANY
    """The facts about its program that a program without code of its own has.

    They are its npm package, the version whose behaviour the runner knows, and the files of a project that make it run
    something (`*` for any name).
    """
    keys: frozenset[str] = frozenset()
    """The variables with the vendor's keys."""
    homes: frozenset[str] = frozenset()
    """The variables that name where the CLI keeps the user's files."""
    help: tuple[str, ...] = ("--help",)
    """The arguments that print the options of its turns."""
    reports_cost: bool = False
    """Whether its turns report their cost."""
    reports_tools: bool = True
    """Whether its turns report the tools they used."""
    allow: Literal["bounded", "needless", "refused"] = "bounded"
    """How it treats the commands that a member may run.

    "bounded": it bounds them. "needless": it needs none named. "refused": it cannot bound them, so a team file may name
    none.
    """

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
        allow="refused",  # to it, `declare -i n='a[$(touch X)]'` is not a command at all
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
    """Find the agent type of a protocol; with a `row` build that of the plain program which the row describes."""
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
    """Return the full name of a known agent type, in any case of letters; any other name unchanged."""
    return _FULL_NAMES.get(name.lower(), name)


def foreign_keys(vendor: Vendor | None) -> frozenset[str]:
    """List the keys of the other vendors, which are kept from an agent of this one; none for a pipe agent (None)."""
    if vendor is None:
        return frozenset()
    return frozenset().union(*(row.keys for row in CLIS)) - AGENT_TYPES[vendor].keys
