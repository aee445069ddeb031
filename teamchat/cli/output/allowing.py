"""What of the team file would allow what a member was denied."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from teamchat.runners.agent_events import Denied

_WEB = frozenset({"WebFetch", "WebSearch", "web_fetch", "google_web_search", "web_search"})
_SHELLS = frozenset({"Bash", "run_shell_command", "command_execution"})
_GIT = re.compile(r"(?:^|[;&|(])\s*git\s")
_SERVER = re.compile(r"mcp_(?:_(?P<claude>.+?)__|(?P<gemini>[^_]+)_)")
_OTHERWISE = "access or allow"


def keys_for(denied: Iterable[Denied], note: str) -> str:
    """The keys, each as it is written; `note` is what the receipt says that the member had.

    A member that has a key already is not told to have it, whatever the reason was for which it was denied.
    """
    there = set(note.rpartition("; ")[2].split(", "))
    return " or ".join(dict.fromkeys(key for one in denied for key in _keys(one, there)))


def _keys(denied: Denied, there: set[str]) -> Iterator[str]:
    if denied.tool in _WEB and "web" not in there:
        yield "web = true"
    elif denied.tool in _SHELLS and _GIT.search(denied.detail) and "git" not in there:
        yield "git = true"
    elif server := _SERVER.match(denied.tool):
        yield f'mcp = ["{server["claude"] or server["gemini"]}"]'
    else:
        yield _OTHERWISE
