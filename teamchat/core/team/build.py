"""Builds the `Team` from a checked team file.

It decides what takes several keys to decide, and finds the files and folders that the file names.
"""

from __future__ import annotations

import os
import stat
from codecs import BOM_UTF8
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from msgspec.structs import replace

from teamchat.core.agents import CLIS, ROWS, normalize_agent_type
from teamchat.core.made import made_of
from teamchat.core.routing.names import fold, valid_name
from teamchat.core.team.problems import TeamFileProblem, nearest
from teamchat.core.team.team import (
    BUILTIN_AGENTS,
    AgentSpec,
    Limits,
    Member,
    Team,
    Workspace,
    default_human,
    folder_name,
)
from teamchat.runners.agent_row import AgentRow
from teamchat.runners.base import Memory, Terminal
from teamchat.runners.untrusted.json import listed
from teamchat.runners.untrusted.regular_files import LARGEST, read_regular

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from teamchat.core.check import Check
    from teamchat.core.engine.workflow import NamedProcess
    from teamchat.core.team.schema import AgentTable, HooksTable, LimitsTable, MemberTable, TeamFile, TeamTable

HOOKS = ("message", "turn_started", "turn_finished", "asked", "paused", "task_changed")
_OF_A_HUMAN = {"name", "type", "title"}
_TOOLS = ("web", "mcp", "git")
_OF_A_TERMINAL = {"prompt_pattern", "submit", "exit"}
_OF_PLAIN = {
    "stdin": "prompt",
    "mentions": "mentions",
    "reply": "reply",
    "json_path": "json",
    "fail_pattern": "fail_pattern",
}
"""The keys of an `[agents]` table for a plain program, and the fields of its row."""
_NO_FILES = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def build_team(file: TeamFile, path: Path, root: Path, login: str) -> Team:
    """Build the team of the file at `path`, whose members work in `root`. Raises `TeamFileProblem`.

    A file without a human gets one (`default_human`), after its own members.
    """
    agents = _with_hosted(_with_rows(_agents(file.agents, path.parent), file.members), file.members)
    _check_names(file.members)
    known = _knowledge(file.knowledge.paths, path.parent, "knowledge: paths")
    members = [_member(table, agents, path.parent, root, known) for table in file.members]
    if all(member.type == "human" for member in members):
        raise TeamFileProblem("members: expected at least one AI member")
    if all(member.type == "ai" for member in members):
        members.append(default_human(login, members, root))
    settings = file.team
    _check_fallbacks(members)
    checks: Mapping[str, Check] = {}
    if file.checks:
        from teamchat.core.team.build_checks import build_checks

        checks = build_checks(file.checks, partial(_program, path.parent))
    processes: Mapping[str, NamedProcess] = {}
    if file.processes:
        from teamchat.core.team.build_processes import build_processes

        processes = build_processes(file.processes, members, checks)
    return made_of(
        Team,
        settings,
        name=settings.name or folder_name(path.parent if path.name == "teamchat.toml" else path.with_suffix("")),
        members=tuple(members),
        root=root,
        path=path,
        lead=_speaker("lead", settings.lead, members),
        compactor=_compactor(settings, members),
        keep_checkpoints_s=settings.keep_checkpoints,
        knowledge_tokens=file.knowledge.max_tokens,
        experience_tokens=file.experience.max_tokens if file.experience.enabled else 0,
        limits=_limits(settings.limits, members, agents),
        agents=agents,
        processes=processes,
        hooks=_hooks(file.hooks, path.parent),
        checks=checks,
    )


def _hooks(table: HooksTable, folder: Path) -> Mapping[str, tuple[str, ...]]:
    """Collect the commands of the hooks, by the names of these."""
    hooks: dict[str, tuple[str, ...]] = {}
    for name in HOOKS:
        if command := getattr(table, name):
            program, *arguments = command
            hooks[name] = (_program(folder, program, f"hooks: {name}[0]"), *arguments)
    return MappingProxyType(hooks)


def _program(folder: Path, written: str, where: str) -> str:
    """Resolve a program with a `/` relative to the team file; others are looked for when they run."""
    return str(_path(folder, written, where)) if "/" in written else written


def read_text(path: Path, largest: int = LARGEST) -> str:
    """Read a file of up to `largest` bytes, without a byte order mark. Raises `TeamFileProblem` (the reason)."""
    try:
        return _content(path, largest).removeprefix(BOM_UTF8).decode()  # the codec "utf-8-sig" takes 0.2 ms to load
    except (FileNotFoundError, NotADirectoryError):
        raise TeamFileProblem("no such file") from None
    except UnicodeDecodeError as error:
        raise TeamFileProblem(f"not UTF-8 (byte {error.start})") from None
    except OSError as error:
        raise TeamFileProblem(f"cannot be read: {error.strerror}") from None


