"""The one table of agent types: who assembles its prompt and who runs it.

Adding an agent type is a folder in `runners`, a row here and one in the contract tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from teamchat.assemblers.formats import CLAUDE, CODEX, GEMINI, PLAIN_TEXT
from teamchat.assemblers.parts import Assembler
from teamchat.core.agent_types import Like
from teamchat.runners.base import Runner
from teamchat.runners.claude.runner import ClaudeRunner
from teamchat.runners.codex.runner import CodexRunner
from teamchat.runners.gemini.runner import GeminiRunner
from teamchat.runners.pipe import PipeRunner
from teamchat.runners.terminal.runner import TerminalRunner


@dataclass(frozen=True, slots=True)
class AgentType:
    """How a kind of agent is spoken to and run. The runner knows its input limit, its keys and how it is stopped."""

    assembler: Assembler
    runner: Runner

    @property
    def name(self) -> str:
        """The full name of the agent type, such as `claude-code`."""
        return self.assembler.get_agent_type()


AGENT_TYPES: Mapping[Like, AgentType] = MappingProxyType(
    {
        "claude": AgentType(CLAUDE, ClaudeRunner()),
        "codex": AgentType(CODEX, CodexRunner()),
        "gemini": AgentType(GEMINI, GeminiRunner()),
        "plain": AgentType(PLAIN_TEXT, PipeRunner()),
        "terminal": AgentType(PLAIN_TEXT, TerminalRunner()),
    }
)
ASSEMBLERS: Mapping[str, Assembler] = MappingProxyType({row.name: row.assembler for row in AGENT_TYPES.values()})
