"""A team as JSON and back, with its instruction texts in it: the beginning of a cassette.

Paths are relative to the team's folder, and values of environment variables stay out.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated, Any

from msgspec import to_builtins
from msgspec.structs import asdict, replace
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from teamchat.core.agents import normalize_agent_type
from teamchat.core.check import Check, without_place
from teamchat.core.checked_structs import CheckedStruct
from teamchat.core.routing.names import fold, valid_name
from teamchat.core.team.checks import circle_of
from teamchat.core.team.team import MOST, AgentSpec, Limits, Member, Team


def _recorded_key(field: str) -> str:
    """Name a field as a team file does: an agent's protocol is `like`."""
    return "like" if field == "protocol" else field


class RecordedTeam(BaseModel):
    """All of a team that a replay needs. A recording may be continued with a team whose values are equal.

    `agents` are by their full names. A cassette may come from a stranger, so names follow the rules of a team file.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, alias_generator=_recorded_key)

    name: str
    task: str | None
    lead: str | None
    compactor: str | None = None
    compact_at_tokens: int = Field(default=40_000, ge=1)
    context_window: int = Field(ge=0, le=MOST)
    max_bytes: int = Field(ge=1)
    max_prompt_tokens: int = Field(ge=1)
    share_context: bool
    fence: bool = False  # the default for older recordings, like the next two: their prompts had none
    max_message_tokens: int = Field(default=10**9, ge=10)
    redact: bool = False
    limits: Annotated[Limits, CheckedStruct()]
    members: tuple[Annotated[Member, CheckedStruct()], ...]
    agents: dict[str, Annotated[AgentSpec, CheckedStruct()]]
    checks: dict[str, Annotated[Check, CheckedStruct()]] = {}

    @field_validator("name")
    @classmethod
    def _one_line(cls, name: str) -> str:
        if not name.isprintable():
            raise ValueError("expected one line of text")
        return name

    @field_validator("members")
    @classmethod
    def _named(cls, members: tuple[Member, ...]) -> tuple[Member, ...]:
        for member in members:
            if not valid_name(member.name):
                raise ValueError(f"expected names of letters, digits, _ . and -, got {member.name!r}")
            if not (member.title or "").isprintable():
                raise ValueError(f"expected a title of one line, got {member.title!r}")
        if len({fold(member.name) for member in members}) < len(members):
            raise ValueError("two members have the same name")
        if {member.type for member in members} != {"ai", "human"}:
            raise ValueError("expected at least one AI member and one human")
        return members

    @field_validator("checks")
    @classmethod
    def _defined(cls, checks: dict[str, Check]) -> dict[str, Check]:
        for name, check in checks.items():
            if not valid_name(name) or check.name != name or check.typed:
                raise ValueError(f"expected checks by their names, got {name!r}")
            if not check.command or not checks.keys() >= set(check.needs):
                raise ValueError(f"the check {name!r} has no command, or one that it needs is missing")
        if len({fold(name) for name in checks}) < len(checks) or circle_of(checks):
            raise ValueError("two checks have the same name, or need each other")
        return checks

    @model_validator(mode="after")
    def _known(self) -> RecordedTeam:
        talking = {member.name: member for member in self.members if member.type == "ai"}
        if self.lead is not None and self.lead not in talking:
            raise ValueError(f"the lead {self.lead!r} is not an AI member")
        if self.compactor is not None and self.compactor not in talking:
            raise ValueError(f"the compactor {self.compactor!r} is not an AI member")
        for member in talking.values():
            if member.agent is None or normalize_agent_type(member.agent) not in self.agents:
                raise ValueError(f"the agent {member.agent!r} of {member.name!r} is missing")
            if not talking.keys() >= set(member.fallback):
                raise ValueError(f"a fallback of {member.name!r} is missing")
        for agent in self.agents.values():
            if not agent.command or not agent.name.isprintable():
                raise ValueError(f"the agent {agent.name!r} has no command, or no name")
            if (agent.protocol == "terminal") != (agent.terminal is not None):
                raise ValueError(f"the agent {agent.name!r} has an incomplete terminal configuration")
            if agent.row and not _compiles(agent.row.fail_pattern):
                raise ValueError(f"the agent {agent.name!r} has a fail_pattern that is no regular expression")
        return self


def _compiles(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return False
    return True


def team_to_json(team: Team) -> dict[str, Any]:
    own = {name: getattr(team, name) for name in RecordedTeam.model_fields}
    return own | {
        "limits": to_builtins(team.limits),
        "members": [_member(team, member) for member in team.members],
        "agents": {name: _agent(team, spec) for name, spec in team.agents.items()},
        "checks": {name: _check(team, check) for name, check in team.checks.items()},
    }


def _member(team: Team, member: Member) -> dict[str, Any]:
    fields = asdict(member)
    fields |= {"cwd": _relative(member.cwd, team.root), "env": dict.fromkeys(member.env, ""), "knowledge": {}}
    fields["instruction_file"] = member.instruction_file and _relative(member.instruction_file, team.root)
    return fields


def _agent(team: Team, spec: AgentSpec) -> dict[str, Any]:
    fields: dict[str, Any] = to_builtins(spec)
    fields[_recorded_key("protocol")] = fields.pop("protocol")
    program, *arguments = spec.command
    own = [f"./{_relative(Path(word), team.root)}" if _is_below(word, team.root) else word for word in arguments]
    fields["command"] = [_relative(Path(program), team.root) if spec.local else program, *own]
    return fields if spec.row else {name: value for name, value in fields.items() if name != "row"}


def _is_below(word: str, root: Path) -> bool:
    return word.startswith("/") and Path(word).is_relative_to(root)


def _check(team: Team, check: Check) -> dict[str, Any]:
    return asdict(without_place(check, team.root)) | {"env": dict.fromkeys(check.env, "")}


def _relative(path: Path, root: Path) -> str:
    """Make the path relative to the team's folder; outside it only the name stays.

    A cassette has no folders of its machine.
    """
    return os.path.relpath(path, root) if path.is_relative_to(root) else path.name


def team_from_json(recorded: RecordedTeam, root: Path) -> Team:
    """Build the team of a cassette. Its members work below the folder `root`, in separate folders if they did so."""
    own = {name: getattr(recorded, name) for name in RecordedTeam.model_fields}
    return in_folder(Team(**own, root=root), root)


def in_folder(team: Team, root: Path) -> Team:
    """Move all members of the team below `root`, an empty folder: a replay touches no other one."""
    return replace(
        team,
        root=root,
        members=tuple(
            replace(member, cwd=_below(root, team.root, member.cwd), knowledge={}) for member in team.members
        ),
        checks={name: without_place(check, team.root) for name, check in team.checks.items()},
    )


def _below(root: Path, old: Path, cwd: Path) -> Path:
    written = Path(_relative(old / cwd, old))
    return root / Path(*(part for part in written.parts if part not in ("..", "/")))
