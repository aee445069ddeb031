"""Reads the files of agent_chatter: its saved sessions (schema 1.0) and its team configurations (up to schema 1.2).

A session holds a snapshot, with other names for a speaker's fields. A configuration becomes a team file. What has no
counterpart is returned as remarks, a line each.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from teamchat.core.agents import CLIS, normalize_agent_type
from teamchat.runners.toml import in_toml
from teamchat.runners.untrusted_json import one_line

SESSION = "1.0"
CONFIGURATIONS = ("1.0", "1.1", "1.2")
CONFIGURATION = frozenset({"schemaVersion", "agents", "team", "maxRounds", "conversation"})
MEMBER = frozenset(
    {"name", "type", "role", "displayRole", "agentType", "agentConfigId", "systemInstruction", "instructionFile"}
    | {"env", "baseDir", "workDir", "additionalArgs"}
)
LONGEST_MS = 24 * 60 * 60 * 1000  # of a turn
LONGEST_SHOWN = 80  # characters of a value in a remark
NAMES = (("roleId", "id"), ("roleName", "name"), ("roleTitle", "displayName"))
"""The names of a speaker's fields in a snapshot, and those of later versions."""
_CLI = {row.full_name: row.name for row in CLIS}


def is_session(value: Mapping[str, Any]) -> bool:
    return isinstance(value.get("context"), dict) and "schemaVersion" in value


def is_configuration(value: Mapping[str, Any]) -> bool:
    return isinstance(value.get("team"), dict) and "members" in value["team"]


def snapshot_of(session: Mapping[str, Any]) -> tuple[dict[str, Any], str, tuple[str, ...]]:
    """The snapshot in a session, the name of its team, and what is left out. Raises `ValueError`."""
    if session["schemaVersion"] != SESSION:
        raise ValueError(f"it is a session of schema {_shown(session['schemaVersion'])}; only {SESSION} is known")
    metadata = session.get("metadata")
    summary = metadata.get("summary") if isinstance(metadata, dict) else None
    lost = {"sessionId": session.get("sessionId"), "updatedAt": session.get("updatedAt"), "metadata.summary": summary}
    remarks = tuple(_lost(name, value) for name, value in lost.items() if value is not None)
    return session["context"], str(session.get("teamId") or ""), remarks


def with_own_names(snapshot: Mapping[str, Any]) -> dict[str, Any]:
    """The snapshot with the names of its version 1 for what later versions call otherwise."""
    messages = snapshot.get("messages")
    return {**snapshot, "messages": list(map(_message, messages)) if isinstance(messages, list) else messages}


def _message(message: object) -> object:
    if not isinstance(message, dict):
        return message
    speaker, routing = message.get("speaker"), message.get("routing")
    changed = dict(message)
    if isinstance(speaker, dict):
        changed["speaker"] = {**speaker, **_renamed(speaker)}
    if isinstance(routing, dict) and isinstance(listed := routing.get("resolvedAddressees"), list):
        changed["routing"] = {**routing, "resolvedAddressees": list(map(_addressee, listed))}
    return changed


def _renamed(speaker: Mapping[str, Any]) -> dict[str, Any]:
    return {old: speaker[new] for old, new in NAMES if speaker.get(old) is None and new in speaker}


def _addressee(listed: object) -> object:
    """The name of an addressee; one that was found nowhere has only what was typed."""
    if not isinstance(listed, dict):
        return listed
    return next((listed[key] for key in ("memberName", "roleName", "identifier") if listed.get(key)), "")


class _Team(Struct):
    """A team file in the making. `lost` is what has no counterpart."""

    lines: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)

    def table(self, head: str) -> None:
        self.lines += ["", head]

    def key(self, name: str, value: object) -> None:
        self.lines.append(f"{name} = {value if isinstance(value, int) else in_toml(value)}")  # type: ignore[arg-type]

    def leave_out_others(self, path: str, table: Mapping[str, Any], known: frozenset[str]) -> None:
        self.leave_out(path, table, *sorted(set(table) - known))

    def leave_out(self, path: str, table: Mapping[str, Any], *names: str, why: str = "") -> None:
        self.lost += [_lost(f"{path}{name}", table[name], why) for name in names if table.get(name) is not None]


def team_file(config: Mapping[str, Any], folder: Path, into: Path) -> tuple[str, tuple[str, ...]]:
    """The text of a team file for a configuration of the `folder`, and what is left out.

    Paths are made relative to `into`, the folder of the team file. Every member may only read. Raises `ValueError`.
    """
    if config.get("schemaVersion") not in CONFIGURATIONS:
        version = _shown(config.get("schemaVersion"))
        raise ValueError(f"it is a team configuration of schema {version}; {', '.join(CONFIGURATIONS)} are known")
    given, made = config["team"], _Team()
    made.lines = ["# Imported from agent_chatter; `teamchat help team-file` explains every key."]
    made.table("[team]")
    made.key("name", one_line(_text(given, "name", "team."), 255))
    made.leave_out_others("team.", given, frozenset({"name", "members", "instructionFile"}))
    made.leave_out("team.", given, "instructionFile", why="give it to members as instruction_file")
    _limits(made, config)
    agents = {str(agent.get("name")): agent for agent in _tables(config.get("agents"), "agents")}
    timeout = _timeout(made, config.get("conversation"))
    used: set[str] = set()
    for number, member in enumerate(_tables(given["members"], "team.members"), 1):
        agent = _member(made, member, f"team.members.{number}.", timeout, lambda path: _relative(folder, path, into))
        used |= {agent} if agent is not None else set()
    _agents(made, agents, used)
    made.leave_out_others("", config, CONFIGURATION)
    if used:
        made.lost.append('access: every member may only read here; access = "edit" lets it change files')
    return "\n".join(made.lines) + "\n", tuple(made.lost)


