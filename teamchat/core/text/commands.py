"""Commands for a person to type, as errors and notes give them: each pastes into bash, zsh and fish as it stands."""

from __future__ import annotations

import os
import shlex
from itertools import chain, count
from pathlib import Path

EXAMPLE = "Your message"
LEARN = "teamchat learn 'Run make lint before you commit'"


def quote(word: str) -> str:
    """Quote the word so that bash, zsh and fish all read it.

    fish reads a backslash in single quotes as an escape, and zsh a word with `=` before it as a program's path.
    """
    parts = [shlex.quote(part) if part else "" for part in word.split("\\")]
    if parts[0].startswith("="):
        parts[0] = f"'{parts[0]}'"
    return r"\\".join(parts) or "''"


def command_of(*words: str) -> str:
    """Write the command with these words."""
    return " ".join(map(quote, words))


def saying(*options: str) -> str:
    """Write the command that sends a message with these options."""
    return command_of("teamchat", "send", *options, EXAMPLE)


def reading(to: str) -> str:
    """Write the command that asks for a message to that member at the terminal."""
    return command_of("teamchat", "send", "--to", to, "-")


def unused(path: Path) -> Path:
    """Return `path`, or a name beside it that no file has yet: `name-2`, `name-3` and so on."""
    others = (path.with_stem(f"{path.stem}-{number}") for number in count(2))
    return next(free for free in chain((path,), others) if not os.path.lexists(free))
