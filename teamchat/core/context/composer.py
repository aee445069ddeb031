"""Composes the parts of a prompt. It is a pure function: the same parts always make the same prompt.

Every text of a prompt comes through here. The user's input is the current message and nothing else, so that it reaches
a prompt exactly once. The assemblers bring the parts into each CLI's format.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from teamchat.assemblers.parts import LAYERS, AssemblerInput, PromptContextMessage
from teamchat.assemblers.truncation import TruncationPolicy
from teamchat.core.context.quoting import fence_quotes
from teamchat.core.messages import well_formed
from teamchat.core.team.wording import TODAY, Wording


class ContextComposer(Struct, frozen=True):
    """`max_bytes` is the hard ceiling, `target_bytes` what a prompt may cost, `per_message` for each of the history.

    With a `fence_key`, a secret of the conversation, a prompt that answers a message has a fence around what somebody
    said.
    """

    max_bytes: int
    target_bytes: int | None = None
    per_message: TruncationPolicy | None = None
    fence_key: str | None = None
    wording: Wording = TODAY

    def compose(
        self,
        *,
        system_instruction: str | None,
        instruction_file_text: str | None = None,
        task: str | None = None,
        contexts: Mapping[str, str] | None = None,
        history: Sequence[PromptContextMessage] = (),
        message: str,
        newest: str | None = None,
        turn_note: str | None = None,
        request: str | None = None,
    ) -> AssemblerInput:
        """The parts, with the layers in the order of `LAYERS`. Raises `ValueError` for an unknown layer.

        `newest` is the id of the newest message in the prompt, None when there is none. The code of the fence depends
        on it, and closes the turn note.
        """
        contexts = contexts or {}
        unknown = sorted(set(contexts) - set(LAYERS))
        if unknown:
            raise ValueError(f"no layer is called {unknown[0]!r}")
        given = AssemblerInput(
            context_messages=tuple(history),
            current_message=message,
            team_task=task,
            system_instruction=_well_formed(system_instruction),
            instruction_file_text=_well_formed(instruction_file_text),
            max_bytes=self.max_bytes,
            target_bytes=self.target_bytes,
            per_message=self.per_message,
            contexts={name: well_formed(contexts[name]) for name in LAYERS if name in contexts},
            turn_note=_well_formed(turn_note),
            request=_well_formed(request),
        )
        if self.fence_key is None or newest is None:
            return given
        return fence_quotes(given, self.fence_key, newest, self.wording)


def _well_formed(text: str | None) -> str | None:
    return None if text is None else well_formed(text)