def _content(path: Path, largest: int) -> bytes:
    if not stat.S_ISREG(mode := path.stat().st_mode):
        what = next((f"{name}, " for is_one, name in _NO_FILES if is_one(mode)), "")
        raise TeamFileProblem(f"{what}not a file")
    try:
        return read_regular(path, largest)
    except ValueError:
        raise TeamFileProblem(f"has {path.stat().st_size:,} bytes, and {largest:,} are the most") from None


def _agents(tables: Mapping[str, AgentTable], folder: Path) -> Mapping[str, AgentSpec]:
    own: dict[str, AgentSpec] = {}
    for name, table in tables.items():
        key = normalize_agent_type(name)
        if key in own:
            raise TeamFileProblem(f"agents {name!r}: the same agent as agents {own[key].name!r}")
        own[key] = _agent(name, table, folder)
    return MappingProxyType({**BUILTIN_AGENTS, **own})


def _agent(name: str, table: AgentTable, folder: Path) -> AgentSpec:
    where = f"agents {name!r}"
    program, *arguments = (table.command[0], *(_argument(folder, word) for word in table.command[1:]))
    local = "/" in program and not program.startswith(("/", "~"))
    if "/" in program:
        program = str(_path(folder, program, f"{where}: command[0]"))
    if terminal := _terminal(table, where):
        _row(table, "a terminal", where)
        return AgentSpec(name, (program, *arguments), "terminal", terminal, local)
    builtin = BUILTIN_AGENTS.get(normalize_agent_type(name))
    protocol = table.like or (builtin.protocol if builtin else "plain")
    return AgentSpec(name, (program, *arguments), protocol, local=local, row=_row(table, protocol, where))


def _argument(folder: Path, written: str) -> str:
    """Resolve an argument with `./` or `../` relative to the team file, if it names something there."""
    if not written.startswith(("./", "../")):
        return written
    path = os.path.normpath(folder / written)
    return path if os.path.exists(path) else written  # noqa: PTH110 (a name that is too long is no path)


def _row(table: AgentTable, protocol: str, where: str) -> AgentRow | None:
    """Build a row of the table's settings for a plain program, if it has any."""
    said = [key for key in _OF_PLAIN if key in table.model_fields_set]
    if said and protocol != "plain":
        key = said[0].removesuffix("_path")
        raise TeamFileProblem(f"{where}: {key}: expected only for a plain program, not for one like {protocol}")
    return AgentRow(**{_OF_PLAIN[key]: getattr(table, key) for key in said}) if said else None


def _terminal(table: AgentTable, where: str) -> Terminal | None:
    """Build the settings of the agent's terminal; None for an agent on pipes."""
    if table.transport == "pipe":
        if unfit := sorted(table.model_fields_set & _OF_A_TERMINAL):
            raise TeamFileProblem(f'{where}: {unfit[0]}: expected only with transport = "pty"')
        return None
    if table.prompt_pattern is None:
        raise TeamFileProblem(
            f'{where}: prompt_pattern: missing, expected a pattern of its prompt with transport = "pty"'
        )
    if table.like not in {None, "plain"}:
        raise TeamFileProblem(f"{where}: like: expected 'plain' with transport = \"pty\", got {table.like!r}")
    return Terminal(table.prompt_pattern, table.submit or "\r", table.exit)


def _check_names(members: Iterable[MemberTable]) -> None:
    seen: dict[str, str] = {}
    for member in members:
        key = fold(member.name)
        if key in seen:
            taken = f"two members are named {seen[key]!r} (case, - and _ are ignored)"
            raise TeamFileProblem(f"members {member.name!r}: name: {taken}")
        seen[key] = member.name


def _member(
    table: MemberTable, agents: Mapping[str, AgentSpec], folder: Path, root: Path, known: Mapping[str, Path]
) -> Member:
    where = f"members {table.name!r}"
    if table.type == "human":
        if unfit := sorted(table.model_fields_set - _OF_A_HUMAN):
            raise TeamFileProblem(f"{where}: {unfit[0]}: expected only name, type and title of a human")
        return Member(table.name, "human", root, table.title)
    if table.host:
        _check_hosted(table, where)
    _check_agent(table.agent, agents, where)
    _check_never(agents[normalize_agent_type(table.agent or "")], table.args, where)
    _check_tools(table, agents[normalize_agent_type(table.agent or "")], where)
    cwd = _path(root, table.cwd, f"{where}: cwd")
    file, text = _instruction(table.instruction_file, folder, where)
    return made_of(
        Member,
        table,
        cwd=cwd,
        instruction_file=file,
        instruction_file_text=text,
        timeout_s=table.timeout,
        stall_s=table.stall,
        first_byte_s=table.first_byte,
        mcp=None if table.mcp is None else tuple(dict.fromkeys(table.mcp)),
        memory=_memory(table, agents[normalize_agent_type(table.agent or "")], where),
        knowledge=MappingProxyType({**known, **_knowledge(table.knowledge, folder, f"{where}: knowledge")}),
        workspace=_workspace(table, table.host),
        host=tuple(dict.fromkeys(table.host)),
        host_wait_s=table.host_wait,
    )


