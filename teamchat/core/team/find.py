"""Finds the team: in the file that is named, in the nearest one, or in the CLIs that are installed."""

from __future__ import annotations

import os
import pwd
import shutil
import stat
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from teamchat.core.errors import AgentMissing, NotTrusted, TeamFileError, UnknownName
from teamchat.core.team.team import BUILTIN_AGENTS, INSTALL, Member, Team, default_human, folder_name, login_name
from teamchat.core.text.clean import printable
from teamchat.core.text.commands import command_of, quote

if TYPE_CHECKING:
    from teamchat.core.team.schema import TeamFile

FILE_NAME = "teamchat.toml"
HELP = "teamchat help team-file"
LARGEST = 1024 * 1024  # bytes; `instruction_file` holds what is longer
DEEPEST = 16  # parts of a key; the deepest known one has four

Which = Callable[[str], str | None]


def find_team_file(start: Path) -> Path | None:
    """Find the `teamchat.toml` of the folder `start` or of its nearest parent with one; skip folders of that name.

    It need not be readable: `load` says so. Raises `NotTrusted` for a parent's file that another user could have put
    there, as anybody can in /tmp.
    """
    folder = start.resolve()
    candidates = (parent / FILE_NAME for parent in (folder, *folder.parents))
    team_file = next((file for file in candidates if _may_be_file(file)), None)
    if team_file and team_file.parent != folder:
        _check_owner(team_file, folder)
    return team_file


def _check_owner(file: Path, start: Path) -> None:
    """Raise `NotTrusted` if a stranger could have put the file there.

    Root may do anything, and the owner of the folder `start` could have put a team file there.
    """
    known = {os.geteuid(), 0, start.stat().st_uid}
    owners = (file.lstat().st_uid, file.stat().st_uid, file.parent.stat().st_uid)
    if stranger := next((owner for owner in owners if owner not in known), None):
        whose = f"{printable(str(file))} belongs to {_user(stranger)} and lies above your folder: it is not used unless"
        raise NotTrusted(f"{whose} you name it", f"teamchat team --team {quote(str(file))}\nteamchat init")


def _user(number: int) -> str:
    try:
        return f"the user {pwd.getpwuid(number).pw_name}"
    except KeyError:
        return f"user {number}"


def load(path: str | os.PathLike[str], root: Path | None = None, login: str | None = None) -> Team:
    """Load the team of the file at `path`. Raises `TeamFileError`, one line.

    Members work in `root` (None: the file's own folder). `login` names the human of a team that names none.
    """
    from teamchat.core.team.build import build_team, read_text
    from teamchat.core.team.checked import keep, kept
    from teamchat.core.team.problems import TeamFileProblem, line_of

    path = Path(path)
    path = path.parent.resolve() / path.name
    text: str | None = None
    try:
        text = read_text(path, LARGEST)
        known = kept(path, text)
        file = known or _checked(text)
        team = build_team(file, path, root or path.parent, login or login_name())
    except TeamFileProblem as mistake:
        line = line_of(str(mistake), text) if text else None
        where = f"{printable(str(path))}:{line}" if line else printable(str(path))
        raise TeamFileError(f"{where}: {mistake}", None if text is None else HELP) from None
    if not known:
        keep(path, text, file)
    return replace(team, digest=sha256(text.encode()).hexdigest())


def _checked(text: str) -> TeamFile:
    """Read the tables of a team file with this text. Raises `TeamFileProblem`."""
    import tomllib

    from teamchat.core.team.problems import TeamFileProblem
    from teamchat.core.team.schema import parse
    from teamchat.runners.untrusted.toml import TooDeep, loads

    try:
        return parse(loads(text, DEEPEST))
    except (tomllib.TOMLDecodeError, TooDeep) as error:
        raise TeamFileProblem(f"not TOML: {error}") from None
    except TeamFileProblem:
        raise
    except ValueError:  # Python's own message is for programmers
        raise TeamFileProblem("not TOML: a number of too many digits") from None


def resolve_team(option: str | None, cwd: Path, config_dir: Path, *, which: Which = shutil.which) -> Team:
    """Return the team that `--team` names, or else that of the nearest team file, or else the installed CLIs.

    `option` is a file if it has a slash, ends in `.toml` or exists. Otherwise it is the name of a team in the folder
    `teams` of `config_dir`, whose members work in `cwd`. Raises `TeamFileError`, `UnknownName`, `NotTrusted` if the
    nearest file is another user's, and `AgentMissing` if there is neither a file nor a CLI.
    """
    if option is not None:
        file = cwd.absolute() / option
        if "/" in option or option.endswith(".toml") or _may_be_file(file):
            team = load(file)
            return replace(team, option=str(team.path))
        teams = config_dir / "teams"
        file = teams / f"{option}.toml"
        if not _may_be_file(file):
            there = sorted(other.stem for other in teams.glob("*.toml"))
            hint = command_of("teamchat", "team", "--team", there[0]) if there else "teamchat help team-file"
            raise UnknownName(f"there is no team {option!r} in {teams} (teams: {', '.join(there) or 'none yet'})", hint)
        return replace(load(file, root=cwd.absolute()), option=option)
    if team_file := find_team_file(cwd):
        return load(team_file)
    return installed_team(cwd, which)


def installed_team(root: Path, which: Which = shutil.which, login: str | None = None) -> Team:
    """Build a read-only team of the installed agent CLIs under their own names. Raises `AgentMissing` without any."""
    specs = [spec for spec in BUILTIN_AGENTS.values() if which(spec.command[0])]
    if not specs:
        commands = "\n".join((*INSTALL.values(), "teamchat init --template offline"))
        raise AgentMissing(
            "no team file here, and no agent CLI is installed; install one, or try teamchat without one", commands
        )
    root = root.absolute()
    members = [Member(spec.name, "ai", root, agent=spec.name) for spec in specs]
    return Team(
        name=folder_name(root),
        members=(*members, default_human(login or login_name(), members, root)),
        root=root,
        fence=True,
    )


def _may_be_file(path: Path) -> bool:
    try:
        return not stat.S_ISDIR(path.stat().st_mode)
    except (OSError, ValueError):  # it is not there, or cannot be looked at; a name that no file can have
        return False
