"""Runs git and reads its output. Its time is limited, and so is the length of a page; the answer says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from msgspec import Struct

from teamchat.runners.child.command import CommandEnd, printing, run

LONGEST_S = 30.0  # a command may take
LARGEST = 32_000  # bytes of a page: Codex cuts what is longer in the middle, Gemini and Claude put it into a file
LONGEST_LINE = 2_000  # bytes of a line without its end
LONGEST_ERROR = 300  # characters
_PIECE = 1 << 16


class GitError(Exception):
    """Why git has no answer, in one line for the model."""


class Page(Struct, frozen=True):
    """The lines from `first` to `last` of git's output. `more`: others follow; `cut` of these are not whole."""

    text: str
    first: int
    last: int
    more: bool = False
    cut: int = 0


def read_from_line(
    argv: Sequence[str], cwd: Path, env: Mapping[str, str], first: int = 1, longest_s: float = LONGEST_S
) -> Page:
    """Read git's output from line `first` on.

    Raises `GitError` when git fails or takes too long for that page, and `OSError` when it cannot be started.
    """
    with printing(argv, cwd, env, seconds=longest_s) as git:
        page = _page(git.out, first)
        if page.more:
            return page
        ended = _in_time(git.end(), longest_s)
    if ended.code:
        raise GitError(_reason(ended.err, ended.code))
    return page


def read_whole(argv: Sequence[str], cwd: Path, env: Mapping[str, str], longest_s: float) -> bytes:
    """Read all that git prints, also where it fails. Raises `GitError` when it takes too long, and `OSError`."""
    return _in_time(run(argv, cwd, env, longest_s), longest_s).out


def _in_time(ended: CommandEnd, longest_s: float) -> CommandEnd:
    if ended.code is None:
        raise GitError(f"git took longer than {longest_s:g} s and was stopped: name paths, or fewer commits")
    return ended


def _page(printed: IO[bytes], first: int) -> Page:
    lines: list[bytes] = []
    number = size = cut = 0
    while line := printed.readline(LONGEST_LINE + 1):
        lost = len(line) > LONGEST_LINE and not line.endswith(b"\n")
        if lost:
            line = line[:LONGEST_LINE] + b" ...\n"
            while (piece := printed.readline(_PIECE)) and not piece.endswith(b"\n"):
                pass
        number += 1
        if number < first:
            continue
        if size + len(line) > LARGEST:
            return Page(_text(lines), first, number - 1, more=True, cut=cut)
        lines.append(line)
        size, cut = size + len(line), cut + lost
    return Page(_text(lines), first, number, cut=cut)


def _text(lines: Sequence[bytes]) -> str:
    return b"".join(lines).decode(errors="replace")


def _reason(told: bytes, code: int) -> str:
    lines = [line for line in told.decode(errors="replace").splitlines() if line.strip()]
    said = next((line for line in lines if line.startswith(("fatal:", "error:"))), lines[-1] if lines else "")
    return (said.strip() or f"git ended with exit code {code}")[:LONGEST_ERROR]
