"""The first team of a folder: who is in it, by what is installed, and the files that it is written to."""

from __future__ import annotations

import os
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

Template = Literal["pair", "panel", "offline"]
SCRIPTS = {seat.name: f"agents/{seat.name}.py" for seat in OFFLINE}


@dataclass(frozen=True, slots=True)
class NewTeam:
    """A team that is not written yet: the text of each file by its path in the folder, and a first message to send."""

    files: Mapping[str, str]
    message: str


def plan(template: Template | None, folder: str, login: str, which: Which = shutil.which) -> NewTeam:
    """The team for a folder of that name. Raises `AgentMissing` when it needs an agent CLI and none is installed.

    Without a template one CLI gives a writer and a reviewer, more of them an architect, too. Members take the CLIs in
    turn, so that where there are two the reviewer is never of the writer's vendor.
    """
    if template == "offline":
        return _offline(folder, login)
    installed = [spec.name for spec in BUILTIN_AGENTS.values() if which(spec.command[0])]
    if not installed:
        raise AgentMissing("no agent CLI is installed", _ways())
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
    return NewTeam({FILE_NAME: team_text(folder, human_name(login, seats), seats, agents)}, message)


def _offline(folder: str, login: str) -> NewTeam:
    human = human_name(login, OFFLINE)
    commands = {name: ["python3", path] for name, path in SCRIPTS.items()}
    commands["checker"].append(human)
    text = team_text(folder, human, OFFLINE, list(SCRIPTS), commands)
    kept = files("teamchat.core.init.offline")
    agents = {path: kept.joinpath(f"{name}.py").read_text(encoding="utf-8") for name, path in SCRIPTS.items()}
    return NewTeam({FILE_NAME: text, **agents}, f"[NEXT:{OFFLINE[0].name}] A page that says hello")


def human_name(login: str, seats: Sequence[Seat]) -> str:
    """The login as a member's name: what a name can not have becomes `-`; "you" when a member is called so."""
    name = "".join(character if valid_name(f"a{character}") else "-" for character in login).strip("-")
    members = [Member(seat.name, "ai", Path(), seat.title) for seat in seats]
    return default_human(name, members, Path()).name


def check_free(folder: Path, template: Template | None) -> None:
    """Raises `UsageError` when a file of the template is there already: it may be somebody's work."""
    names = (FILE_NAME, *(SCRIPTS.values() if template == "offline" else ()))
    if there := next((name for name in names if os.path.lexists(folder / name)), None):
        again = f" --template {template}" if template else ""
        raise UsageError(f"{there} is here already, and would be written over", f"teamchat init{again} --force")


def write(new: NewTeam, folder: Path, *, over: bool = False) -> None:
    """Write the team's files into `folder`, and `over` what is there. Raises `UsageError`."""
    for name, text in reversed(tuple(new.files.items())):  # the team file last: what it names is there then
        path = folder / name
        try:
            path.parent.mkdir(exist_ok=True)
            if over:
                path.unlink(missing_ok=True)  # a link is replaced, and what it points to stays
            with path.open("x", encoding="utf-8") as file:  # another process may have written it just now
                file.write(text)
        except OSError as error:
            raise UsageError(f"{path} can not be written: {error.strerror}") from error


def _ways() -> str:
    commands = (*INSTALL.values(), "teamchat demo", "teamchat init --template offline")
    return "install one of them, or go on without:\n" + "\n".join(f"  {command}" for command in commands)
