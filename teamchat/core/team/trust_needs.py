"""What of a team file needs trust, and the fingerprint of exactly that."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from teamchat.core.printable import printable
from teamchat.core.team import BUILTIN_AGENTS, AgentSpec, Member, Team

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
_LARGE = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Need:
    """One key of one member that needs trust: `line` tells a person, `value` is what trust is given to."""

    member: str
    key: str
    line: str
    value: tuple[str, ...]


def needs(team: Team) -> tuple[Need, ...]:
    """What of the team needs trust, member by member; nothing for the installed CLIs without a team file."""
    if team.path is None:
        return ()
    return tuple(need for member in team.ai_members for need in _needs_of(team, member, team.path.parent))


def fingerprint(team: Team) -> str:
    """sha256 over the file's path, the keys that need trust, and the files that their commands name."""
    asked = sorted([need.member, need.key, *need.value] for need in needs(team))
    files = sorted([str(file), state] for file, state in file_states(team).items())
    return hashlib.sha256(json.dumps([str(team.path), asked, files]).encode()).hexdigest()


def file_states(team: Team) -> dict[Path, str]:
    """The files whose content decides what the team's commands do, each with its digest; "none" for a missing one."""
    return {file: _state(file) for file in _files(team)}


def _needs_of(team: Team, member: Member, folder: Path) -> Iterator[Need]:
    spec = team.agent_of(member)
    if spec not in BUILTIN_AGENTS.values():
        yield _command(member, spec)
    if member.args:
        yield _need(member, "args", f"runs {spec.name} with {shlex.join(member.args)}", member.args)
    if member.env:
        pairs = [f"{name}={'...' if SECRET.search(name) else value}" for name, value in member.env.items()]
        values = (f"{name}={value}" for name, value in sorted(member.env.items()))
        yield _need(member, "env", f"runs with {shlex.join(pairs)}", values)
    if member.env_keep:
        yield _need(member, "env_keep", f"sees the keys {', '.join(member.env_keep)}", sorted(member.env_keep))
    if member.project_settings:
        yield _need(member, "project_settings", "runs the project's own hooks and MCP commands", ())
    if member.access == "edit":
        may = f"edits files in {member.cwd}" + (f" and runs {', '.join(member.allow)}" if member.allow else "")
        yield _need(member, "access", may, ("edit", *sorted(member.allow)))
    if member.access == "full":
        yield _need(member, "access", "does anything you may do", ("full",))
    yield from _outside_needs(team, member, folder)


def _outside_needs(team: Team, member: Member, folder: Path) -> Iterator[Need]:
    if outside := _outside(member.cwd, team.root):
        yield _need(member, "cwd", f"works in {outside}", (str(outside),))
    if member.instruction_file and (outside := _outside(member.instruction_file, folder)):
        yield _need(member, "instruction_file", f"is told the text of {outside}", (str(outside),))
    for path in member.knowledge.values():
        if outside := _outside(path, folder):
            yield _need(member, "knowledge", f"is told what is in {outside}", (str(outside),))


def _command(member: Member, spec: AgentSpec) -> Need:
    """What is typed to end a program on a terminal may be a command of it, too."""
    what = f"runs {shlex.join(spec.command)}"
    if (terminal := spec.terminal) is None:
        return _need(member, "command", what, spec.command)
    typed = f", and types {terminal.exit!r} there" if terminal.exit else ""
    value = (*spec.command, "pty", terminal.submit, terminal.exit or "")
    return _need(member, "command", f"{what} on a terminal{typed}", value)


def _need(member: Member, key: str, what: str, value: Iterable[str]) -> Need:
    return Need(member.name, key, printable(f"{member.name} {what}"), tuple(value))


def _outside(path: Path, folder: Path) -> Path | None:
    """Where `path` really is, when that is not in `folder`: a link may lead out of it."""
    real = Path(os.path.realpath(path))  # also of a link that leads to itself
    return None if real.is_relative_to(folder.resolve()) else real


def _files(team: Team) -> set[Path]:
    """The files whose content decides what a trusted command does.

    A program named relative to the team file, and whatever else of `command` and `args` is a file, seen from where the
    member works (`["python3", "agent.py"]`, `--mcp-config=mcp.json`).
    """
    found = set()
    for member in team.ai_members:
        spec = team.agent_of(member)
        if spec.local:
            found.add(Path(spec.command[0]))
        for word in (*spec.command[1:], *member.args):
            found.update(file for part in (word, word.partition("=")[2]) if _is_file(file := member.cwd / part))
    return found


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a long argument is no file's name
        return False


def _state(file: Path) -> str:
    """The digest of a file's content; for a large one (a model that an argument names) its size and time of change."""
    try:
        about = file.stat()
        if about.st_size > _LARGE:
            return f"{about.st_size} {about.st_mtime_ns}"
        with file.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError:
        return "none"
