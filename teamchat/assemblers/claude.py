"""Claude Code's prompt: bracketed sections. The system text is apart: `--append-system-prompt` takes it."""

from __future__ import annotations

from teamchat.assemblers.base import AssemblerInput, AssemblerOutput
from teamchat.assemblers.sections import BRACKETED, PromptFormat, addressed_line, lay_out, render
from teamchat.assemblers.trimmer import fit

_FORMAT = PromptFormat(
    line=addressed_line,
    layers=BRACKETED,
    task="[TEAM_TASK]",
    history="[CONTEXT]",
    request="[REQUEST]",
    turn="[TURN]",
    message="[MESSAGE]",
    system_apart=True,
)


class ClaudeContextAssembler:
    def get_agent_type(self) -> str:
        return "claude-code"

    def assemble(self, given: AssemblerInput) -> AssemblerOutput:
        return render(*fit(lay_out(given, _FORMAT), given.max_bytes, given.target_bytes))
