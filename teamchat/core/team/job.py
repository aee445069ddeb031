"""What the team file says about any turn of a member."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from teamchat.core.files.folders import state_path
from teamchat.core.team.team import AgentSpec, Member
from teamchat.runners.base import Job
from teamchat.runners.environment import GIT_LOCAL

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
