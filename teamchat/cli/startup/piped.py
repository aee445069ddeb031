"""The message that a person sends: the typed text, standard input and attached files."""

from __future__ import annotations

import io
import math
import os
import re
import select
import stat
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from msgspec.structs import replace

from teamchat.cli.output.lines import note
from teamchat.core.conversation.inputs import Message, typed_spans
from teamchat.core.errors import PromptTooLarge, TimedOut, UsageError
from teamchat.core.routing.at_calls import split_calls
from teamchat.core.routing.names import Named
from teamchat.core.store.images import LARGEST_IMAGE, MOST_IMAGES, Image, image_type
from teamchat.core.text.clean import printable
from teamchat.core.text.durations import parse_duration

WAIT_NOTE_S = 3.0
LONGEST_WAIT_S = 3600.0  # the system takes no wait of centuries at once
INPUT = "standard input"
EMPTY = "standard input was empty"
ASKED = ", and a last word - demands a text: send without the -, or find out why there is none"
JUDGED = ", so --verdict would judge nothing: find out why, or add < /dev/null to send without it"
SENDING = "teamchat send 'Your message'"


def read_message(
    words: Sequence[str],
    max_bytes: int | None = None,
    files: Sequence[str] = (),
    *,
    to: str | None = None,
    example: str = SENDING,
    judged: bool = False,
    timeout: str | None = None,
) -> Message:
    """Read the message, for the members `to` (`--to`): the words, then piped text in a fenced block.

    Without words, or for `-`, it is the piped text, whose markers count unless `to` says who answers. The `files`
    follow. A last word `-` demands a text. If the reply is `judged`, nothing that is read may be empty: a script's gate
    would pass on nothing. Raises `UsageError` (`example` is the command that has a message), `TimedOut` for a pipe that
    does not end within `timeout` (as a person wrote it), and `PromptTooLarge` for input over `max_bytes` (None:
    teamchat's own maximum).
    """
    read = partial(_read, max_bytes, timeout)
    message = _without_files(words, read, to, None if files else example, JUDGED if judged else None)
    message = replace(message, to=to)
    return attached(message, files, max_bytes, judged=judged) if files else message


def without_calls(message: Message, members: Sequence[Named]) -> Message:
    """Take the names off typed lines that begin with `@name`, and address the message to them, too."""
    through = message.typed_through
    called, typed, _ = split_calls(message.text[:through], members)
    names = ",".join(filter(None, (message.to, called)))
    text = f"{typed}{message.text[through:]}"
    return replace(message, text=text, typed=typed_spans(len(typed)), to=names or message.to)


def _without_files(
    words: Sequence[str], read: Callable[[], str], to: str | None, example: str | None, refusal: str | None
) -> Message:
    """Read the message without its files; `read` reads standard input.

    With an `example` it may not be empty, with a `refusal` no input may.
    """
    asked = bool(words) and words[-1] == "-"
    typed = words[:-1] if asked else words
    if typed or not (asked or example):
        text = " ".join(typed)
        message = Message(text=text, typed=typed_spans(len(text)))
        if not (asked or _is_piped()):
            return message
        if (piped := read()).strip():
            lines = piped.rstrip("\n").count("\n") + 1
            note(f"{lines:,} line{'s' * (lines > 1)} of {INPUT} appended")
            return replace(message, text=with_block(text, fenced(piped)))
        if asked or refusal:
            raise UsageError(f"{EMPTY}{ASKED if asked else refusal}")
        note(EMPTY)
        return message
    if not (asked or _is_piped()):
        raise UsageError("there is nothing to send", example)
    piped = read()
    if not piped.strip():
        raise UsageError(EMPTY)
    return Message(text=piped if to is None else fenced(piped))


def attached(message: Message, files: Sequence[str], max_bytes: int | None, *, judged: bool = False) -> Message:
    """Append these files to the message: text as a fenced block under its name, an image by its name alone.

    Raises `UsageError` for a missing file, for any other kind of content and for an empty file that would be `judged`,
    and `PromptTooLarge`.
    """
    text, images = message.text, list[Image]()
    for path in files:
        name, data = printable(path).replace("`", "'"), read_input_file(path, max_bytes)
        if kind := image_type(data):
            images.append(Image(name, kind, data))
            text = with_block(text, fenced(f"(image, {kind}, {len(data):,} bytes)", name))
            continue
        content = decoded_text(data, name)
        if judged and not content.strip():
            raise UsageError(f"{name} is empty, so --verdict would judge nothing: find out why, or leave it out")
        text = with_block(text, fenced(content, name))
    if len(images) > MOST_IMAGES:
        raise UsageError(f"a message takes at most {MOST_IMAGES} images, and there are {len(images)}")
    return replace(message, text=text, images=tuple(images))


