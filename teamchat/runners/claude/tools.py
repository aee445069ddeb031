"""Claude's tools besides those of its access: the web, MCP servers and git (observed at 2.1.330).

A member that reads has only the tools that `--tools` names; MCP tools come on top of these. In `edit` the web is taken
away, since a rule of the user's may allow it. `full` has everything.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from teamchat.patterns import regex
from teamchat.runners import git_server
from teamchat.runners.base import Job
from teamchat.runners.claude.folders import noted_at
from teamchat.runners.claude.project import shows
from teamchat.runners.homes.folders import claude_record
from teamchat.runners.untrusted.settings_json import table_in, table_of

WEB = ("WebFetch", "WebSearch")
# With these a process that stays asks its model and writes between turns, which have no receipt. A member that reads
# has none of them.
ACTS_LATER = ("CronCreate", "CronDelete", "CronList", "ScheduleWakeup", "Monitor", "Workflow")
LOOKING = ("Read", "Grep", "Glob")
_ODD = regex(r"[^A-Za-z0-9_-]")  # these characters of a server's name become `_` in the names of its tools


def servers(cwd: Path, env: Mapping[str, str]) -> dict[str, object]:
    """List the MCP servers that the user has set up, globally or for that folder, each with its definition."""
    return table_of(table_in(claude_record(env)), "mcpServers") | local_servers(cwd, env)


def local_servers(cwd: Path, env: Mapping[str, str]) -> dict[str, object]:
    """List the servers that the user has set up for that folder."""
    return table_of(table_in(claude_record(env)), "projects", str(noted_at(cwd)), "mcpServers")


def tools(job: Job) -> tuple[tuple[str, ...], dict[Path, bytes]]:
    """Build the arguments, and the file with the definitions of the servers that they name."""
    argv: list[str] = []
    if job.access == "read":
        argv += ("--tools", ",".join((*LOOKING, *(WEB if job.web else ()))))
    else:
        without_web = job.access == "edit" and not job.web
        argv += ("--disallowedTools", *ACTS_LATER, *(WEB if without_web else ()))
    given = _given(job)
    if job.servers is not None:
        # the settings stop servers that come another way than by configuration, such as those of plugins
        only = {"allowedMcpServers": [{"serverName": name} for name in given]}
        argv += ("--strict-mcp-config", "--settings", json.dumps(only, ensure_ascii=False, separators=(",", ":")))
    elif shows(job):
        argv.append("--strict-mcp-config")  # else Claude looks for some above the folder that it is given
    path = job.scratch / "mcp.json"
    defined = _unseen(job) | given
    if defined:
        argv += ("--mcp-config", str(path))
    if job.access != "full" and (allowed := tuple(_allowed(job, given))):
        argv += ("--allowedTools", *allowed)
    return tuple(argv), {path: json.dumps({"mcpServers": defined}).encode()} if defined else {}


def _unseen(job: Job) -> dict[str, object]:
    """List the servers that Claude does not find under the member's arguments, for a member that has all of the user's.

    `--setting-sources user` leaves out the folder's, and `--strict-mcp-config` leaves out all (2.1.330).
    """
    if job.servers is not None or job.project_settings:
        return {}
    return (servers if shows(job) else local_servers)(job.cwd, job.env)


def _given(job: Job) -> dict[str, object]:
    known = servers(job.cwd, job.env) if job.servers else {}
    named = {name: known[name] for name in job.servers or () if name in known}
    if job.git:
        program, *arguments = git_server.server_command(job.cwd, job.git, job.env)
        named[git_server.NAME] = {"command": program, "args": arguments}
    # without this Claude begins before a server has started, and leaves its tools out until they are searched for
    return {name: {**server, "alwaysLoad": True} for name, server in named.items() if isinstance(server, dict)}


def _allowed(job: Job, given: Mapping[str, object]) -> Iterator[str]:
    if job.access == "edit":
        yield from (f"Bash({command}:*)" for command in job.allow)
    if job.web:
        yield from WEB
    yield from (f"mcp__{_ODD.sub('_', name)}" for name in given)