def _limits(made: _Team, config: Mapping[str, Any]) -> None:
    rounds = config.get("maxRounds")
    if isinstance(rounds, int) and rounds > 0:
        made.table("[team.limits]")
        made.key("turns", rounds)
    elif rounds is not None:
        made.leave_out("", config, "maxRounds", why="a team file always has a limit of turns")


def _timeout(made: _Team, conversation: object) -> str | None:
    if not isinstance(conversation, dict):
        return None
    made.leave_out_others("conversation.", conversation, frozenset({"maxAgentResponseTime"}))
    longest = conversation.get("maxAgentResponseTime")
    if isinstance(longest, int) and 0 < longest <= LONGEST_MS:
        return f"{longest / 1000:g}s"
    made.leave_out("conversation.", conversation, "maxAgentResponseTime")
    return None


def _member(
    made: _Team, member: Mapping[str, Any], path: str, timeout: str | None, relative: Callable[[str], str]
) -> str | None:
    """Write a member's table; the name of its agent, None for a person."""
    made.table("[[members]]")
    made.key("name", _text(member, "name", path))
    made.leave_out_others(path, member, MEMBER)
    human = member.get("type") == "human"
    if human:
        made.key("type", "human")
    if title := member.get("displayRole") or member.get("role"):
        made.key("title", one_line(str(title), 255))
    if member.get("displayRole"):
        made.leave_out(path, member, "role")
    if human:
        made.leave_out(path, member, "systemInstruction", "instructionFile", "env", "baseDir", "workDir")
        return None
    agent = str(member.get("agentType") or member.get("agentConfigId") or "")
    if not agent:
        raise ValueError(f"{path}agentType is missing")
    agent = _CLI.get(normalize_agent_type(agent), agent)
    made.key("agent", agent)
    if timeout:
        made.key("timeout", timeout)
    if instruction := _joined(member.get("systemInstruction"), f"{path}systemInstruction"):
        made.key("system_instruction", instruction)
    _files(made, member, path, relative)
    _environment(made, member, path)
    made.leave_out(path, member, "additionalArgs", why="args gives a member arguments")
    return agent


def _files(made: _Team, member: Mapping[str, Any], path: str, relative: Callable[[str], str]) -> None:
    base = str(member.get("baseDir") or ".")
    if (given := member.get("instructionFile")) is not None:
        file = relative(str(given) if member.get("roleDir") else os.path.join(base, str(given)))  # noqa: PTH118
        if os.path.isfile(file):  # noqa: PTH113 (it raises nothing, whatever the name)
            made.key("instruction_file", file)
        else:
            made.leave_out(path, member, "instructionFile", why="there is no such file")
    if (work := member.get("workDir")) is not None:
        if os.path.isdir(relative(str(work))):  # noqa: PTH112 (likewise)
            made.key("cwd", relative(str(work)))
        else:
            made.leave_out(path, member, "workDir", why="there is no such folder")
    made.leave_out(path, member, "baseDir", why="members work in the folder of the team file; cwd names another")


def _environment(made: _Team, member: Mapping[str, Any], path: str) -> None:
    env = member.get("env")
    if not isinstance(env, dict) or not all(isinstance(value, str) for value in env.values()):
        made.leave_out(path, member, "env")
    elif env:
        pairs = ", ".join(f"{in_toml(name)} = {in_toml(value)}" for name, value in env.items())
        made.lines.append(f"env = {{ {pairs} }}")


def _agents(made: _Team, agents: Mapping[str, Mapping[str, Any]], used: AbstractSet[str]) -> None:
    """Write the tables of programs that are no known CLI. teamchat runs the known ones in its own way."""
    for name, agent in agents.items():
        known = _CLI.get(normalize_agent_type(name))
        path, command = f"agents.{name}.", agent.get("command")
        made.leave_out_others(path, agent, frozenset({"name", "command", "args", "usePty"}))
        if known:
            made.leave_out(path, agent, "command", "args", why=f"teamchat runs {known} in its own way")
            continue
        if name not in used or not isinstance(command, str):
            made.lost.append(_lost(f"agents.{name}", agent))
            continue
        args = agent.get("args")
        words = [command, *map(str, args if isinstance(args, list) else [])]
        made.table(f"[agents.{in_toml(name)}]")
        made.key("command", words)
        if agent.get("usePty"):
            made.leave_out(path, agent, "usePty", why='transport = "pty" needs a prompt_pattern')
    for name in sorted(used):
        if name not in _CLI.values() and not isinstance(agents.get(name, {}).get("command"), str):
            raise ValueError(f"agent {_shown(name)} is no CLI that teamchat knows, and the file has no command for it")


def _relative(folder: Path, path: str, into: Path) -> str:
    return os.path.relpath(folder / os.path.expanduser(path), into)  # noqa: PTH111 (likewise)


def _tables(value: object, path: str) -> Iterator[Mapping[str, Any]]:
    if value is None:
        return
    if not (isinstance(value, list) and all(isinstance(one, dict) for one in value)):
        raise ValueError(f"{path} is no list of objects")
    yield from value


def _text(table: Mapping[str, Any], name: str, path: str) -> str:
    if not isinstance(value := table.get(name), str) or not value.strip():
        raise ValueError(f"{path}{name} is missing")
    return value


def _joined(value: object, path: str) -> str:
    """An instruction, which is a text or a list of lines."""
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        return "\n".join(value)
    if value is None or isinstance(value, str):
        return value or ""
    raise ValueError(f"{path} is no text")


def _lost(name: str, value: object, why: str = "") -> str:
    return f"left out: {name} {_shown(value)}" + (f" ({why})" if why else "")


def _shown(value: object) -> str:
    return one_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), LONGEST_SHOWN)