def _is_piped() -> bool:
    """Whether text is piped or redirected in; not from a terminal or a device such as /dev/null."""
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)


def _read(max_bytes: int | None, timeout: str | None) -> str:
    """Read all of standard input, from a pipe until `timeout`. While a pipe stays silent, a note says so."""
    most, why = limit_of_text(max_bytes)
    try:
        typed = sys.stdin.isatty()
        if typed:
            note("reading the message from standard input; Ctrl-D ends it")
        stream = sys.stdin.buffer if typed else io.BufferedReader(_Pipe(timeout))
        data = read_within(stream, most, why, INPUT)
    except (OSError, ValueError) as error:
        raise UsageError(f"standard input cannot be read: {error}") from error
    return decoded_text(data, INPUT)


class _Pipe(io.FileIO):
    """Standard input that no person types. Whoever writes to it may never close it."""

    def __init__(self, timeout: str | None) -> None:
        super().__init__(0, closefd=False)
        self.timeout = timeout
        self.end = math.inf if timeout is None else time.monotonic() + parse_duration(timeout)
        self.came: int | None = None  # bytes; None until the first ones, or the note that there are none

    def readinto(self, buffer: Any, /) -> int | None:
        wait = WAIT_NOTE_S if self.came is None else LONGEST_WAIT_S
        while not self._has_text(wait):
            if time.monotonic() >= self.end:
                raise self._timed_out()
            if self.came is None:
                note("waiting for standard input: the pipe has no text yet (add < /dev/null to send without it)")
                self.came, wait = 0, LONGEST_WAIT_S
        read = super().readinto(buffer)
        self.came = (self.came or 0) + (read or 0)
        return read

    def _has_text(self, seconds: float) -> bool:
        """Return whether there is text or the end; False after that many seconds, or at the end of the time."""
        left = min(seconds, self.end - time.monotonic())
        return left > 0 and bool(select.select([self], [], [], left)[0])

    def _timed_out(self) -> TimedOut:
        how = f"did not end within {self.timeout}" if self.came else f"gave no text within {self.timeout}"
        came = f": {self.came:,} bytes came" if self.came else ""
        return TimedOut(f"{INPUT} {how} (--timeout){came}, and its writer has it still open")


def with_block(text: str, block: str) -> str:
    """Append a fenced block to the message, even if its own last code fence is still open."""
    if not text:
        return block
    from teamchat.core.routing.markdown import open_fence

    closing = open_fence(text)
    return f"{text}\n{closing}\n\n{block}" if closing else f"{text}\n\n{block}"


def fenced(text: str, name: str = "") -> str:
    """Put `text` in a code fence longer than any inside it, so that its markers do nothing. `name` describes it."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{name}\n{text.rstrip(chr(10))}\n{fence}"


LARGEST_MESSAGE = 16 << 20  # bytes; no agent CLI takes that much
COUNTED = 1 << 30  # bytes; a refused input is counted no further, as it may be endless
PIECE = 1 << 20
BYTE_ORDER_MARK = "\ufeff"
HEAD = 16  # bytes that identify an image


def read_within(stream: BinaryIO, most: int, why: str, what: str) -> bytes:
    """Read all of the stream. Raises `PromptTooLarge`, with the size, if it has over `most` bytes.

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
        amount = f"more than {COUNTED:,}" if size > COUNTED else f"{size:,}"
        raise PromptTooLarge(f"{what} has {amount} bytes, {why}")
    return b"".join(pieces)


def limit_of_text(max_bytes: int | None) -> tuple[int, str]:
    """Return the most bytes of a text to send, and whose limit that is: the prompt's (`max_bytes`) or teamchat's."""
    if max_bytes is None or max_bytes >= LARGEST_MESSAGE:
        return LARGEST_MESSAGE, f"and a message takes at most {LARGEST_MESSAGE:,}"
    return max_bytes, f"and a prompt holds {max_bytes:,} (max_bytes in the team file; --cut sends a part)"


def read_input_file(path: str, max_bytes: int | None) -> bytes:
    """Read the content of a file. Raises `PromptTooLarge`, and `UsageError` if it cannot be read."""
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
    """Decode the UTF-8 text in `data`, without a byte order mark before it.

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
