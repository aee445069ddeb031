"""The prompt of any other program: the same parts, the task among them, as bare text without headings."""

from __future__ import annotations

from teamchat.assemblers.base import AssemblerInput, AssemblerOutput, PromptContextMessage
from teamchat.assemblers.sections import PLAIN, PromptFormat, lay_out, render
from teamchat.assemblers.trimmer import fit


def _line(message: PromptContextMessage) -> str:
    return f"{message.from_}: {message.content}"


_FORMAT = PromptFormat(line=_line, layers=PLAIN)


class PlainTextAssembler:
    def get_agent_type(self) -> str:
        return "plain"

    def assemble(self, given: AssemblerInput) -> AssemblerOutput:
        return render(*fit(lay_out(given, _FORMAT), given.max_bytes, given.target_bytes))
