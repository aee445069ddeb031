"""`host.toml`: the programs that this machine runs for teamchats that share its database. It refuses all others."""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import starmap
from pathlib import Path
from typing import Annotated

from msgspec import Struct
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from teamchat.core.agents import AGENT_TYPES, CLIS, normalize_agent_type
from teamchat.core.dispatch.choose import ORDER
from teamchat.core.dispatch.order import Order, Project
from teamchat.core.dispatch.project import common_name, is_text, project_of
from teamchat.core.errors import HostUnavailable, TeamFileError
from teamchat.core.files.folders import config_dir
from teamchat.core.files.whole_files import put_in_place, write_private
from teamchat.core.team.problems import TeamFileProblem, first_problem
from teamchat.core.team.programs import Unusable, find_program
from teamchat.core.team.team import AgentSpec
from teamchat.runners.base import Access
from teamchat.runners.untrusted.regular_files import read_regular
from teamchat.runners.untrusted.toml import in_toml, loads

NAME = "host.toml"
INIT = "teamchat worker --init"
LARGEST = 1 << 20
MOST_DAYS = 3650
LONGEST_SHOWN = 100  # characters of a wrong value


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class HostAgentTable(_Table):
    command: Annotated[list[str], Field(min_length=1)]
    like: str | None = None
    access: Access = "read"


class ProjectTable(_Table):
    folder: str
    remote: str | None = None
    root: str | None = None


class HostTable(_Table):
    unsigned: bool = False
    keep: Annotated[int, Field(ge=1, le=MOST_DAYS)] = 7
    agents: dict[str, HostAgentTable] = {}
    projects: list[ProjectTable] = []


KEYS = {"agents": tuple(HostAgentTable.model_fields), "": (*HostTable.model_fields, *ProjectTable.model_fields)}
"""The keys of each table, for the error about an unknown one."""


class HostAgent(Struct, frozen=True):
    """An agent that this host offers, and the most that it may do here."""

    spec: AgentSpec
    access: Access


class HostFile(Struct, frozen=True):
    """The offer of the file: agents by their names, and projects with their folders here.

    An `unsigned` host takes orders without a signature. A finished turn stays in the database for `keep` days, if home
    has not removed it.
    """

    path: Path
    agents: Mapping[str, HostAgent]
    projects: tuple[tuple[Project, Path], ...]
    unsigned: bool = False
    keep: int = 7

    def agent(self, order: Order) -> HostAgent:
        """Find the agent of an order. Raises `HostUnavailable` if the host does not offer that much."""
        agent = self.agents.get(normalize_agent_type(order.agent))
        if agent is None:
            raise HostUnavailable(f"does not offer the agent {order.agent!r}")
        if agent.spec.protocol != order.protocol:
            raise HostUnavailable(f"offers {order.agent!r} as one like {agent.spec.protocol!r}, not {order.protocol!r}")
        if ORDER.index(order.access) > ORDER.index(agent.access):
            raise HostUnavailable(f"offers {order.agent!r} with access {agent.access!r}, not {order.access!r}")
        return agent

    def folder(self, order: Order) -> Path:
        """Find the folder of an order's agent. Raises `HostUnavailable` if no project has it."""
        place = next((folder for project, folder in self.projects if project.is_of(order.project)), None)
        if place is None:
            names = " or ".join((*order.project.remotes, *filter(None, [order.project.root]))) or "without a name"
            raise HostUnavailable(f"does not offer the project {names}")
        try:
            cwd = (place / order.project.folder).resolve()
            is_folder = cwd.is_dir()
        except (OSError, RuntimeError, ValueError):  # links in a circle, a name that is too long, a NUL
            raise HostUnavailable(f"has no folder {order.project.folder!r} in the project") from None
        if not cwd.is_relative_to(place.resolve()):
            raise HostUnavailable(f"has the folder {order.project.folder!r} outside of the project")
        if not is_folder:
            raise HostUnavailable(f"has no folder {order.project.folder!r} in the project")
        return cwd


def host_file() -> Path:
    """Return the path of the file."""
    return config_dir() / NAME


