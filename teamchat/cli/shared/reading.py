"""Reads what a person sends: within a limit, in one pass, and only text."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

from teamchat.core.errors import PromptTooLarge, UsageError
from teamchat.core.store.images import LARGEST_IMAGE, image_type
from teamchat.core.text.clean import printable

LARGEST_MESSAGE = 16 << 20  # bytes; no agent CLI takes that much
COUNTED = 1 << 30  # bytes read of a refused input, which may be endless
PIECE = 1 << 20
BYTE_ORDER_MARK = "\ufeff"
HEAD = 16  # bytes that identify an image


def read_within(stream: BinaryIO, most: int, why: str, what: str) -> bytes:
    """All of the stream. Raises `PromptTooLarge`, with the size, if it has over `most` bytes.

    `why` says whose limit that is. Bytes over the limit are counted and not kept.
    """
    pieces: list[bytes] = []
    size = 0
    ended = False
    while not ended and size <= COUNTED:
        piece = stream.read(PIECE)
        ended = len(piece) < PIECE  # another read would wait for a second Ctrl-D at a terminal
        size += len(piece)
        if size <= most:
            pieces.append(piece)
        else:
            pieces.clear()
    if size > most:
        found = f"more than {COUNTED:,}" if size > COUNTED else f"{size:,}"
        raise PromptTooLarge(f"{what} has {found} bytes, {why}")
    return b"".join(pieces)


def limit_of_text(max_bytes: int | None) -> tuple[int, str]:
    """The most bytes of a text that may be sent, and whose limit that is: the prompt's (`max_bytes`) or teamchat's."""
    if max_bytes is None or max_bytes >= LARGEST_MESSAGE:
        return LARGEST_MESSAGE, f"and a message takes at most {LARGEST_MESSAGE:,}"
    return max_bytes, f"and a prompt holds {max_bytes:,} (max_bytes in the team file; --cut sends a part)"


def read_input_file(path: str, max_bytes: int | None) -> bytes:
    """The content of a file. Raises `PromptTooLarge`, and `UsageError` if it cannot be read."""
    name = printable(path)
    try:
        with Path(path).expanduser().open("rb") as file:
            head = file.peek(HEAD)[:HEAD] if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else b""
            image = image_type(head) is not None
            limit = LARGEST_IMAGE, f"and an image may have {LARGEST_IMAGE:,}"
            return read_within(file, *(limit if image else limit_of_text(max_bytes)), what=name)
    except (OSError, ValueError, RuntimeError) as error:
        raise UsageError(f"{name} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def decoded_text(data: bytes, what: str) -> str:
    """The UTF-8 text in `data`, without a byte order mark before it.

    Raises `UsageError` for other bytes: an agent could only guess what they mean.
    """
    if kind := image_type(data):
        raise UsageError(f"{what} is an image ({kind}), not text: send the file with --file")
    if (at := data.find(b"\0")) >= 0:
        raise UsageError(f"{what} is not text: byte {at + 1:,} is NUL")
    try:
        return data.decode().removeprefix(BYTE_ORDER_MARK)
    except UnicodeDecodeError as error:
        byte = data[error.start]
        raise UsageError(
            f"{what} is not UTF-8 text: byte {error.start + 1:,} is 0x{byte:02x} (iconv -t UTF-8 converts text)"
        ) from None
