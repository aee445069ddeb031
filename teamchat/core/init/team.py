"""The first team of a folder: who is in it, by what is installed, and the files that it is written to."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import cycle, islice
from pathlib import Path
from typing import Literal

from teamchat.core.errors import AgentMissing, UsageError
from teamchat.core.init.text import CREW, OFFLINE, PANEL, Seat, team_text
from teamchat.core.names import valid_name
from teamchat.core.team import BUILTIN_AGENTS, INSTALL, Member, default_human
from teamchat.core.team.file import FILE_NAME, Which
from teamchat.core.typed import unused
from teamchat.runners.regular_files import read_regular_text

Template = Literal["pair", "panel", "offline"]
SCRIPTS = {seat.name: f"agents/{seat.name}.py" for seat in OFFLINE}


@dataclass(frozen=True, slots=True)
class NewTeam:
    """A team that is not written yet: the text of each file by its path in the folder, and a first message to send."""

    files: Mapping[str, str]
    message: str


def plan(
    template: Template | None, folder: str, login: str, which: Which = shutil.which, *, git: bool = False
) -> NewTeam:
    """The team for a folder of that name. Raises `AgentMissing` when it needs an agent CLI and none is installed.

    Without a template one CLI gives a writer and a reviewer, more of them an architect, too. Members take the CLIs in
    turn, so that where there are two the reviewer is never of the writer's vendor. `git` says that teamchat's git works
    here, which the reviewer is then given.
    """
    if template == "offline":
        return _offline(folder, login)
    installed = [spec.name for spec in BUILTIN_AGENTS.values() if which(spec.command[0])]
    if not installed:
        raise AgentMissing("no agent CLI is installed; install one, or go on without", _ways())
    if template == "panel":
        seats = [seat for seat, _ in PANEL]
        # each on the CLI it is meant for, where that is there
        spare = cycle(installed)
        agents = [meant if meant in installed else next(spare) for _, meant in PANEL]
        message = " ".join(f"[NEXT:{seat.name}]" for seat in seats) + " How would you design a login?"
    else:
        seats = list(CREW if template is None and len(installed) > 1 else CREW[1:])
        agents = list(islice(cycle(installed), len(seats)))
        message = f"[NEXT:{seats[0].name}] What would you improve here first?"
    return NewTeam({FILE_NAME: team_text(folder, human_name(login, seats), seats, agents, git=git)}, message)


def _offline(folder: str, login: str) -> NewTeam:
    human = human_name(login, OFFLINE)
    commands = {name: ["python3", path] for name, path in SCRIPTS.items()}
    commands["checker"].append(human)
    text = team_text(folder, human, OFFLINE, list(SCRIPTS), commands)
    return NewTeam({FILE_NAME: text, **_scripts()}, f"[NEXT:{OFFLINE[0].name}] A page that says hello")


def _scripts() -> dict[str, str]:
    kept = files("teamchat.core.init.offline")
    return {path: kept.joinpath(f"{name}.py").read_text(encoding="utf-8") for name, path in SCRIPTS.items()}


def human_name(login: str, seats: Sequence[Seat]) -> str:
    """The login as a member's name: what a name cannot have becomes `-`; "you" when a member is called so."""
    name = "".join(character if valid_name(f"a{character}") else "-" for character in login).strip("-")
    members = [Member(seat.name, "ai", Path(), seat.title) for seat in seats]
    return default_human(name, members, Path()).name


def check_free(file: Path, template: Template | None) -> None:
    """Raises `UsageError` when the team file, or a script of the template, is there and would be written over."""
    options = ["--template", template] if template else []
    here = [*options, *([] if file.name == FILE_NAME else ["--file", file.name]), "--force"]
    scripts = _scripts() if template == "offline" else {}
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
    return shlex.join(["teamchat", "init", *options])


def _is(path: Path, text: str) -> bool:
    """Whether a regular file has that text."""
    try:
        return not path.is_symlink() and read_regular_text(path) == text
    except (OSError, ValueError):
        return False


def write(new: NewTeam, file: Path, *, over: bool = False) -> list[Path]:
    """Write the team to `file` and its scripts beside it; the copies of what was there, which only `over` replaces.

    No link is written through: one that is replaced is itself the copy. Raises `UsageError`.
    """
    copies: list[Path] = []
    for name, text in reversed(tuple(new.files.items())):  # the team file last: what it names is there then
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
    """Write a file in place of one that is kept under another name, which it gets back if that fails."""
    copy = path.rename(_copy_of(path))
    try:
        _create(path, text)
    except OSError:
        copy.rename(path)
        raise
    return [copy]


def _create(path: Path, text: str) -> list[Path]:
    """Write a file that is not there; where another process has written it just now, that one stays.

    Nor is it written where another process has put a link in the place of its folder just now.
    """
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        file = os.open(path.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=folder)
    finally:
        os.close(folder)
    with os.fdopen(file, "w", encoding="utf-8") as opened:
        opened.write(text)
    return []


def _copy_of(path: Path) -> Path:
    return unused(path.with_name(f"{path.name}.bak"))


def _ways() -> str:
    return "\n".join((*INSTALL.values(), "teamchat demo", "teamchat init --template offline"))
