"""The total usage of a Codex session, from its own file (observed at 0.169.0).

Codex's events count tokens over a session, including tokens that a person has used there by hand. The file says how
many those were. It is an internal file of Codex: if it is not as expected, nothing is known.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from teamchat.runners.agent_events import Usage
from teamchat.runners.codex.events import usage_of
from teamchat.runners.untrusted.json import decode
from teamchat.runners.untrusted.regular_files import open_regular

TAIL = 1024 * 1024  # bytes at the end of a file; the count comes right after each answer


def used_in(env: Mapping[str, str], session: str) -> Usage | None:
    """Read the usage of that session up to now; None if its file does not show it."""
    from glob import escape  # few turns continue a session that somebody used by hand

    home = Path(env.get("CODEX_HOME") or Path(env.get("HOME", "/"), ".codex"))
    try:
        for file in home.glob(f"sessions/*/*/*/rollout-*-{escape(session)}.jsonl"):
            return _last_count(_tail(file))
    except (OSError, ValueError):  # a session's name that no file can have
        pass
    return None


def _tail(file: Path) -> bytes:
    with open_regular(file) as opened:
        opened.seek(max(os.fstat(opened.fileno()).st_size - TAIL, 0))
        return opened.read(TAIL)


def _last_count(tail: bytes) -> Usage | None:
    for line in reversed(tail.split(b"\n")):
        if b'"token_count"' in line:
            match decode(line):
                case {"payload": {"type": "token_count", "info": {"total_token_usage": dict(usage)}}}:
                    return usage_of(usage)
    return None
