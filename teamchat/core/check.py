"""A check: a command that teamchat runs itself, to find out whether the work is right.

A check is defined in the team file (`[checks.NAME]`), or typed by a person as a shell command. Its run has a result:
green, red, or not run. Red says something of the work. *Not run* says nothing of it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

CHECK_TIMEOUT_S = 1800.0
CheckStatus = Literal["green", "red", "not_run"]
NotRun = Literal["missing", "ended", "interrupted"]
"""`missing`: it could not start. `ended`: something else has ended it. `interrupted`: a person has."""
LARGEST_OUTPUT = 4 << 20  # bytes of a check's output that are stored
PROTECTED_SETS = ("pytest", "npm", "make")
MOST_TRIES = 10


class Check(Struct, frozen=True):
    """A command to run. One that is a text is for `/bin/sh -c`; one that is a list is a program and its arguments.

    `folder` is relative to the folder of the team's members (empty is that one). `env` is added to the environment,
    and `env_keep` names variables that a check otherwise does not get. `needs` names checks that must be green before
    this one runs. A `typed` check is a person's, and has its command as its name.

    - `protect` are patterns of gitignore, in `folder`, and names of sets: what changes there in a turn of the member
      that works makes the check red.
    - `expect` is a regular expression that the output of a green run must have. With `not_fewer` the number that it
      finds must be at least that of a run before the work began.
    - `tries`: a red check runs so often in all.
    - `fresh`: once it is green, it runs again in a new folder that has nothing of what git ignores.
    """

    name: str
    command: str | tuple[str, ...]
    timeout_s: float = CHECK_TIMEOUT_S
    folder: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    env_keep: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    typed: bool = False
    protect: tuple[str, ...] = ()
    expect: str = ""
    not_fewer: bool = False
    tries: int = 1
    fresh: bool = False


def without_place(check: Check, root: Path) -> Check:
    """Return the check as it is stored and shown: members and recordings read one text on every machine.

    A program below the team's folder `root` has its path from there, one elsewhere only its name.
    """
    if isinstance(check.command, str) or not check.command or not check.command[0].startswith("/"):
        return check
    program, *arguments = check.command
    path = Path(program)
    name = os.path.relpath(path, root) if path.is_relative_to(root) else path.name
    return replace(check, command=(name, *arguments))


class Touched(Struct, frozen=True):
    """A protected path, relative to the top of the work tree, that changed during `by`: "sarah's turn"."""

    path: str
    by: str


class CheckResult(Struct, frozen=True):
    """The end of a check's run."""

    status: CheckStatus
    reason: str = ""
    """Why it is red or was not run, such as "exit code 1", and which try it was, such as "at the 2nd try".

    It is empty for a check that is green at once.
    """
    exit_code: int | None = None
    """None if a signal ended the command, if it took too long, and if it did not start."""
    seconds: float = 0.0
    not_run: NotRun | None = None
    output_bytes: int = 0
    """The size of its output; the store has at most `LARGEST_OUTPUT` bytes of it."""
    left: tuple[str, ...] = ()
    """The processes that it left running and that were ended."""
    touched: tuple[Touched, ...] = ()
    """The first of the protected paths that make it red."""
    count: int | None = None
    """The number that `expect` finds in the output."""
    attempt: int = 1
    """2 for the second try on unchanged work."""
    fresh: bool = False
    """Whether it ran in a new folder."""
