"""Codex's prompt: bracketed sections. The system text is the first of them."""

from __future__ import annotations

from teamchat.assemblers.base import AssemblerInput, AssemblerOutput
from teamchat.assemblers.sections import BRACKETED, PromptFormat, addressed_line, lay_out, render
from teamchat.assemblers.trimmer import fit

_FORMAT = PromptFormat(
    line=addressed_line,
    layers=BRACKETED,
    system="[SYSTEM]",
    task="[TEAM_TASK]",
    history="[CONTEXT]",
    request="[REQUEST]",
    turn="[TURN]",
    message="[MESSAGE]",
)


class CodexContextAssembler:
    def get_agent_type(self) -> str:
        return "openai-codex"

    def assemble(self, given: AssemblerInput) -> AssemblerOutput:
        return render(*fit(lay_out(given, _FORMAT), given.max_bytes, given.target_bytes))
