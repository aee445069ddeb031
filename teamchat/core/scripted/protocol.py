"""What the server needs of one vendor's protocol, and what the three have in common."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from threading import Event
from typing import Protocol

from teamchat.core.scripted.reply import Reply
from teamchat.runners.base import Vendor

Body = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it came over the wire. `vendor` is None for one that asks for no turn; `at` is monotonic time."""

    method: str
    path: str
    headers: Mapping[str, str]
    raw: bytes
    vendor: Vendor | None
    at: float

    @property
    def body(self) -> Body:
        """The JSON object that was sent; an empty one when there was none, or when it cannot be read (compressed)."""
        try:
            value: object = json.loads(self.raw)
        except (ValueError, RecursionError):
            return {}
        return value if isinstance(value, dict) else {}


@dataclass(frozen=True, slots=True)
class Message:
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
    """The JSON objects in a list; nothing of anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def string(value: object) -> str:
    return value if isinstance(value, str) else ""
