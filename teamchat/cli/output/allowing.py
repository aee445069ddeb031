"""Finds the keys of the team file that would allow what a member was denied."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator

from teamchat.patterns import regex
from teamchat.runners import git_server
from teamchat.runners.events import Denied

_WEB = frozenset({"WebFetch", "WebSearch", "web_fetch", "google_web_search", "web_search"})
_SHELLS = frozenset({"Bash", "run_shell_command", "command_execution"})
_GIT = regex(r"(?:^|[;&|(])\s*git\s")
_ODD = regex(r"[^A-Za-z0-9_-]")  # these become `_` in the names of a server's tools
_SERVERS = "MCP servers "  # what the note has before the names of the member's servers
_OTHERWISE = "access or allow"


def keys_for(denied: Iterable[Denied], note: str, servers: Collection[str] = (), *, allow: bool = True) -> str:
    """The keys, each as the team file spells it. `allow` is False where the CLI takes no such key.

    `note` is the receipt's text on what the member had. `servers` are the MCP servers that the user has set up: a
    tool's name does not show where its server's name ends. A key that the member already has is not proposed,
    whatever the reason of the denial.
    """
    there = set(note.rpartition("; ")[2].replace(_SERVERS, "").split(", "))
    keys = dict.fromkeys(key for one in denied for key in _keys(one, there, servers))
    return " or ".join("access" if key == _OTHERWISE and not allow else key for key in keys)


def _keys(denied: Denied, there: set[str], servers: Collection[str]) -> Iterator[str]:
    if denied.tool in _WEB and "web" not in there:
        yield "web = true"
    elif denied.tool in _SHELLS and _GIT.search(denied.detail) and "git" not in there:
        yield "git = true"
    elif denied.tool.startswith("mcp_"):
        yield _key_of_server(denied.tool, there, servers)
    else:
        yield _OTHERWISE


def _key_of_server(tool: str, there: set[str], servers: Collection[str]) -> str:
    known = sorted({*servers, *there, git_server.NAME}, key=len, reverse=True)
    server = next((name for name in known if tool.startswith(_beginnings(name))), None)
    if server is None:
        return "mcp"
    if server == git_server.NAME:
        return _OTHERWISE if "git" in there else "git = true"
    return _OTHERWISE if server in there else f"mcp = [{json.dumps(server, ensure_ascii=False)}]"


def _beginnings(server: str) -> tuple[str, str]:
    """The tool names of Claude and Gemini that a key allows."""
    name = _ODD.sub("_", server)
    return f"mcp__{name}__", f"mcp_{name}_"
