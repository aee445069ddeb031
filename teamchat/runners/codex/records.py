"""Codex's sessions of a folder, from its own records (observed at 0.169.0)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

from teamchat.runners.base import KeptSession
from teamchat.runners.codex.configuration import home
from teamchat.runners.homes.records import MOST, first_lines, text_of, used_at


def kept_in(env: Mapping[str, str], cwd: Path) -> Iterator[KeptSession]:
    """The sessions that were begun in that folder, the newest first."""
    here = os.path.realpath(cwd)
    files = sorted(home(env).glob("sessions/*/*/*/rollout-*.jsonl"), key=lambda file: file.name, reverse=True)
    sessions = (session for file in files if (session := _kept(file, here)))
    return iter(sorted(islice(sessions, MOST), key=lambda session: session.at, reverse=True))


def _kept(file: Path, here: str) -> KeptSession | None:
    session = None
    for line in first_lines(file):
        match line:
            case {"type": "session_meta", "payload": {"id": str(name), "cwd": str(cwd)}}:
                if os.path.realpath(cwd) != here:
                    return None
                session = session or name
            case {"payload": {"type": "item_completed", "item": {"type": "UserMessage", "content": content}}}:
                return KeptSession(session, used_at(file), text_of(content).strip()) if session else None
            case {"payload": {"type": "user_message", "message": str(said)}}:
                return KeptSession(session, used_at(file), said.strip()) if session else None
    return None
