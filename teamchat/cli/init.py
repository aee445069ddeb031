from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal

import typer

from teamchat.cli.startup.typed import PROGRAM
from teamchat.core.conversation.permission import check_gives_trust, check_no_hook, trust_store
from teamchat.core.team.find import FILE_NAME, load
from teamchat.core.team.init import check_free, installed_clis, plan, with_login, write_team
from teamchat.core.team.team import login_name
from teamchat.core.team.trust_needs import needs
from teamchat.core.text.clean import printable
from teamchat.core.text.commands import quote
from teamchat.core.turn.caller import find_caller
from teamchat.runners import git_server
from teamchat.runners.base import Login


def team_file(file: Path) -> Path:
    if file.name != str(file) or file.suffix != ".toml":
        raise typer.BadParameter(f"expected a name that ends in .toml, got {str(file)!r}.")
    return file


def login_lines(found: Mapping[str, Login], taken: Collection[str]) -> Iterator[str]:
    """List the CLIs with a login, the way to log in to the others, and the CLIs that are not `taken`."""
    for name, login in found.items():
        left_out = " and is left out" * (name not in taken)
        if login.there is False:
            yield f"{name} is not logged in{left_out}; to log in: {login.hint}"
        else:
            yield f"{name} {'is' if login.there else 'may be'} logged in{left_out}: {login.reason}"


def init(
    template: Annotated[
        Literal["pair", "panel", "offline"] | None,
        typer.Option(
            "--template",
            help="A writer and a reviewer; a panel that only reads; or small scripts, to try everything without a CLI.",
        ),
    ] = None,
    file: Annotated[
        Path, typer.Option("--file", metavar="FILE", callback=team_file, help="The file to write, in this folder.")
    ] = Path("teamchat.toml"),
    force: Annotated[
        bool, typer.Option("--force", help="Replace an existing team file; a copy of it is kept.")
    ] = False,
) -> None:
    """Write teamchat.toml for the agent CLIs you have, and trust it."""
    check_no_hook("team files are written")
    check_gives_trust(Path.cwd())
    path, trusted = Path.cwd() / file, trust_store()
    if not force:
        check_free(path, template)
    clis = installed_clis(path.parent, os.environ) if template != "offline" else {}
    taken, with_git = with_login(clis), git_server.missing(os.environ) is None
    new = plan(template, path.parent.name, login_name(), taken, git=with_git)
    copies = write_team(new, path, over=force)
    team = load(path)
    inside = find_caller() is not None
    if not inside:
        trusted.grant(team)
    for line in login_lines(clis, taken):
        print(printable(line))
    members = [f"{member.name} ({member.agent or 'you'})" for member in team.members]
    for copy in copies:
        print(f"kept {copy.relative_to(path.parent)}: what was there before")
    print(f"wrote {file}: {', '.join(members)}")
    for need in needs(team):
        print(printable(f"{'not trusted' if inside else 'trusted'}: {need.line}"))
    named = "" if path.name == FILE_NAME else f" --team {quote(path.name)}"
    print(f"next: {PROGRAM.get()} send {quote(new.message)}{named}")
