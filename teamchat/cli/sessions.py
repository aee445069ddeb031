from __future__ import annotations

import typer

from teamchat.cli.options import JsonOption, TeamOption
from teamchat.cli.sessions_delete import delete

LONGEST_TASK = 60  # characters that a list shows

sessions = typer.Typer(invoke_without_command=True)
sessions.command()(delete)


@sessions.callback()
def listed(ctx: typer.Context, team: TeamOption = None, as_json: JsonOption = False) -> None:
    """List this workspace's conversations, the one that goes on by itself first; or delete one."""
    import dataclasses

    from teamchat.cli.output.jsonl import write
    from teamchat.cli.output.words import moment, note, plural
    from teamchat.cli.place import find_root, open_store
    from teamchat.core.errors import UsageError
    from teamchat.core.printable import printable
    from teamchat.core.store.sessions import all_sessions
    from teamchat.runners.foreign import one_line

    if ctx.invoked_subcommand:
        if team or as_json:
            raise UsageError("options go behind the command", f"teamchat sessions {ctx.invoked_subcommand} --help")
        return
    with open_store(find_root(team)) as db:
        known = all_sessions(db)
        if not (known or as_json):
            note("there is no conversation here yet")
        for found in known:
            if as_json:
                write("session", **dataclasses.asdict(found))
            else:
                counts = f"{plural(found.messages, 'message')}, {plural(found.turns, 'turn')}"
                print(
                    f"{found.name}  {moment(found.used_at)}  {counts}  {printable(found.team)}"
                    + (f"  {one_line(found.task, LONGEST_TASK)}" if found.task else "")
                )
