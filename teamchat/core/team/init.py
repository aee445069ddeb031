"""The first team of a folder: its members, chosen by what is installed, and the files that hold it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from importlib.resources import files
from itertools import cycle, islice
from pathlib import Path
from typing import Literal

from msgspec import Struct

from teamchat.core.agents import AGENT_TYPES
from teamchat.core.errors import AgentMissing, UsageError
from teamchat.core.routing.names import valid_name
from teamchat.core.team.agent_rows import shipped
from teamchat.core.team.find import FILE_NAME, Which
from teamchat.core.team.team import BUILTIN_AGENTS, INSTALL, Member, default_human
from teamchat.core.text.commands import command_of, unused
from teamchat.runners.base import Access, Login
from teamchat.runners.untrusted.regular_files import read_regular_text
from teamchat.runners.untrusted.toml import in_toml


class Seat(Struct, frozen=True):
    """A member before its agent is chosen. `git`: it needs to see what changed."""

    name: str
    instruction: str | None = None
    access: Access = "read"
    title: str | None = None
    git: bool = False


CREW = (
    Seat(
        "architect",
        "You are the architect. Weigh the options briefly, decide, and tell the writer what to build.",
        title="Software architect",
    ),
    Seat(
        "writer",
        "You write the code, in small steps. Say which files you changed, and hand over to the reviewer.",
        access="edit",
        title="Developer",
    ),
    Seat(
        "reviewer",
        "You review what was written: read the files, and name the worst problem first. "
        "Hand back to the writer while something must be fixed, else say so and name nobody.",
        title="Code reviewer",
        git=True,
    ),
)
MAX = Seat("max", "You are Max, a software architect. Weigh options briefly and recommend one.", title="Architect")
SARAH = Seat("sarah", "You are Sarah, a backend engineer. Focus on security and scalability.", title="Backend engineer")
CAROL = Seat(
    "carol", "You are Carol, a reviewer. Name the weakest point of what was said, and how to test it.", title="Reviewer"
)
PANEL = ((MAX, "claude"), (SARAH, "codex"), (CAROL, "gemini"))
OFFLINE = (Seat("planner"), Seat("builder"), Seat("checker"))
DEMO = (OFFLINE[0], Seat("builder", access="edit"), OFFLINE[2])  # who writes a file

HEAD = "# The team of this folder; `teamchat help team-file` explains every key."
WIDTH = 30  # The column in which comments begin.
SEES = "sees what changed: log, diff, show, blame"


def team_text(
    folder: str,
    human: str,
    seats: Sequence[Seat],
    agents: Sequence[str],
    commands: Mapping[str, Sequence[str]] | None = None,
    *,
    git: bool = False,
) -> str:
    """Write a team file for the seats, each with its agent. `commands` are agents that the file defines, by name.

    `git` says that teamchat's git works here. Otherwise the key is a comment.
    """
    # a read-only member summarises; the scripts of a template cannot
    reader = next((seat.name for seat in seats if seat.access == "read"), None) if commands is None else None
    lines = ["[team]", _key("name", folder if folder.strip() and folder.isprintable() else "team")]
    lines.append(_key("lead", seats[0].name, "answers when you name nobody"))
    lines += [_key("compactor", reader, "summarises long conversations")] if reader else []
    lines.append(_row("fence = true", "no message can pass for another's"))
    lines.append(_row('# task = "Add a login page"', "every member is told"))
    tables = [HEAD, "\n".join(lines)]
    tables.append(f"{_row('[team.limits]', 'for each message of yours')}\nturns = 12\nminutes = 60")
    tables.append(f'[[members]]\n{_key("name", human)}\ntype = "human"')
    for seat, agent in zip(seats, agents, strict=True):
        tables.append("\n".join(_member(seat, agent, first=seat is seats[0], git=git)))
    words = "any program: reads the prompt, prints the answer"
    for name, command in (commands or {}).items():
        tables.append(f"{_row(f'[agents.{name}]', words)}\n{_key('command', command)}")
        words = ""
    return "\n\n".join(tables) + "\n"


def _member(seat: Seat, agent: str, *, first: bool, git: bool) -> Iterator[str]:
    """Write a member's table. The keys of the `first` one have comments."""
    yield "[[members]]"
    yield _key("name", seat.name, f"called by [NEXT: {seat.name}]" * first)
    if seat.title:
        yield _key("title", seat.title)
    yield _key("agent", agent)
    if agent in INSTALL or seat.access != "read":  # the access of another one is not enforced
        yield _key("access", seat.access, "read, edit or full" * first)
        if seat.access == "edit" and agent in INSTALL and AGENT_TYPES[agent].allow == "bounded":
            yield _row('# allow = ["pytest"]', "commands it may run; then: teamchat trust")
    if seat.git and agent in INSTALL:
        yield _row("git = true", SEES) if git else _row("# git = true", f"{SEES}; needs the package mcp")
    if seat.instruction:
        yield _key("system_instruction", seat.instruction)


