"""The prompt formats: Claude Code, Codex, Gemini CLI, opencode, and bare text for any other program."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from teamchat.assemblers.budget import fit
from teamchat.assemblers.parts import AssemblerInput, AssemblerOutput
from teamchat.assemblers.sections import BRACKETED, PLAIN, PromptFormat, addressed, lay_out, render


class ContextAssembler(Struct, frozen=True):
    """Makes the prompt of one agent type, by the format of its CLI."""

    agent_type: str
    format: PromptFormat

    def get_agent_type(self) -> str:
        return self.agent_type

    def assemble(self, given: AssemblerInput) -> AssemblerOutput:
        return render(*fit(lay_out(given, self.format), given.max_bytes, given.target_bytes))


def _bulleted(name: str, _to: str | None) -> str:
    return f"- {name}: "


def _bare(name: str, _to: str | None) -> str:
    return f"{name}: "


CLAUDE = ContextAssembler(
    "claude-code",
    PromptFormat(
        speaker=addressed,
        layers=BRACKETED,
        task="[TEAM_TASK]",
        history="[CONTEXT]",
        request="[REQUEST]",
        turn="[TURN]",
        message="[MESSAGE]",
        system_apart=True,  # `--append-system-prompt` takes it
    ),
)
CODEX = ContextAssembler("openai-codex", replace(CLAUDE.format, system="[SYSTEM]", system_apart=False))
GEMINI = ContextAssembler(
    "google-gemini",
    PromptFormat(
        speaker=_bulleted,
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
PLAIN_TEXT = ContextAssembler("plain", PromptFormat(speaker=_bare, layers=PLAIN))
"""Any other program: the same parts, the task among them, without headings."""
