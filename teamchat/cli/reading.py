"""Reading what a person sends: within a limit, in one pass, and nothing but text."""

from __future__ import annotations

from typing import BinaryIO

from teamchat.core.errors import PromptTooLarge, UsageError
from teamchat.core.images import image_type

LARGEST_MESSAGE = 16 << 20  # bytes; no agent CLI takes as much
COUNTED = 1 << 30  # bytes of an input that is refused; what never ends is not read to its end
PIECE = 1 << 20


def read_within(stream: BinaryIO, most: int, what: str, why: str) -> bytes:
    """All of the stream. Raises `PromptTooLarge` with its size where that is over `most` bytes; `why` says whose limit.

    What is over it is counted and not kept.
    """
    pieces: list[bytes] = []
    size = 0
    while size <= COUNTED and (piece := stream.read(PIECE)):
        size += len(piece)
        if size <= most:
            pieces.append(piece)
        else:
            pieces.clear()
    if size > most:
        found = f"more than {COUNTED:,}" if size > COUNTED else f"{size:,}"
        raise PromptTooLarge(f"{what} has {found} bytes, {why}")
    return b"".join(pieces)


def text_in(data: bytes, what: str) -> str:
    """The UTF-8 text in `data`. Raises `UsageError` for anything else: an agent could only guess at it."""
    if kind := image_type(data):
        raise UsageError(f"{what} is an image ({kind}), not text: send the file with --file")
    if (at := data.find(b"\0")) >= 0:
        raise UsageError(f"{what} is not text: byte {at + 1:,} is NUL")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        byte = data[error.start]
        raise UsageError(
            f"{what} is not UTF-8 text: byte {error.start + 1:,} is 0x{byte:02x} (iconv -t UTF-8 converts text)"
        ) from None
