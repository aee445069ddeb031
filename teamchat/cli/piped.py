"""Standard input as part of a message."""

from __future__ import annotations

import os
import re
import select
import stat
import sys

from teamchat.cli.output.words import note
from teamchat.core.errors import UsageError
from teamchat.core.routing.markdown import open_fence

WAIT_NOTE_S = 3.0


def message_text(text: str) -> str:
    """The message: the argument, with piped text appended as a fenced block; `-` is standard input itself."""
    if text == "-":
        if sys.stdin.isatty():
            note("reading the message from standard input; Ctrl-D ends it")
        return _read()
    if not _is_piped():
        return text
    piped = _read()
    return with_piped(text, piped) if piped.strip() else text


def _is_piped() -> bool:
    """Whether somebody piped or redirected text in: not a terminal, and not a device such as /dev/null."""
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)


def _read() -> str:
    """Everything on standard input. A pipe that nobody writes to is not waited for in silence."""
    try:
        if not sys.stdin.isatty() and not select.select([0], [], [], WAIT_NOTE_S)[0]:
            note("waiting for standard input, a pipe without text so far (add < /dev/null to send without it)")
        data = sys.stdin.buffer.read()
    except (OSError, ValueError) as error:
        raise UsageError(f"standard input can not be read: {error}") from error
    return data.decode(errors="replace")


def with_piped(text: str, piped: str) -> str:
    """The message with the piped text behind it, also when its own last code fence was never closed."""
    closing = open_fence(text)
    return f"{text}\n{closing}\n\n{fenced(piped)}" if closing else f"{text}\n\n{fenced(piped)}"


def fenced(text: str) -> str:
    """`text` in a code fence longer than any within, so that markers in it are inert."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text.rstrip(chr(10))}\n{fence}"
