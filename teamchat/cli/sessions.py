from __future__ import annotations

from teamchat.cli.options import JsonOption, TeamOption


def sessions(team: TeamOption = None, as_json: JsonOption = False) -> None:
    """List this workspace's conversations, the one that goes on by itself first."""
    import dataclasses

    from teamchat.cli.output.jsonl import write
    from teamchat.cli.output.words import moment, plural
    from teamchat.cli.place import find_root, open_store
    from teamchat.core.store.sessions import all_sessions

    with open_store(find_root(team)) as db:
        for found in all_sessions(db):
            if as_json:
                write("session", **dataclasses.asdict(found))
            else:
                counts = f"{plural(found.messages, 'message')}, {plural(found.turns, 'turn')}"
                print(
                    f"{found.name}  {moment(found.used_at)}  {counts}  {found.team}"
                    + (f"  {found.task}" if found.task else "")
                )
