"""What a member may use, in one line, and whether the tools of its keys `mcp` and `git` exist on this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec.structs import replace

from teamchat.core.errors import AgentMissing, UsageError
from teamchat.core.files.folders import state_path
from teamchat.core.team.team import AgentSpec, Member
from teamchat.runners import git_server
from teamchat.runners.base import Job, Runner
from teamchat.runners.environment import GIT_LOCAL


def may(member: Member, runner: Runner) -> str:
    """What a member may do and use, by its access and by `web`, `mcp` and `git`."""
    note = runner.access_note(member.access)
    return "; ".join(filter(None, (note, ", ".join(_tools(member)) if runner.vendor else "")))


def _tools(member: Member) -> Iterator[str]:
    if member.access != "full":
        yield "web" if member.web else "no web"
    if member.mcp:
        yield f"MCP servers {', '.join(member.mcp)}"
    elif member.mcp is not None or member.access == "read":
        yield "no MCP server"
    elif member.access == "edit":
        yield "your MCP servers"
    if member.git:
        yield "git"


def need_tools(member: Member, agent: AgentSpec, runner: Runner, env: Mapping[str, str]) -> None:
    """Raises `UsageError` for an MCP server that the user has not set up, `AgentMissing` for what git needs."""
    if member.mcp:
        _need_servers(member, agent, sorted(runner.servers(member.cwd, env)))
    if member.git and (lacks := git_server.missing(env)):
        why, hint = lacks
        raise AgentMissing(f"{member.name} has git = true, but {why}", hint)


def _need_servers(member: Member, agent: AgentSpec, there: list[str]) -> None:
    unknown = next((name for name in member.mcp or () if name not in there), None)
    if unknown is not None:
        mends = "change mcp in the team file" if there else "set it up there, or take it out of mcp in the team file"
        known = f"there are: {', '.join(there)}" if there else "there is none"
        raise UsageError(
            f"{member.name}: mcp: you have set up no server {unknown!r} in {agent.name}; {mends} ({known})"
        )


SCRATCH = Path("$TMPDIR")  # the name of a turn's own folder when no turn runs


def job_of(member: Member, agent: AgentSpec, inherited: Mapping[str, str], scratch: Path = SCRATCH) -> Job:
    """What the team file says about any turn of `member`."""
    return Job(
        program=agent.command,
        cwd=member.cwd,
        scratch=scratch,
        access=member.access,
        allow=member.allow,
        model=member.model,
        args=member.args,
        project_settings=member.project_settings,
        web=member.web,
        mcp=member.mcp,
        git=state_path() / "git" if member.git else None,
        env={**inherited, **member_env(member)},
        memory=member.memory,
        terminal=agent.terminal,
        first_byte_s=member.first_byte_s,
    )


def in_worktree(member: Member, cwd: Path) -> Member:
    """The member with that folder of its worktree. No variable of the team file leads its git to another repository."""
    return replace(member, cwd=cwd, env={name: value for name, value in member.env.items() if name not in GIT_LOCAL})


def member_env(member: Member) -> Mapping[str, str]:
    """The team file's variables for the member. Relative folders of its PATH start at its working folder."""
    if "PATH" not in member.env:
        return member.env
    folders = member.env["PATH"].split(os.pathsep)
    return {**member.env, "PATH": os.pathsep.join(str(member.cwd / folder) for folder in folders)}
