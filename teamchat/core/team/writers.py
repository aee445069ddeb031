"""The members that may write a file, and the hooks that therefore wait until none of them works."""

from __future__ import annotations

import os
from pathlib import Path

from teamchat.core.team.team import BUILTIN_AGENTS, AgentSpec, Member, Team
from teamchat.core.team.trusted_files import files_of_hook


def may_write(member: Member, agent: AgentSpec) -> bool:
    """Return whether a turn of the member may change files.

    A built-in CLI limits a member with access "read" to reading. A program of the team's own limits nothing, and MCP
    servers, project settings and arguments can run programs that the CLI does not limit.
    """
    return member.access != "read" or not _is_bounded(member, agent)


def may_write_file(member: Member, agent: AgentSpec, cwd: Path, file: Path) -> bool:
    """Return whether the member may write the file in a turn in `cwd`; "edit" bounds a CLI to that folder."""
    if member.access == "edit" and _is_bounded(member, agent):
        return Path(os.path.realpath(file)).is_relative_to(os.path.realpath(cwd))
    return may_write(member, agent)


def _is_bounded(member: Member, agent: AgentSpec) -> bool:
    return agent in BUILTIN_AGENTS.values() and not (member.mcp or member.project_settings or member.args)


def writable_files(team: Team, hook: tuple[str, ...]) -> list[Path]:
    """List the files in a hook's words that a member of the team may write: the hook waits while one of them works."""
    members = [(member, team.agent_of(member)) for member in team.ai_members if not member.host]
    return sorted(
        file
        for file in files_of_hook(team, hook)
        if any(may_write_file(member, agent, member.cwd, file) for member, agent in members)
    )