def _with_rows(agents: Mapping[str, AgentSpec], members: Iterable[MemberTable]) -> Mapping[str, AgentSpec]:
    """Add the agents that have a row, if their names are free."""
    own: dict[str, AgentSpec] = {}
    for name in {member.agent for member in members if member.agent and not member.host}:
        if (key := normalize_agent_type(name)) not in agents:
            from teamchat.core.team.agent_rows import find_row

            if row := find_row(name):
                own[key] = AgentSpec(name, row.command, row=row)
    return MappingProxyType({**agents, **own}) if own else agents


def _with_hosted(agents: Mapping[str, AgentSpec], members: Iterable[MemberTable]) -> Mapping[str, AgentSpec]:
    """Add the agents that only hosts know: each host says how to read its own when it is chosen."""
    names = {member.agent for member in members if member.host and member.agent}
    own = {normalize_agent_type(name): AgentSpec(name, (name,)) for name in sorted(names)}
    return MappingProxyType({**own, **agents})


def _check_hosted(table: MemberTable | Member, where: str) -> None:
    """Raise `TeamFileProblem` for settings that do not reach a host."""
    for key in ("args", "env", "env_keep", "mcp", "git", "project_settings"):
        if getattr(table, key) or (key == "mcp" and table.mcp is not None):
            raise TeamFileProblem(f"{where}: {key}: a host has its own; remove it, or remove host")
    if table.memory == "live":
        raise TeamFileProblem(f'{where}: memory: no process stays on a host, expected "fresh" or "resume"')
    if table.workspace == "shared" and table.access != "read":
        raise TeamFileProblem(f"{where}: workspace: who may write on a host has a worktree; remove it, or remove host")


def _workspace(member: MemberTable | Member, hosts: Sequence[str]) -> Workspace | None:
    """Choose where a member works: one that may write on a host has a worktree, whose files go there and back."""
    return "worktree" if hosts and member.access != "read" else member.workspace


def on_hosts(team: Team, names: Sequence[str], without: Collection[str]) -> Team:
    """Put all AI members of the team on these hosts, except those `without`. Raises `TeamFileProblem`."""
    for name in names:
        if not valid_name(name):
            raise TeamFileProblem(f"expected the name of a host, or any, got {name!r}")
    hosts, members = tuple(dict.fromkeys(names)), []
    for member in team.members:
        if member.type == "ai" and member.name not in without:
            _check_hosted(member, f"members {member.name!r}")
            members.append(replace(member, host=hosts, workspace=_workspace(member, hosts)))
        else:
            members.append(member)
    return replace(team, members=tuple(members), as_written=team)


def _memory(table: MemberTable, agent: AgentSpec, where: str) -> Memory:
    """Return the memory as written, if the agent's CLI has it. By default a member that may edit has a memory."""
    sessions = agent.type.runner.sessions
    if table.memory is None:
        return "fresh" if sessions is None or table.access == "read" else "resume"
    if table.memory != "fresh" and sessions is None:
        raise TeamFileProblem(f'{where}: memory: agent {agent.name!r} has no sessions to continue, expected "fresh"')
    if table.memory == "live" and sessions and not sessions.live:
        live = listed(*(row.name for row in CLIS if row.runner.sessions and row.runner.sessions.live))
        raise TeamFileProblem(f'{where}: memory: "live" is only for {live}, expected "fresh" or "resume"')
    return table.memory


def _check_agent(agent: str | None, agents: Mapping[str, AgentSpec], where: str) -> None:
    known = [spec.name for spec in agents.values()]
    if agent is None:
        raise TeamFileProblem(f"{where}: agent: missing, expected one of {', '.join(known)}")
    if normalize_agent_type(agent) not in agents:
        from teamchat.core.team.agent_rows import row_names

        known += row_names()
        raise TeamFileProblem(f"{where}: agent: unknown agent {agent!r}, {nearest(agent, known)}")


def _check_never(agent: AgentSpec, args: Sequence[str], where: str) -> None:
    """Raise for a word that the program must never get, also if a table names the program itself."""
    row = agent.row if agent.row and agent.row.never else _row_of_program(agent)
    if row and row.never:
        from teamchat.core.team.agent_rows import forbidden

        if given := forbidden(row, (*agent.command, *args)):
            why = row.why_never or "its row says so"
            raise TeamFileProblem(f"{where}: {given} must never be given to {agent.name}: {why}")


