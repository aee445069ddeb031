from __future__ import annotations

from typing import Annotated

import typer

from teamchat.cli.output.lines import note
from teamchat.cli.startup.bare_words import typed_text
from teamchat.cli.startup.options import PlaceOptions
from teamchat.cli.startup.typed import placed_here
from teamchat.cli.startup.workspace import find_root, need_person, open_store, session_to_note_in
from teamchat.core.context.conversation_view import TASK_CUT, ContextManager
from teamchat.core.errors import UsageError
from teamchat.core.store.messages import SqliteLog
from teamchat.core.store.sessions import check_there
from teamchat.core.text.clean import visible
from teamchat.core.turn.run_events import TaskChanged
from teamchat.core.turn.run_file import tell_watchers

CLEAR = "teamchat task --clear"


def task(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TEXT]...", show_default=False, help="The new task. Without it, the current one is printed."
        ),
    ] = None,
    clear: Annotated[bool, typer.Option("--clear", help="Remove the task.")] = False,
    *,
    place: PlaceOptions,
) -> None:
    """Show or set the task that every member is told."""
    text = typed_text(words, "task", lambda _: CLEAR)
    if text is not None and clear:
        raise UsageError("--clear takes no text")
    if text is not None and not text.strip():
        raise UsageError("the task is empty", CLEAR)
    if clear or text is not None:
        need_person("the task is set")
    with (
        open_store(find_root(place.team)) as db,
        session_to_note_in(db, place.team, place.session, begins=text is not None) as chosen,
    ):
        manager = ContextManager(SqliteLog(db, chosen.id))
        if clear or text is not None:
            with db.transaction():
                check_there(db, chosen)
                manager.set_team_task(text)
        stored_task = manager.get_team_task()
        if clear or text is not None:
            from teamchat.cli.running.hooks import tell_hooks

            tell_watchers(db.path.parent, chosen.id, chosen.name, TaskChanged(text=stored_task))
            tell_hooks(place.team, chosen.name, TaskChanged(text=stored_task))
        if clear:
            note(f"session {chosen.name} no longer has a task")
        elif text is not None:
            note(f"the task of session {chosen.name} is set")
            if len(stored_task or "") < len(text):
                note(TASK_CUT)
        elif stored_task is None:
            example = placed_here("teamchat task 'Build the login page'")
            note(f"session {chosen.name} has no task; set one: {example}")
        else:
            print(visible(stored_task))
