"""What a scripted model answers: one `Reply` to one request, good or bad.

A reply is data and knows no vendor; each protocol module turns it into that vendor's frames. The text is handed out by
`pieces`, which keeps the reply's rhythm and raises `Broken` where the reply is meant to break off, so that no protocol
module has to know how replies fail.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from threading import Event
from typing import Literal

Ending = Literal["complete", "error", "close", "reset", "stall", "endless"]


class Broken(Exception):
    """The reply breaks off here, in the way of its `ending`."""


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool the model asks for, by the CLI's own name for it.

    Codex has two oddities: a tool of an MCP server is named by its `namespace` too (`mcp__SERVER`), and a tool whose
    input is the one text `input` (`apply_patch`) takes it without JSON around.
    """

    name: str
    input: Mapping[str, object] = field(default_factory=dict)
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Tokens:
    """The usage the model reports; `input` includes the cached ones."""

    input: int = 11
    cached: int = 0
    output: int = 7


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of the model; with no fields it is an empty one.

    `text` may be several pieces, each sent `delay_s` after the one before. A `status` other than 200 is an HTTP error
    with that `message`, and a `retry-after` header when `retry_after_s` is given. An `ending` other than "complete"
    breaks the reply off: after its text, or with no text before the response's headers. "error" is an error event in
    mid stream, "close" a clean end, "reset" a RST, "stall" silence; "endless" repeats the text for ever.
    """

    text: str | tuple[str, ...] = ""
    thinking: str = ""
    tools: tuple[ToolUse, ...] = ()
    delay_s: float = 0.0
    status: int = 200
    message: str = "scripted failure"
    retry_after_s: int | None = None
    ending: Ending = "complete"
    tokens: Tokens = Tokens()

    def pieces(self, closing: Event) -> Iterator[str]:
        """The pieces of text in their rhythm. Raises `Broken` at a scripted break and when the server closes."""
        pieces = (self.text,) if isinstance(self.text, str) else self.text
        while True:
            for piece in pieces:
                if closing.wait(self.delay_s):
                    raise Broken
                yield piece
            if self.ending == "complete":
                return
            if self.ending != "endless":
                raise Broken
