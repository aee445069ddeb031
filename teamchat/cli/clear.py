from __future__ import annotations

from teamchat.cli.output.lines import note
from teamchat.cli.running.converse import held_run
from teamchat.cli.running.hooks import tell_hooks
from teamchat.cli.startup.options import JsonOption, PlaceOptions
from teamchat.cli.startup.typed import placed_here
from teamchat.cli.startup.workspace import need_person, open_store, team_or_nobody
from teamchat.core.conversation.undo.messages import check_may_clear
from teamchat.core.store.sessions import need_session
from teamchat.core.turn.run_events import TaskChanged


def clear(place: PlaceOptions, as_json: JsonOption = False) -> None:
    """Begin history, summary and the agents' own sessions anew here, and remove the task.

    The record and the todo list stay. The next undo brings all of it back.
    """
    need_person("conversations are cleared")
    team = team_or_nobody(place.team, place.session)
    with open_store(team.root) as db:
        chosen = need_session(db, place.session)
        with held_run(team, db, chosen) as run:
            check_may_clear(run)
            newest, task = run.manager.get_latest_message(), run.manager.get_team_task()
            assert newest is not None
            with run.transaction():
                run.manager.clear()
        if task is not None:
            tell_hooks(place.team, chosen.name, TaskChanged(None))
        if as_json:
            from teamchat.cli.output.jsonl import write_line

            write_line("cleared", session=chosen.name, after=newest.id, task=task)
            return
        gone = ", and the task is removed" if task is not None else ""
        what = f"session {chosen.name} is cleared: prompts begin after {newest.id}{gone}"
        note(f"{what}; {placed_here('teamchat undo')} takes it back")
