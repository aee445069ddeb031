"""The one table of agent types: who assembles its prompt and who runs it.

Adding an agent type is one file in `assemblers`, one in `runners`, one row here and one in the contract tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from teamchat.assemblers.base import Assembler
from teamchat.assemblers.claude import ClaudeContextAssembler
from teamchat.assemblers.codex import CodexContextAssembler
from teamchat.assemblers.gemini import GeminiContextAssembler
from teamchat.assemblers.plain import PlainTextAssembler
from teamchat.core.agent_types import Like
from teamchat.runners.base import Runner
from teamchat.runners.claude import ClaudeRunner
from teamchat.runners.codex import CodexRunner
from teamchat.runners.gemini import GeminiRunner
from teamchat.runners.pipe import PipeRunner
from teamchat.runners.terminal import TerminalRunner


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
        "claude": AgentType(ClaudeContextAssembler(), ClaudeRunner()),
        "codex": AgentType(CodexContextAssembler(), CodexRunner()),
        "gemini": AgentType(GeminiContextAssembler(), GeminiRunner()),
        "plain": AgentType(PlainTextAssembler(), PipeRunner()),
        "terminal": AgentType(PlainTextAssembler(), TerminalRunner()),
    }
)
ASSEMBLERS: Mapping[str, Assembler] = MappingProxyType({row.name: row.assembler for row in AGENT_TYPES.values()})
