"""The input and the output of an assembler.

An assembler turns the parts of a member's context into that CLI's prompt format. It is a pure function of its input:
it reads no state, keeps none, and knows no other assembler.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct, field

from teamchat.assemblers.truncation import TruncationPolicy


class PromptContextMessage(Struct, frozen=True, gc=False):
    """One message of the history, its markers already removed.

    `from_` is the speaker (`from` is a Python keyword). A `whole` message keeps its middle, however long it is.
    """

    from_: str
    content: str
    to: str | None = None
    whole: bool = False


MAX_BYTES = 768 * 1024  # the largest prompt, system text included; a team file may change it
FRAMEWORK = "framework__context"
LESSONS = "experience__context"
KNOWLEDGE = "knowledge__context"
TODO = "todo__context"
SUMMARY = "compression__context"
DIFFERENCES = "differences__context"
RESULTS = "results__context"
LAYERS = (FRAMEWORK, LESSONS, KNOWLEDGE, TODO, SUMMARY, DIFFERENCES, RESULTS)
"""The layers in the order in which a member is told them."""


class AssemblerInput(Struct, frozen=True):
    """The parts of a prompt."""

    context_messages: tuple[PromptContextMessage, ...] = ()
    current_message: str = ""
    team_task: str | None = None
    system_instruction: str | None = None
    instruction_file_text: str | None = None
    max_bytes: int = MAX_BYTES
    """The size above which texts are cut, in bytes."""
    target_bytes: int | None = None
    """The size that a prompt may cost, in bytes. Above it only old history is left out."""
    per_message: TruncationPolicy | None = None
    """The size above which a message of the history loses its middle, in bytes."""
    contexts: Mapping[str, str] = field(default_factory=dict)
    """The layers, by names of `LAYERS`.

    `framework__context` goes with the system text and does not change from turn to turn.
    """
    turn_note: str | None = None
    """Says which message the member answers."""
    request: str | None = None
    """The human message being served, given only when it has left the history."""
    fence: str | None = None
    """A code that no text contains.

    With it, messages and contents of files are put between `<said-CODE>` and `</said-CODE>`, so that no text passes for
    another speaker's or for a part of the prompt.
    """


class Trimmed(Struct, frozen=True):
    """What a prompt was made to fit by: whole layers and history messages, and bytes cut out of a text.

    `long_messages` is how many of the history lost their middle, whatever the budget. `bytes` is what all of history
    and layers lost, and `limit` the key of the team file that history and layers gave way to (None: they did not).
    """

    history_messages: int = 0
    message_bytes: int = 0
    request_bytes: int = 0
    layers: tuple[str, ...] = ()
    long_messages: int = 0
    bytes: int = 0
    limit: str | None = None

    def __bool__(self) -> bool:
        budget = self.history_messages or self.message_bytes or self.request_bytes or self.layers
        return bool(budget or self.long_messages)


class Block(Struct, frozen=True):
    """A part of a finished prompt and its size: `name` is system, task, a layer's, history, request, turn or message.

    `messages` is how many stand in the history.
    """

    name: str
    bytes: int
    messages: int = 0


class AssemblerOutput(Struct, frozen=True):
    """The finished prompt, and apart from it the system text where the CLI takes it so (Claude, opencode).

    `message_at` is the index in `prompt` where the current message's own text begins (None when there is no message):
    the text before it was written by others or by teamchat. `blocks` are all parts in order, system text included.
    """

    prompt: str
    system_flag: str | None = None
    message_at: int | None = None
    trimmed: Trimmed = Trimmed()
    blocks: tuple[Block, ...] = ()


class BudgetExceeded(Exception):
    """The parts that are never cut exceed the budget. `needed` is `fixed` and a trace of the message, in bytes."""

    def __init__(self, fixed: int, needed: int, allowed: int) -> None:
        super().__init__(
            f"system text, task and turn note take {fixed:,} bytes, {needed:,} with the least of the message;"
            f" max_bytes is {allowed:,}"
        )
        self.fixed = fixed
        self.needed = needed
        self.allowed = allowed


class Assembler(Protocol):
    """Renders an `AssemblerInput` in one CLI's format. Raises `BudgetExceeded`."""

    def get_agent_type(self) -> str: ...

    def assemble(self, given: AssemblerInput) -> AssemblerOutput: ...
