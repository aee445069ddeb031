"""A member's share of the plain CLI's features, by CLI and access. `make parity` measures it, docs/parity.md shows it.

The plain CLI is one whose user approves whatever it asks, in a folder that the user trusts in it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from teamchat.core.team.team import AgentSpec
from teamchat.runners.base import Access, Job, Vendor

Mode = Literal["plain", "read", "edit", "full"]
Held = Mapping[str, Mapping[Mode, bool]]
"""For each row, whether the feature works."""

ROWS: Mapping[str, str] = MappingProxyType(
    {
        "read": "files of the workspace, read",
        "write": "files of the workspace, written",
        "directories": "files of the user's additional directories, read",
        "shell": "a shell",
        "git": "`git log`",
        "run": "any command in the shell",
        "expand": "one with an expansion (`$(...)`)",
        "rules-user": "commands that the user's own rules allow",
        "rules-project": "commands that the project's rules allow",
        "network": "network in the shell",
        "variables": "variables of the user's environment in the shell",
        "web-search": "web search",
        "web-fetch": "web fetch",
        "mcp-user": "MCP servers of the user",
        "mcp-plugin": "MCP servers of plugins or extensions",
        "mcp-project": "MCP servers of the project",
        "subagents": "subagents",
        "subagents-user": "subagents of the user",
        "subagents-project": "subagents of the project",
        "skills": "skills that the model may call",
        "skills-user": "skills of the user",
        "skills-project": "skills of the project",
        "command-user": "custom commands of the user, typed",
        "command-project": "custom commands of the project, typed",
        "hooks-user": "hooks of the user",
        "hooks-project": "hooks of the project",
        "instructions-cwd": "instructions of the folder",
        "instructions-parents": "instructions of folders above, up to the repository's root",
        "instructions-subfolders": "instructions of a folder below, once a file there is read",
        "instructions-user": "instructions of the user",
        "local": "`CLAUDE.local.md`",
        "rules-files": "`.claude/rules`",
        "memory": "memory files",
        "style": "output style of the user",
        "model": "model that the user's settings name",
        "effort": "effort that the user's settings name",
        "mention": "`@path`, typed",
        "image": "images",
        "todo": "todo list or plan tool",
        "plan": "plan mode",
        "notebook": "notebook editor",
        "question": "questions to the user",
        "background": "commands in the background",
        "later": "tasks for later (cron, wake-up)",
        "git-status": "state of the repository in the prompt",
    }
)


TOLD: Mapping[str, str] = MappingProxyType(
    {"git": "git", "web-search": "web", "subagents": "subagents", "skills": "skills", "todo": "todo list"}
)
"""The rows that a member lacks, in words. MCP servers are counted."""


@cache
def parity() -> Mapping[Vendor, Held]:
    """Read the measured rows, by CLI."""
    rows: Mapping[Vendor, Held] = json.loads(Path(__file__).with_name("parity.json").read_bytes())
    return rows


def features_without(agent: AgentSpec, job: Job) -> tuple[str, ...]:
    """List the features that a member lacks and its CLI alone would have, in words; none for other programs.

    `Runner.reads_note` reports a project's own hooks and servers.
    """
    runner = agent.type.runner
    if runner.vendor is None or agent.command != (runner.vendor,):
        return ()
    given = {"git": job.git is not None, "web-search": job.web}
    lost = (word for name, word in TOLD.items() if _lost(runner.vendor, name, job.access) and not given.get(name))
    servers = [name for name in runner.servers(job.cwd, job.env) if job.servers is not None and name not in job.servers]
    counted = f"MCP ({len(servers)} server{'s' * (len(servers) != 1)})"
    return (*lost, *([counted] if servers else ()), *runner.lacks(job))


def _lost(vendor: Vendor, row: str, access: Access) -> bool:
    held = parity()[vendor][row]
    return held["plain"] and not held[access]
