"""Codex's sessions of a folder, from its own records (observed at 0.171.0).

Codex compresses the record of a session that nobody continues for a week, and can still continue it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from teamchat.patterns import regex
from teamchat.runners.base import KeptSession
from teamchat.runners.codex.configuration import home
from teamchat.runners.homes.records import first_lines, is_folder, longer_than_read, newest, text_of, used_at

_COMPRESSED = regex(r"rollout-[0-9T-]+?-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.jsonl\.zst")


def kept_in(env: Mapping[str, str], cwd: Path) -> Iterator[KeptSession]:
    """List the sessions begun in that folder, newest first, and all compressed ones, without their words."""
    here = os.path.realpath(cwd)
    for file in newest(home(env).glob("sessions/*/*/*/rollout-*.jsonl*")):
        if compressed := _COMPRESSED.fullmatch(file.name):
            yield KeptSession(compressed[1], used_at(file), "")
        elif file.suffix == ".jsonl" and (kept := _kept(file, here)):
            yield kept


def _kept(file: Path, here: str) -> KeptSession | None:
    session, talks = None, False
    for line in first_lines(file):
        match line:
            case {"type": "session_meta", "payload": {"id": str(name), "cwd": str(cwd)}}:
                if not is_folder(cwd, here):
                    return None
                session = session or name
            case {"payload": {"type": "item_completed", "item": {"type": "UserMessage", "content": content}}}:
                return KeptSession(session, used_at(file), text_of(content).strip()) if session else None
            case {"payload": {"type": "user_message", "message": str(said)}}:
                return KeptSession(session, used_at(file), said.strip()) if session else None
            case {"type": "response_item" | "event_msg"}:
                talks = True
            case _:
                pass
    return KeptSession(session, used_at(file), "") if session and (talks or longer_than_read(file)) else None
