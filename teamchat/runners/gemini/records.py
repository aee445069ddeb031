"""Gemini's sessions of a folder, from its own records (observed at 0.61.0).

Gemini has no option that forks a session. It accepts a copy of the record under another name.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

from teamchat.runners.base import KeptSession
from teamchat.runners.homes.folders import gemini_folder
from teamchat.runners.homes.records import first_lines, is_folder, newest, size_of, text_of, used_at
from teamchat.runners.untrusted.regular_files import LARGEST, read_regular, read_regular_text

_LONGEST_PATH = 1 << 16  # bytes of the file that names a project's folder


def kept_in(env: Mapping[str, str], cwd: Path) -> Iterator[KeptSession]:
    """List the sessions that Gemini finds in that folder, newest first."""
    for file in newest(_records(env, cwd)):
        session, first = _head(file)
        if session and first is not None:
            yield KeptSession(session, used_at(file), first, too_large=size_of(file) > LARGEST)


def forked(env: Mapping[str, str], cwd: Path, session: str) -> tuple[str, Mapping[Path, bytes]]:
    """Name a copy of the session, and build its record for the caller to write. No record if the session is gone."""
    name = str(uuid.uuid4())
    for file in _records(env, cwd):
        if _head(file)[0] == session:
            try:
                record = read_regular(file)
            except (OSError, ValueError):
                break
            copy = file.with_name(f"{file.stem.rpartition('-')[0]}-{name[:8]}.jsonl")
            return name, {copy: record.replace(session.encode(), name.encode())}
    return name, {}


def _records(env: Mapping[str, str], cwd: Path) -> Iterator[Path]:
    here = os.path.realpath(cwd)
    for root in gemini_folder(env).glob("tmp/*/.project_root"):
        try:
            project = read_regular_text(root, errors="replace", most=_LONGEST_PATH).strip()
        except (OSError, ValueError):
            continue
        if is_folder(project, here):
            yield from root.parent.glob("chats/session-*.jsonl")


def _head(file: Path) -> tuple[str | None, str | None]:
    """Read the name of the session, and its first prompt: empty where it is not found, None without any message."""
    session, first = None, None
    for line in first_lines(file):
        match line:
            case {"sessionId": str(name), "kind": "main"}:
                session = name
            case {"type": "user" | "gemini", "content": content}:
                first, said = "", text_of(content).strip() if line["type"] == "user" else ""
                if said and not said.startswith("<session_context>"):
                    return session, said
            case _:
                pass
    return session, first
