"""Which version of Claude Code a program is, as far as its place on disk tells without running it."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

Version = tuple[int, ...]
_NATIVE = re.compile(r"(?<![^/])claude/versions/([0-9]+(?:\.[0-9]+){1,3})\Z")  # where its own installer puts it
_NUMBERS = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9}){1,3}")
_PACKAGE = "@anthropic-ai/claude-code"


def version_of(program: str, env: Mapping[str, str]) -> Version | None:
    """The version of the package that `program` belongs to; None for a wrapper, or whatever else does not say it."""
    found = shutil.which(program, path=env.get("PATH", os.defpath))
    if found is None:
        return None
    path = Path(os.path.realpath(found))
    native = _NATIVE.search(path.as_posix())
    return _parsed(native[1]) if native else _packaged(path)


def _packaged(path: Path) -> Version | None:
    for folder in path.parents[:2]:
        try:
            package = json.loads((folder / "package.json").read_bytes())
        except (OSError, ValueError, RecursionError):
            continue
        match package:
            case {"name": str(name), "version": str(version)} if name.startswith(_PACKAGE):
                return _parsed(version)
    return None


def _parsed(written: str) -> Version | None:
    numbers = _NUMBERS.match(written)
    return tuple(map(int, numbers[0].split("."))) if numbers else None
