"""Gemini CLI's prompt: headings in plain words. A history line names the speaker, and not whom it is for."""

from __future__ import annotations

from teamchat.assemblers.base import AssemblerInput, AssemblerOutput, PromptContextMessage
from teamchat.assemblers.sections import PLAIN, PromptFormat, lay_out, render
from teamchat.assemblers.trimmer import fit


def _line(message: PromptContextMessage) -> str:
    return f"- {message.from_}: {message.content}"


_FORMAT = PromptFormat(
    line=_line,
    layers=PLAIN,
    system="Instructions:",
    task="Team Task:",
    history="Conversation so far:",
    request="Request:",
    turn="This turn:",
    message="User message:",
)


class GeminiContextAssembler:
    def get_agent_type(self) -> str:
        return "google-gemini"

    def assemble(self, given: AssemblerInput) -> AssemblerOutput:
        return render(*fit(lay_out(given, _FORMAT), given.max_bytes, given.target_bytes))
