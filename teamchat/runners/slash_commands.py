"""A `/command` that a person typed: the file that defines it, if it is a custom command or a skill.

A name without such a file stays text, and the person is told: a CLI's own commands (`/clear`, `/config`) are for a
person at its terminal.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from teamchat.patterns import regex
from teamchat.runners.base import Slash, Vendor

LARGEST = 1 << 20  # bytes of a command's file
_COMMAND = regex(r"/([\w-][\w.-]*(?::[\w-][\w.-]*)*)(?=\s|$)", re.ASCII)


def command_name(typed: str) -> str | None:
    """Find the name of the command at the beginning of a text: `git:commit` of `/git:commit all`; None without one."""
    match = _COMMAND.match(typed)
    return match[1] if match else None


def unknown(typed: str, vendor: Vendor) -> Slash | None:
    """Refuse a command without a defining file; None for text without one, or with a path of this machine (`/tmp`)."""
    name = command_name(typed)
    if name is None or os.path.lexists(f"/{name}"):
        return None
    return Slash(
        typed,
        "",
        refused=f"{vendor} has no custom command of that name, and its built-in ones work only on its own screen",
    )


def first_file(paths: Iterable[Path]) -> Path | None:
    """Find the first path that is a regular file small enough for a command."""
    return next((path for path in paths if _is_command(path)), None)


def _is_command(path: Path) -> bool:
    try:
        return path.is_file() and path.stat().st_size <= LARGEST
    except (OSError, ValueError):
        return False
