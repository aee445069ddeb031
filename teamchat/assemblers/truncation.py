"""Cuts the middle out of a text, as its beginning and its end say most."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

MOST_BYTES = 4  # the longest character in UTF-8
BYTES_PER_TOKEN = 4  # an estimate: each vendor counts with a tokenizer of its own


def approx_tokens(size: int) -> int:
    """Estimate the number of tokens in `size` bytes."""
    return size // BYTES_PER_TOKEN


class TruncationPolicy(Struct, frozen=True):
    """How much of a text may stay, in bytes or in tokens."""

    amount: int
    unit: Literal["bytes", "tokens"] = "bytes"

    @property
    def byte_budget(self) -> int:
        return self.amount if self.unit == "bytes" else self.amount * BYTES_PER_TOKEN

    def __call__(self, text: str) -> Cut:
        """Keep the head and tail of the text, and replace the middle where it is too long."""
        return truncate_middle(text, self.byte_budget)


class Cut(Struct, frozen=True, gc=False):
    """A text after the cut, and the number of its own UTF-8 bytes that were removed."""

    text: str
    removed_bytes: int = 0


def byte_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def least_bytes(text: str) -> int:
    """Find the smallest limit under which `truncate_middle` leaves a trace of `text`: its marker, or all if shorter."""
    size = byte_length(text)
    return min(size, byte_length(_marker(size)))


def truncate_middle(text: str, max_bytes: int) -> Cut:
    """Cut `text` to at most `max_bytes` UTF-8 bytes.

    A marker in its middle, which counts too, says how much is gone. Head and tail get half of the room each, and the
    tail the odd byte. Characters stay whole. If not even the marker fits, only the beginning is kept.
    """
    if len(text) * MOST_BYTES <= max_bytes:
        return Cut(text)
    data = text.encode()
    if len(data) <= max_bytes:
        return Cut(text)
    marker = _marker(len(data))
    if byte_length(marker) > max_bytes:
        head = truncate_end(text, max_bytes)
        return Cut(head, len(data) - byte_length(head))
    for _ in range(2):  # the first marker's number may have more digits than the number of what is really removed
        room = max_bytes - byte_length(marker)
        left = room // 2
        head, tail = _whole(data[:left]), _whole(data[len(data) - (room - left) :])
        removed = len(data) - byte_length(head) - byte_length(tail)
        marker = _marker(removed)
    return Cut(head + marker + tail, removed)


def truncate_end(text: str, max_bytes: int) -> str:
    """Keep the longest beginning of `text` in `max_bytes` UTF-8 bytes, with whole characters."""
    return _whole(text.encode()[: max(max_bytes, 0)])


def _marker(removed_bytes: int) -> str:
    return f"…{approx_tokens(removed_bytes)} tokens truncated…"


def _whole(data: bytes) -> str:
    """Decode a slice of valid UTF-8 without the parts of characters at its edges."""
    return data.decode(errors="ignore")
