"""A team as JSON and back, with its instruction texts in it: what a cassette begins with.

Paths are relative to the team's folder, and values of environment variables stay out.
"""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

from teamchat.core.team import AgentSpec, Limits, Member, Team


def team_to_json(team: Team) -> dict[str, Any]:
    """All of the team that a replay needs; equal for teams that a recording may be continued with."""
    return {
        "name": team.name,
        "task": team.task,
        "lead": team.lead,
        "context_window": team.context_window,
        "max_bytes": team.max_bytes,
        "max_prompt_tokens": team.max_prompt_tokens,
        "share_context": team.share_context,
        "limits": dataclasses.asdict(team.limits),
        "members": [_member(team, member) for member in team.members],
        "agents": {name: _agent(team, spec) for name, spec in team.agents.items()},
    }


def _member(team: Team, member: Member) -> dict[str, Any]:
    fields = {field.name: getattr(member, field.name) for field in dataclasses.fields(member)}
    fields |= {"cwd": _relative(member.cwd, team.root), "env": dict.fromkeys(member.env, "")}
    fields["instruction_file"] = member.instruction_file and _relative(member.instruction_file, team.root)
    return fields


def _agent(team: Team, spec: AgentSpec) -> dict[str, Any]:
    fields = dataclasses.asdict(spec)
    program = spec.command[0]
    fields["command"] = [_relative(Path(program), team.root) if spec.local else program, *spec.command[1:]]
    return fields


def _relative(path: Path, root: Path) -> str:
    """The path from the team's folder; of one outside it only the name, so that no machine's folders are told."""
    return os.path.relpath(path, root) if path.is_relative_to(root) else path.name


def team_from_json(data: dict[str, Any], root: Path) -> Team:
    """The team of a cassette, whose members all work in the folder `root`. Raises ValueError, KeyError or TypeError."""
    from pydantic import TypeAdapter

    members = [{**member, "cwd": str(root)} for member in data["members"]]
    return Team(
        **{key: data[key] for key in ("name", "task", "lead", "context_window", "max_bytes", "max_prompt_tokens")},
        share_context=data["share_context"],
        limits=TypeAdapter(Limits).validate_python(data["limits"]),
        members=TypeAdapter(tuple[Member, ...]).validate_python(members),
        agents=TypeAdapter(dict[str, AgentSpec]).validate_python(data["agents"]),
        root=root,
    )
