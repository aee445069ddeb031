"""An agent's use of a tool in human words: `edit app.py`, `editing app.py`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import NamedTuple

from msgspec import Struct

from teamchat.core.text.clean import visible
from teamchat.patterns import regex
from teamchat.runners.agent_events import ToolCall, ToolResult

COLUMN = 8  # the width of the first word
_SPACES = regex(r"\s+")


class _Words(NamedTuple):
    """The words for a finished action and for a running one."""

    done: str
    doing: str


READ = _Words("read", "reading")
EDIT = _Words("edit", "editing")
WRITE = _Words("write", "writing")
DELETE = _Words("delete", "deleting")
RUN = _Words("ran", "running")
SEARCH = _Words("search", "searching")
LIST = _Words("list", "listing")
FETCH = _Words("fetch", "fetching")
WEB = _Words("web", "searching the web for")
PLAN = _Words("plan", "planning")
AGENT = _Words("agent", "asking an agent:")
ASK = _Words("ask", "asking")
SKILL = _Words("skill", "using skill")
USE = _Words("use", "using")
_TOOLS: Mapping[str, _Words] = {
    **dict.fromkeys(("read", "readfile", "readmanyfiles", "notebookread", "view"), READ),
    **dict.fromkeys(("edit", "multiedit", "notebookedit", "replace", "applypatch", "patch", "filechange"), EDIT),
    **dict.fromkeys(("write", "writefile"), WRITE),
    **dict.fromkeys(("bash", "runshellcommand", "commandexecution", "shell", "localshell", "exec"), RUN),
    **dict.fromkeys(("grep", "grepsearch", "searchfilecontent", "glob", "codesearch", "search"), SEARCH),
    **dict.fromkeys(("ls", "list", "listdirectory"), LIST),
    **dict.fromkeys(("webfetch", "fetch"), FETCH),
    **dict.fromkeys(("websearch", "googlewebsearch"), WEB),
    **dict.fromkeys(("todowrite", "writetodos", "todolist", "updateplan", "exitplanmode"), PLAN),
    **dict.fromkeys(("task", "agent", "collabtoolcall"), AGENT),
    **dict.fromkeys(("askuserquestion", "askuser", "question"), ASK),
    **dict.fromkeys(("skill", "activateskill"), SKILL),
}
_NO_DETAIL = (PLAN,)
_OF_FILES = (READ, EDIT, WRITE, DELETE, LIST, SEARCH)
_CHANGE = regex(r"(add|update|delete|change|modify|remove) (\S.*)")
_CHANGES = {"add": WRITE, "delete": DELETE, "remove": DELETE}
_PATCHED = regex(r"\*\*\* (?:Add|Update|Delete) File: (.+?)(?:\\n|\n|$)")
_SERVER = regex(r"mcp_+([A-Za-z0-9-]+)_+(.+)")


class Action(Struct, frozen=True):
    """The action of a tool call: `what` is a path, a command or a name."""

    done: str
    doing: str
    what: str

    @property
    def now(self) -> str:
        """`editing app.py`, ``running `pytest -q` ``."""
        what = f"`{self.what}`" if self.doing == RUN.doing and self.what else self.what
        return f"{self.doing} {what}".rstrip()

    @property
    def line(self) -> str:
        """`edit    app.py`."""
        return f"{self.done.ljust(COLUMN - 1)} {self.what}".rstrip()


def action(call: ToolCall, folder: str) -> Action:
    """Put a call of any vendor's tool in words. Paths are made relative to the member's `folder`."""
    summary = _SPACES.sub(" ", visible(call.summary)).strip()
    name = visible(call.name)
    words = _words_of(name)
    if words is None:
        if name == "mcp_tool_call":
            return Action(USE.done, USE.doing, summary)
        server = _SERVER.fullmatch(name)
        tool = f"{server[1]}.{server[2]}" if server else name
        return Action(USE.done, USE.doing, f"{tool} {summary}".rstrip())
    if patched := _PATCHED.findall(call.summary) if words is EDIT else None:
        summary = ", ".join(visible(path) for path in patched)
    elif words is EDIT and call.name == "file_change":
        words, summary = _changes(summary)
    if words is RUN:
        return Action(words.done, words.doing, _command(summary, folder))
    if words in _NO_DETAIL:
        return Action(words.done, words.doing, "")
    what = ", ".join(_relative(path, folder) for path in summary.split(", ")) if words in _OF_FILES else summary
    return Action(words.done, words.doing, what)


def _words_of(name: str) -> _Words | None:
    return _TOOLS.get(re.sub("[^a-z]", "", name.lower()))


def _changes(summary: str) -> tuple[_Words, str]:
    """Split the changes of files that Codex names in one line: `update app.py, add tests/test_app.py`."""
    matches = [_CHANGE.fullmatch(part) for part in summary.split(", ")]
    if not all(matches):
        return EDIT, summary
    kinds = {_CHANGES.get(match[1], EDIT) for match in matches if match}
    return (kinds.pop() if len(kinds) == 1 else EDIT), ", ".join(match[2] for match in matches if match)


def _relative(path: str, folder: str) -> str:
    if path in (folder, "."):
        return "."
    if path.startswith(f"{folder}/"):
        return path[len(folder) + 1 :]
    home = os.environ.get("HOME", "")
    return f"~{path[len(home) :]}" if len(home) > 1 and path.startswith(f"{home}/") else path


def _command(command: str, folder: str) -> str:
    for start in (f"cd {folder} && ", f"cd {folder}; ", f'cd "{folder}" && ', f"cd '{folder}' && "):
        command = command.removeprefix(start)
    return command.replace(f"{folder}/", "")


def mark(call: ToolCall, result: ToolResult) -> str:
    """Mark a call that failed, with its exit code if that is known; empty if it went well."""
    code = result.told_exit_code if _words_of(call.name) is RUN else 0
    if code:
        return f"✗ exit {code}"
    return "✗ failed" if result.failed else ""


def changed(lines: tuple[int, int] | None) -> str:
    """Count changed lines: `+3 −1`; empty if that is not known."""
    if lines is None:
        return ""
    added, removed = lines
    return " ".join([f"+{added}"] * bool(added or not removed) + [f"−{removed}"] * bool(removed))