def _key(name: str, value: str | Sequence[str], comment: str = "") -> str:
    return _row(f"{name} = {in_toml(value)}", comment)


def _row(text: str, comment: str) -> str:
    return f"{text:<{WIDTH}} # {comment}" if comment else text


Template = Literal["pair", "panel", "offline"]
Scripts = Literal["offline", "demo"]
"""A team whose members are scripts: of `init`, or of `teamchat demo`, where they write a file and take their time."""
SCRIPTS = {seat.name: f"agents/{seat.name}.py" for seat in OFFLINE}


UNKNOWN = "only it could tell"
"""The login of an agent that a row describes, in words."""


class NewTeam(Struct, frozen=True):
    """A team that is not written yet: the text of each file by its path in the folder, and a first message to send."""

    files: Mapping[str, str]
    message: str


def installed_clis(cwd: Path, env: Mapping[str, str], which: Which = shutil.which) -> dict[str, Login]:
    """Find the installed agent CLIs, with their logins as far as files and environment show. None is run."""
    programs = [spec.name for spec in BUILTIN_AGENTS.values() if which(spec.command[0])]
    known = {name: AGENT_TYPES[name].runner.login(cwd, env) for name in programs}
    rows = {name: Login(None, UNKNOWN) for name, row in shipped() if row.proven and which(row.command[0])}
    return {name: login for name, login in known.items() if login} | rows


def with_login(found: Mapping[str, Login]) -> list[str]:
    """Name the CLIs with a login; without any, the CLIs that may have one; without these, all."""
    by = {there: [name for name, login in found.items() if login.there is there] for there in (True, None)}
    return by[True] or by[None] or list(found)


def plan(
    template: Template | None, folder: str, login: str, installed: Collection[str], *, git: bool = False
) -> NewTeam:
    """Plan the team for a folder with that name. Raises `AgentMissing` if it needs an agent CLI and has none.

    `installed` are the agent CLIs. Without a template one CLI gives a writer and a reviewer, several CLIs also an
    architect. Members take the CLIs in turn, so that with two CLIs the reviewer and the writer have different vendors.
    `git` says that teamchat's git works here; the reviewer then gets it.
    """
    if template == "offline":
        return plan_scripts(template, folder, login)
    if not installed:
        raise AgentMissing("no agent CLI is installed; install one, or try teamchat without one", _ways())
    if template == "panel":
        seats = [seat for seat, _ in PANEL]
        # each on its preferred CLI, if that is installed
        spare = cycle(installed)
        agents = [meant if meant in installed else next(spare) for _, meant in PANEL]
        message = " ".join(f"[NEXT:{seat.name}]" for seat in seats) + " How would you design a login?"
    else:
        seats = list(CREW if template is None and len(installed) > 1 else CREW[1:])
        agents = list(islice(cycle(installed), len(seats)))
        message = f"[NEXT:{seats[0].name}] What would you improve here first?"
    return NewTeam({FILE_NAME: team_text(folder, human_name(login, seats), seats, agents, git=git)}, message)


