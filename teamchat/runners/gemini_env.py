"""What a project's `.env` would put into Gemini's environment, so that it can be kept out (observed at 0.61.0).

Gemini loads the nearest `.gemini/.env` or `.env` upwards of its folder even where the folder is not trusted. A variable
in it can redirect the user's key, replace the system prompt or, by BASH_ENV, run the project's commands. One that the
environment has already, be it empty, is left alone: so each name is set to the empty string.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

# what Gemini itself would take from the `.env` of a folder that is not trusted
ALLOWED = frozenset({"GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION"})
_NAME = re.compile(rb"^\s*(?:export\s+)?([\w.-]+)\s*[=:]", re.MULTILINE)


def silenced(cwd: Path, env: Mapping[str, str]) -> dict[str, str]:
    """The variables to set to the empty string: what the project's files name and the user's environment lacks."""
    named = {name for file in _files(cwd, env) for name in _names(file)} - ALLOWED
    return dict.fromkeys(sorted(named.difference(env)), "")


def _files(cwd: Path, env: Mapping[str, str]) -> Iterator[Path]:
    home = Path(env.get("HOME", "/nonexistent")).absolute()
    for folder in (cwd, *cwd.parents):
        if folder != home:  # the user's own are the user's
            yield from (folder / ".gemini" / ".env", folder / ".env")


def _names(file: Path) -> set[str]:
    try:
        content = file.read_bytes()
    except OSError:
        return set()
    return {name.decode("ascii") for name in _NAME.findall(content.replace(b"\r", b"\n")) if name.isascii()}
