"""Runs git, and reads a page of what it prints: both its time and its length are limited, and the answer says so."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Timer
from typing import IO

LONGEST_S = 30.0  # a command may take
LARGEST = 32_000  # bytes of a page: Codex cuts what is longer in the middle, Gemini and Claude put it into a file
LONGEST_LINE = 2_000  # bytes of a line without its end
LONGEST_ERROR = 300  # characters
_PIECE = 1 << 16


class GitError(Exception):
    """Why git has no answer, in one line for the model."""


@dataclass(frozen=True, slots=True)
class Page:
    """The lines from `first` to `last` of what git printed. `more`: others follow; `cut` of these are not whole."""

    text: str
    first: int
    last: int
    more: bool = False
    cut: int = 0


def read(argv: Sequence[str], cwd: Path, env: Mapping[str, str], first: int = 1, longest_s: float = LONGEST_S) -> Page:
    """What git prints from line `first` on.

    Raises `GitError` when git fails or takes too long for that page, and `OSError` when it cannot be started.
    """
    late = Event()
    with tempfile.TemporaryFile() as errors:
        pipe = subprocess.PIPE
        with subprocess.Popen(argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=pipe, stderr=errors) as git:
            clock = Timer(longest_s, _stop, (git, late))
            clock.start()
            try:
                assert git.stdout
                page = _page(git.stdout, first)
                if page.more:
                    git.kill()
                code = git.wait()
            finally:
                clock.cancel()
        if late.is_set() and not page.more:
            raise GitError(f"git took longer than {longest_s:g} s and was stopped: name paths, or fewer commits")
        if code and not page.more:
            errors.seek(0)
            raise GitError(_reason(errors.read(_PIECE), code))
    return page


def _stop(git: subprocess.Popen[bytes], late: Event) -> None:
    late.set()
    git.kill()


def _page(printed: IO[bytes], first: int) -> Page:
    kept: list[bytes] = []
    number = size = cut = 0
    while line := printed.readline(LONGEST_LINE + 1):
        lost = len(line) > LONGEST_LINE and not line.endswith(b"\n")
        if lost:
            line = line[:LONGEST_LINE] + b" ...\n"
            _pass_over_rest(printed)
        number += 1
        if number < first:
            continue
        if size + len(line) > LARGEST:
            return Page(_text(kept), first, number - 1, more=True, cut=cut)
        kept.append(line)
        size, cut = size + len(line), cut + lost
    return Page(_text(kept), first, number, cut=cut)


def _pass_over_rest(printed: IO[bytes]) -> None:
    while (piece := printed.readline(_PIECE)) and not piece.endswith(b"\n"):
        pass


def _text(lines: Sequence[bytes]) -> str:
    return b"".join(lines).decode(errors="replace")


def _reason(told: bytes, code: int) -> str:
    lines = [line for line in told.decode(errors="replace").splitlines() if line.strip()]
    said = next((line for line in lines if line.startswith(("fatal:", "error:"))), lines[-1] if lines else "")
    return (said.strip() or f"git ended with exit code {code}")[:LONGEST_ERROR]