def plan_scripts(template: Scripts, folder: str, login: str) -> NewTeam:
    """Plan the team of a planner, a builder and a checker that need no agent CLI."""
    human = human_name(login, OFFLINE)
    python = "python3" if template == "offline" else sys.executable
    commands = {name: [python, path] for name, path in SCRIPTS.items()}
    commands["checker"].append(human)
    text = team_text(folder, human, OFFLINE if template == "offline" else DEMO, list(SCRIPTS), commands)
    return NewTeam({FILE_NAME: text, **_scripts(template)}, f"[NEXT:{OFFLINE[0].name}] A page that says hello")


def _scripts(template: Scripts) -> dict[str, str]:
    scripts = files(f"teamchat.core.team.templates.{template}")
    return {path: scripts.joinpath(f"{name}.py").read_text(encoding="utf-8") for name, path in SCRIPTS.items()}


def human_name(login: str, seats: Sequence[Seat]) -> str:
    """Make a member's name of the login, with `-` for invalid characters; "you" if a member has that name."""
    name = "".join(character if valid_name(f"a{character}") else "-" for character in login).strip("-")
    members = [Member(seat.name, "ai", Path(), seat.title) for seat in seats]
    return default_human(name, members, Path()).name


def check_free(file: Path, template: Template | None) -> None:
    """Raise `UsageError` if the team file, or a script of the template, already exists."""
    options = ["--template", template] if template else []
    here = [*options, *([] if file.name == FILE_NAME else ["--file", file.name]), "--force"]
    scripts = _scripts(template) if template == "offline" else {}
    others = (name for name in scripts if os.path.lexists(file.parent / name))
    if changed := next((name for name in others if not _is(file.parent / name, scripts[name])), None):
        raise UsageError(f"{changed} already exists; --force keeps a copy of it", _beginning(*here))
    if os.path.lexists(file):
        other = _beginning(*options, "--file", unused(file).name)
        raise UsageError(
            f"{file.name} already exists; name another file, or replace it, which keeps a copy",
            f"{other}\n{_beginning(*here)}",
        )


def _beginning(*options: str) -> str:
    return command_of("teamchat", "init", *options)


def _is(path: Path, text: str) -> bool:
    """Whether a regular file has that text."""
    try:
        return not path.is_symlink() and read_regular_text(path) == text
    except (OSError, ValueError):
        return False


def write_team(new: NewTeam, file: Path, *, over: bool = False) -> list[Path]:
    """Write the team to `file` and its scripts beside it. Return the copies of files replaced, only with `over`.

    It writes through no link: if a link is replaced, the copy is the link itself. Raises `UsageError`.
    """
    copies: list[Path] = []
    for name, text in reversed(tuple(new.files.items())):  # the team file last: what it names exists by then
        path = file if name == FILE_NAME else file.parent / name
        if path.parent != file.parent and path.parent.is_symlink():
            raise UsageError(f"{path} cannot be written: its folder is a link")
        try:
            path.parent.mkdir(exist_ok=True)
            if not _is(path, text):
                copies += _replace(path, text) if over and os.path.lexists(path) else _create(path, text)
        except OSError as error:
            raise UsageError(f"{path} cannot be written: {error.strerror}") from error
    return copies


def _replace(path: Path, text: str) -> list[Path]:
    """Replace a file that is kept under another name. If that fails, the file gets its name back."""
    copy = path.rename(unused(path.with_name(f"{path.name}.bak")))
    try:
        _create(path, text)
    except OSError:
        copy.rename(path)
        raise
    return [copy]


def _create(path: Path, text: str) -> list[Path]:
    """Write a new file. If another process has just written it, that one stays. Raises `OSError`.

    Nothing is written either if another process has just put a link in place of its folder.
    """
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        file = os.open(path.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=folder)
    finally:
        os.close(folder)
    with os.fdopen(file, "w", encoding="utf-8") as opened:
        opened.write(text)
    return []


def _ways() -> str:
    return "\n".join((*INSTALL.values(), "teamchat demo", "teamchat init --template offline"))
