from __future__ import annotations

from typing import Annotated, Literal

import typer


def init(
    template: Annotated[
        Literal["pair", "panel", "offline"] | None,
        typer.Option(
            "--template",
            help="A writer and a reviewer; a panel that only reads; or small scripts, to try everything without a CLI.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over a team file that is here already.")] = False,
) -> None:
    """Write a team of the agent CLIs you have into teamchat.toml, and trust it."""
    import shlex
    from pathlib import Path

    from teamchat.cli.place import trust_store
    from teamchat.core.init.team import check_free, plan, write
    from teamchat.core.printable import printable
    from teamchat.core.team import login_name
    from teamchat.core.team.file import FILE_NAME, load
    from teamchat.core.team.trust import needs

    folder, trusted = Path.cwd(), trust_store()
    if not force:
        check_free(folder, template)
    new = plan(template, folder.name, login_name())
    write(new, folder, over=force)
    team = load(folder / FILE_NAME)
    trusted.grant(team)
    members = [f"{member.name} ({member.agent or 'you'})" for member in team.members]
    print(f"wrote {', '.join(new.files)}: the team of {', '.join(members)}")
    for need in needs(team):
        print(printable(f"trusted: {need.line}"))
    print(f"next: teamchat send {shlex.quote(new.message)}")
