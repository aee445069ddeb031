"""The configuration of one turn of opencode, and the user's settings that affect it (observed at 1.18.33).

It is passed in OPENCODE_CONFIG_CONTENT, which overrides every file except the files of the machine's administrator. The
last matching rule for a permission counts, and the agent's rules come after the user's. So a member's agent begins with
a rule that denies everything, and ends with a copy of the user's denials.

MCP servers are switched off by name, and rules are copied, so every file of the user's has to be understood. They are
read as JSON5, which has all that opencode takes. No turn begins beside a file that is something else, or where opencode
would put the name of a server or a rule together.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from teamchat.patterns import regex
from teamchat.runners import git_server
from teamchat.runners.base import Job
from teamchat.runners.homes.folders import user_home
from teamchat.runners.untrusted.json import one_line
from teamchat.runners.untrusted.settings_json import json5_in, table_of

AGENT = "teamchat"
MACHINES = (Path("/etc/opencode"), Path("/Library/Application Support/opencode"))
READ: Mapping[str, object] = {
    "*": "deny",
    "read": {"*": "allow", "*.env": "deny", "*.env.*": "deny", "*.env.example": "allow"},  # opencode's own default asks
    **dict.fromkeys(("glob", "grep", "skill", "todowrite"), "allow"),
}
GIT = dict.fromkeys((".git", ".git/*", "*/.git", "*/.git/*"), "deny")  # its hooks and its configuration run programs
_SUBSTITUTED = regex(r"\{(?=env:|file:)")  # replaced before the text is read as JSON
_EDITORS = frozenset({"write", "edit", "patch"})
_TOOL_NAME = regex(r"[^\w-]", re.ASCII)


def content(job: Job, system: Path | None) -> str:
    """Write the configuration of a turn; `system` is the file with its system text."""
    own = {
        "share": "disabled",
        "autoupdate": False,
        "snapshot": False,  # a second repository of the workspace, written in every step
        "compaction": {"auto": False},  # its summary comes as an answer does
        "instructions": [*_instructions(job), *([str(system)] if system else [])],
        "mcp": _servers_of(job),
        **({} if job.access == "full" else {"agent": {AGENT: {"mode": "primary", "permission": _permission(job)}}}),
        **({} if job.project_settings else {"lsp": False, "formatter": False}),  # programs of the project's own
    }
    return _SUBSTITUTED.sub(r"\\u007b", json.dumps(own, ensure_ascii=False))


def _instructions(job: Job) -> list[str]:
    """List the AGENTS.md of the folder and of those above it in the repository.

    The switch in `project.py` hides them.
    """
    if job.project_settings:
        return []
    return [str(folder / "AGENTS.md") for folder in reversed(_in_repository(job.cwd))]


def _in_repository(cwd: Path) -> list[Path]:
    """List the folder and its parents up to the root of its repository; outside a repository the folder alone."""
    folders = [cwd, *cwd.parents]
    top = next((at for at, folder in enumerate(folders) if os.path.lexists(folder / ".git")), 0)
    return folders[: top + 1]


def _permission(job: Job) -> dict[str, object]:
    rules = dict(READ)
    if job.access == "edit":
        rules["edit"] = {**_edited(job.cwd), **GIT}
    if job.web:
        rules |= {"webfetch": "allow", "websearch": "allow"}
    users = sorted(servers(job.env)) if job.servers is None else job.servers
    for name in (*users, *((git_server.NAME,) if job.git else ())):
        rules[f"{_TOOL_NAME.sub('_', name)}_*"] = "allow"
    for name, denied in _denied(job.env):
        rule = rules.pop(name, "deny")
        rules[name] = {**(rule if isinstance(rule, dict) else {"*": rule}), **denied}
    return rules


def _edited(cwd: Path) -> dict[str, str]:
    """Build the rules for the files that its editor may write: the files of the folder.

    opencode itself would allow the whole repository. A pattern is compared with the real path from the repository's
    top, or from `/` where opencode finds no repository, and its `*` and `?` stand for any text.
    """
    folder = cwd.resolve()
    top = _in_repository(folder)[-1]
    if top == folder:
        return {"*": "allow"}
    names = (str(folder.relative_to(top)), str(folder).lstrip("/"))
    return {"*": "deny", **{f"{name.replace('*', '?')}/*": "allow" for name in names}}


def _denied(env: Mapping[str, str]) -> Iterator[tuple[str, dict[str, str]]]:
    """List the denials in the user's rules, by permission."""
    for settings in _settings(env):
        for name, on in table_of(settings, "tools").items():  # the older way to write rules
            if on is False:
                yield ("edit" if name in _EDITORS else name), {"*": "deny"}
        permission = settings.get("permission")
        for name, rule in permission.items() if isinstance(permission, dict) else [("*", permission)]:
            patterns = rule if isinstance(rule, dict) else {"*": rule}
            if denied := {pattern: "deny" for pattern, action in patterns.items() if action == "deny"}:
                yield name, denied


def _settings(env: Mapping[str, str]) -> Iterator[dict[str, object]]:
    """Read the settings of the user's files and variable, without files that `misunderstood` names."""
    for file in user_files(env):
        with suppress(OSError, ValueError):
            yield json5_in(file)
    with suppress(ValueError):
        yield {"permission": json.loads(env.get("OPENCODE_PERMISSION") or "{}")}


def _servers_of(job: Job) -> dict[str, object]:
    """Build the MCP settings: servers not granted to the member are off, teamchat's own is on."""
    off = set() if job.servers is None else set(servers(job.env)) - set(job.servers)
    said: dict[str, object] = {name: {"enabled": False} for name in sorted(off)}
    if job.git:
        command = git_server.server_command(job.cwd, job.git, job.env)
        waits = git_server.STARTS_IN_S * 1_000
        said[git_server.NAME] = {"type": "local", "command": command, "enabled": True, "timeout": waits}
    return said


def servers(env: Mapping[str, str]) -> set[str]:
    """List the names of the MCP servers that the user has set up."""
    return {name for settings in _settings(env) for name in table_of(settings, "mcp")}


def misunderstood(env: Mapping[str, str]) -> str | None:
    """Find a file of the user's that cannot be understood, and say why; None if all can be."""
    return next((f"{file} cannot be read: {why}" for file, why in unreadable(env)), None)


def unreadable(env: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    """List the files of the user's that cannot be understood, and why."""
    for file in user_files(env):
        try:
            settings = json5_in(file)
        except (OSError, ValueError) as error:
            yield file, one_line(str(error))
            continue
        text = json.dumps([list(table_of(settings, "mcp")), settings.get("permission"), settings.get("tools")])
        if _SUBSTITUTED.search(text):
            yield file, "it has {env:...} or {file:...} in the name of an MCP server or in a rule"


def user_files(env: Mapping[str, str]) -> Iterator[Path]:
    """List the machine's files and the user's; a later file overrides an earlier one."""
    config = Path(env.get("XDG_CONFIG_HOME") or user_home(env) / ".config") / "opencode"
    moved = [Path(env["OPENCODE_CONFIG_DIR"])] if env.get("OPENCODE_CONFIG_DIR") else []
    yield config / "config.json"
    yield from _both(config)
    if env.get("OPENCODE_CONFIG"):
        yield Path(env["OPENCODE_CONFIG"])
    for folder in (user_home(env) / ".opencode", *moved, *MACHINES):
        yield from _both(folder)


def _both(folder: Path) -> tuple[Path, Path]:
    return folder / "opencode.json", folder / "opencode.jsonc"
