"""Commands for a person to type, as errors and notes give them: each pastes into bash, zsh and fish as it stands."""

from __future__ import annotations

import os
import shlex
from itertools import chain, count
from pathlib import Path

EXAMPLE = "Your message"
LEARN = "teamchat learn 'Run make lint before you commit'"


def saying(*options: str) -> str:
    """The command that sends a message with these options."""
    return shlex.join(["teamchat", "send", *options, EXAMPLE])


def reading(to: str) -> str:
    """The command that asks for a message to that member at the terminal."""
    return shlex.join(["teamchat", "send", "--to", to, "-"])


def unused(path: Path) -> Path:
    """`path`, or a name beside it that no file has yet: `name-2`, `name-3` and so on."""
    others = (path.with_stem(f"{path.stem}-{number}") for number in count(2))
    return next(free for free in chain((path,), others) if not os.path.lexists(free))
