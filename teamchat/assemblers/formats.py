"""The prompt formats: Claude Code, Codex, Gemini CLI, opencode, and bare text for any other program."""

from __future__ import annotations

from msgspec import Struct

from teamchat.assemblers.budget import fit
from teamchat.assemblers.parts import AssemblerInput, AssemblerOutput, PromptContextMessage
from teamchat.assemblers.sections import BRACKETED, PLAIN, PromptFormat, addressed_line, lay_out, render


class ContextAssembler(Struct, frozen=True):
    """Makes the prompt of one agent type, by the format of its CLI."""

    agent_type: str
    format: PromptFormat

    def get_agent_type(self) -> str:
        return self.agent_type

    def assemble(self, given: AssemblerInput) -> AssemblerOutput:
        return render(*fit(lay_out(given, self.format), given.max_bytes, given.target_bytes))


def _bulleted(message: PromptContextMessage) -> str:
    """A history line that names the speaker but not the recipient."""
    return f"- {message.from_}: {message.content}"


def _bare(message: PromptContextMessage) -> str:
    return f"{message.from_}: {message.content}"


CLAUDE = ContextAssembler(
    "claude-code",
    PromptFormat(
        line=addressed_line,
        layers=BRACKETED,
        task="[TEAM_TASK]",
        history="[CONTEXT]",
        request="[REQUEST]",
        turn="[TURN]",
        message="[MESSAGE]",
        system_apart=True,  # `--append-system-prompt` takes it
    ),
)
CODEX = ContextAssembler(
    "openai-codex",
    PromptFormat(
        line=addressed_line,
        layers=BRACKETED,
        system="[SYSTEM]",
        task="[TEAM_TASK]",
        history="[CONTEXT]",
        request="[REQUEST]",
        turn="[TURN]",
        message="[MESSAGE]",
    ),
)
GEMINI = ContextAssembler(
    "google-gemini",
    PromptFormat(
        line=_bulleted,
        layers=PLAIN,
        system="Instructions:",
        task="Team Task:",
        history="Conversation so far:",
        request="Request:",
        turn="This turn:",
        message="User message:",
    ),
)
OPENCODE = ContextAssembler("opencode", CLAUDE.format)  # a file of instructions takes the system text
PLAIN_TEXT = ContextAssembler("plain", PromptFormat(line=_bare, layers=PLAIN))
"""Any other program: the same parts, the task among them, without headings."""