def read_host_file(path: Path) -> HostFile:
    """Read the file's offer. Raises `HostUnavailable` if it is not there, and `TeamFileError`."""
    try:
        text = read_regular(path, LARGEST).decode()
    except FileNotFoundError:
        raise HostUnavailable(f"this machine offers nothing: there is no {path}", INIT) from None
    except (OSError, ValueError) as error:
        raise TeamFileError(f"{path}: cannot be read: {error}") from None
    raw: dict[str, object] = {}
    try:
        raw = loads(text, 8)
        return _built(HostTable.model_validate(raw), path)
    except ValidationError as error:
        raise TeamFileError(f"{path}: {first_problem(error.errors(include_url=False)[0], raw, KEYS)}") from None
    except TeamFileProblem as error:
        raise TeamFileError(f"{path}: {error}") from None
    except ValueError as error:
        raise TeamFileError(f"{path}: not TOML: {error}") from None


def _built(table: HostTable, path: Path) -> HostFile:
    agents: dict[str, HostAgent] = {}
    for name, agent_table in table.agents.items():
        key = normalize_agent_type(name)
        if not key:
            raise TeamFileProblem(f"agents {name!r}: expected a name")
        if key in agents:
            raise TeamFileProblem(f"agents {name!r}: the same agent as agents {agents[key].spec.name!r}")
        like = agent_table.like or next((row.name for row in CLIS if row.full_name == key), "plain")
        if like not in AGENT_TYPES or like == "terminal":
            known = ", ".join(kind for kind in AGENT_TYPES if kind != "terminal")
            raise TeamFileProblem(f"agents {name!r}: like: expected one of {known}, got {like!r}")
        if not Path(agent_table.command[0]).is_absolute():
            raise TeamFileProblem(
                f"agents {name!r}: command: expected an absolute path, got {agent_table.command[0]!r}"
            )
        if any("\0" in word for word in agent_table.command):
            raise TeamFileProblem(f"agents {name!r}: command: expected words without NUL")
        agents[key] = HostAgent(AgentSpec(name, tuple(agent_table.command), like), agent_table.access)
    projects = tuple(starmap(_project, enumerate(table.projects)))
    return HostFile(path, agents, projects, table.unsigned, table.keep)


def _project(number: int, table: ProjectTable) -> tuple[Project, Path]:
    folder = Path(os.path.expanduser(table.folder))  # noqa: PTH111 (which keeps the ~ of a user who is not there)
    if not folder.is_absolute() or not os.path.isdir(folder):  # noqa: PTH112 (False also for a name that is too long)
        raise TeamFileProblem(
            f"projects[{number}].folder: expected a folder by its absolute path, got {table.folder[:LONGEST_SHOWN]!r}"
        )
    if table.remote is None and table.root is None:
        try:
            project = project_of(folder)
        except HostUnavailable as error:
            raise TeamFileProblem(f"projects[{number}]: {error}") from None
        return Project(project.remotes, project.root), folder
    remote = common_name(table.remote) or table.remote if table.remote else None
    return Project((remote,) if remote else (), table.root), folder


def write_host_file(path: Path, env: Mapping[str, str], projects: list[Path]) -> str:
    """Write the file with the agents found on this machine, and these projects. Returns its text.

    Raises `FileExistsError`, `OSError`, and `HostUnavailable` for a folder that is not a project or has no name in
    TOML.
    """
    if path.exists():
        raise FileExistsError(path)
    text = (
        "# What teamchats that share a database with `teamchat worker` may have run here. See teamchat help workers.\n"
    )
    for row in CLIS:
        program = find_program(row.name, env)
        if not isinstance(program, Unusable):
            text += f'\n[agents.{row.name}]\ncommand = {in_toml([program])}\naccess = "read"\n'
    for folder in projects:
        known = project_of(folder)
        if not is_text(str(folder.resolve())):
            raise HostUnavailable(f"{folder} cannot be written to {NAME}: its name is no UTF-8")
        text += f"\n[[projects]]\nfolder = {in_toml(str(folder.resolve()))}\n"
        if known.remotes:
            text += f"remote = {in_toml(known.remotes[0])}\n"
        if known.root:
            text += f"root = {in_toml(known.root)}\n"
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = path.with_name(f"{NAME}.new")
    new.unlink(missing_ok=True)
    write_private(new, text.encode())
    put_in_place(new, path)
    return text