def _row_of_program(agent: AgentSpec) -> AgentRow | None:
    """Find teamchat's own row of the program that an `[agents]` table names."""
    name = Path(agent.command[0]).name
    if agent.type in CLIS or not (ROWS / f"{name}.toml").is_file():
        return None
    from teamchat.core.team.agent_rows import find_row

    return find_row(name)


def _check_tools(table: MemberTable, agent: AgentSpec, where: str) -> None:
    """Raise if an agent gets tools that it lacks, or a list of commands that it cannot be held to."""
    if table.allow and agent.type.allow == "refused":
        why = f"{agent.name if agent.row else agent.type.name} cannot be held to a list of commands"
        raise TeamFileProblem(f'{where}: allow: {why}; remove it, and where it is to run commands set access = "full"')
    if (row := agent.row) and row.access and table.access not in row.access:
        raise TeamFileProblem(f"{where}: access: the row of {agent.name} has {listed(*row.access)} alone")
    if table.model and agent.type not in CLIS and not (agent.row and agent.row.model):
        takes = "its row has no `model`" if agent.row and agent.row.origin else "teamchat does not know how to name one"
        raise TeamFileProblem(f"{where}: model: {agent.name} takes none ({takes}); remove it, or put it into a command")
    if agent.type not in CLIS and (asked := [key for key in _TOOLS if getattr(table, key)]):
        clis = listed(*(row.name for row in CLIS))
        raise TeamFileProblem(f"{where}: {asked[0]}: expected only for {clis}, not for {agent.name}")


def _instruction(written: str | None, folder: Path, where: str) -> tuple[Path | None, str | None]:
    if written is None:
        return None, None
    path = _path(folder, written, f"{where}: instruction_file")
    try:
        return path, read_text(path)
    except TeamFileProblem as mistake:
        raise TeamFileProblem(f"{where}: instruction_file: {path}: {mistake}") from None


def _knowledge(written: Iterable[str], folder: Path, where: str) -> dict[str, Path]:
    """Locate the files and folders, by their names. Each turn reads their content itself."""
    places = {}
    for name in written:
        path = _path(folder, name, where)
        try:
            mode = path.stat().st_mode
            readable = os.access(path, os.R_OK | (os.X_OK if stat.S_ISDIR(mode) else 0))
        except (FileNotFoundError, NotADirectoryError):
            raise TeamFileProblem(f"{where}: no file or folder {path}") from None
        except OSError as error:
            raise TeamFileProblem(f"{where}: {path}: cannot be read: {error.strerror}") from None
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise TeamFileProblem(f"{where}: {path}: not a file or folder")
        if not readable:
            raise TeamFileProblem(f"{where}: {path}: cannot be read: Permission denied")
        places[name] = path.resolve()  # trust is given to this place; a link made later must not lead elsewhere
    return places


def _path(folder: Path, written: str, where: str) -> Path:
    try:
        return folder / Path(written).expanduser()
    except RuntimeError:
        raise TeamFileProblem(f"{where}: no home folder for {written!r}") from None


def _speaker(key: str, written: str | None, members: Iterable[Member]) -> str | None:
    names = [member.name for member in members if member.type == "ai"]
    if written is None:
        return None
    for name in names:
        if fold(name) == fold(written):
            return name
    raise TeamFileProblem(f"team: {key}: no AI member {written!r}, {nearest(written, names)}")


def _compactor(settings: TeamTable, members: Iterable[Member]) -> str | None:
    if settings.compactor is None and "compact_at_tokens" in settings.model_fields_set:
        raise TeamFileProblem("team: compact_at_tokens: expected only with compactor, which names who summarises")
    return _speaker("compactor", settings.compactor, members)


def _check_fallbacks(members: Iterable[Member]) -> None:
    names = [member.name for member in members if member.type == "ai"]
    for member in members:
        for written in member.fallback:
            if written not in names or written == member.name:
                others = [name for name in names if name != member.name]
                raise TeamFileProblem(
                    f"members {member.name!r}: fallback: no other AI member {written!r}, {nearest(written, others)}"
                )


def _limits(table: LimitsTable, members: Iterable[Member], agents: Mapping[str, AgentSpec]) -> Limits:
    """Build the limits. Refuse one that some member cannot keep: not every CLI reports the cost of a turn."""
    if table.cost_usd is not None:
        for member in members:
            agent = agents[normalize_agent_type(member.agent)] if member.agent is not None else None
            if agent and not agent.type.reports_cost:
                silent = f"member {member.name!r} ({member.agent}) reports none"
                raise TeamFileProblem(
                    f"team.limits: cost_usd: expected only where every member reports its cost; {silent}"
                )
    return made_of(Limits, table)
