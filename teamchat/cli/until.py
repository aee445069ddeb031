from __future__ import annotations

from typing import Annotated

import typer

from teamchat.cli.startup.options import PlaceOptions, spread


def accept(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH...", show_default=False, help="Protected files that were changed, or a folder of them."
        ),
    ] = None,
    *,
    place: PlaceOptions,
) -> None:
    """Accept what members have changed in protected files: no check of this conversation is red for it any more.

    What is there now is accepted. When somebody changes it once more, the check is red again. It counts from the next
    check on, also while members work.
    """
    from pathlib import Path

    from teamchat.cli.output.lines import note
    from teamchat.cli.startup.workspace import find_team, need_person, open_store
    from teamchat.core.conversation.protection import accept_files
    from teamchat.core.errors import UsageError
    from teamchat.core.store.routes import last_process
    from teamchat.core.store.sessions import need_session
    from teamchat.core.text.clean import printable

    if not paths:
        raise UsageError("name what you accept, or . for all of it", "teamchat report")
    need_person("protected files are accepted")
    team = find_team(place.team)
    with open_store(team.root) as db:
        chosen = need_session(db, place.session)
        for one in accept_files(db, chosen.id, team, paths, Path.cwd()):
            note(f"accepted: {printable(one.path)}, which changed during {one.by}")
        process = last_process(db, chosen.id)
        if process and process.over:
            note(f"the {process.name or process.kind} is over: begin it again, and its checks let this pass")


until = typer.Typer(no_args_is_help=True, help="Accept what members have changed in protected files.")
until.command()(spread(accept))
