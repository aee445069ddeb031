"""Claude's sessions of a folder, from its own records (observed at 2.1.330)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from teamchat.patterns import regex
from teamchat.runners.base import KeptSession
from teamchat.runners.homes.folders import claude_folder
from teamchat.runners.homes.records import MOST, first_lines, text_of, used_at

_NO_NAME = regex(r"[^A-Za-z0-9]")


def kept_in(env: Mapping[str, str], cwd: Path) -> Iterator[KeptSession]:
    """The sessions that Claude finds in that folder, the newest first. Those of its subagents are left out."""
    folder = claude_folder(env) / "projects" / _NO_NAME.sub("-", os.path.realpath(cwd))
    for file in sorted(folder.glob("*.jsonl"), key=used_at, reverse=True)[:MOST]:
        if first := _first_prompt(file):
            yield KeptSession(file.stem, used_at(file), first)


def _first_prompt(file: Path) -> str | None:
    for line in first_lines(file):
        match line:
            case {"isSidechain": True} | {"isMeta": True}:
                continue
            case {"type": "user", "message": {"content": content}}:
                said = text_of(content).strip()
                if said and not said.startswith("<"):  # else what a command of Claude printed
                    return said
    return None
