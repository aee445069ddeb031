"""One vendor's protocol as the scripted model needs it, and the replies that it can be told to give."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from threading import Event
from typing import Literal, Protocol

from msgspec import Struct, field

from teamchat.runners.base import Vendor

Ending = Literal["complete", "error", "close", "reset", "stall", "endless"]


class Broken(Exception):
    """The reply breaks off here, as its `ending` says."""


class ToolUse(Struct, frozen=True):
    """A tool the model asks for, by the CLI's own name for it.

    Codex has two oddities: a tool of an MCP server is named by its `namespace` too (`mcp__SERVER`), and a tool whose
    input is the one text `input` (`apply_patch`) takes it without JSON around.
    """

    name: str
    input: Mapping[str, object] = field(default_factory=dict)
    namespace: str = ""


class Tokens(Struct, frozen=True):
    """The usage the model reports; `input` includes the cached ones."""

    input: int = 11
    cached: int = 0
    output: int = 7


class Reply(Struct, frozen=True):
    """One answer of the model; with no fields it is an empty one.

    `text` may be several pieces, each sent `delay_s` after the one before. A `status` other than 200 is an HTTP error
    with that `message`, and a `retry-after` header when `retry_after_s` is given. An `ending` other than "complete"
    breaks the reply off: after its text, or with no text before the response's headers. "error" is an error event in
    mid stream, "close" a clean end, "reset" a RST, "stall" silence; "endless" repeats the text for ever. `then` has
    more blocks of the same message, and `stop` is why that stops (Claude only).
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
    then: Reply | None = None
    stop: str = ""

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


Body = Mapping[str, object]


class Request(Struct, frozen=True):
    """One request as it came over the wire. `vendor` is None for one that asks for no turn; `at` is monotonic time."""

    method: str
    path: str
    headers: Mapping[str, str]
    raw: bytes
    vendor: Vendor | None
    at: float

    @property
    def body(self) -> Body:
        """The JSON object that was sent; empty if there was none, or it cannot be read (compressed)."""
        try:
            value: object = json.loads(self.raw)
        except (ValueError, RecursionError):
            return {}
        return value if isinstance(value, dict) else {}


class Message(Struct, frozen=True):
    """One block of text of the conversation as the model got it."""

    role: str
    text: str


class VendorProtocol(Protocol):
    """One vendor's wire format, as far as its CLI needs it to finish a turn."""

    def claims(self, path: str) -> bool:
        """Whether a POST to this path asks for a turn of this vendor's model."""
        ...

    def stream(self, reply: Reply, closing: Event) -> Iterator[bytes]:
        """The reply as server-sent events. Raises `Broken` where the reply breaks off."""
        ...

    def whole(self, body: Body, reply: Reply, closing: Event) -> bytes | None:
        """The reply as one document, where the request does not ask for a stream; else None."""
        ...

    def failure(self, status: int, message: str) -> bytes:
        """The body of an HTTP error."""
        ...

    def mid_stream_error(self, message: str) -> bytes: ...

    def system_text(self, body: Body) -> str: ...

    def messages(self, body: Body) -> list[Message]: ...

    def tool_results(self, body: Body) -> list[str]: ...


def sse(data: Mapping[str, object], event: str | None = None) -> bytes:
    """One server-sent event."""
    head = f"event: {event}\n" if event else ""
    return f"{head}data: {json.dumps(data)}\n\n".encode()


def objects(value: object) -> list[Mapping[str, object]]:
    """The JSON objects in a list; empty for anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def string(value: object) -> str:
    return value if isinstance(value, str) else ""
