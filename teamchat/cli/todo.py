from __future__ import annotations

import contextlib
from difflib import get_close_matches
from enum import StrEnum
from typing import Annotated

import typer
from msgspec import to_builtins

from teamchat.cli.output.jsonl import todo_fields, write_line
from teamchat.cli.output.lines import moment, note, plural, todo_line
from teamchat.cli.startup.bare_words import READS, numbers_of
from teamchat.cli.startup.complete import people
from teamchat.cli.startup.options import JsonOption, PlaceOptions
from teamchat.cli.startup.typed import line_of
from teamchat.cli.startup.workspace import find_root, find_team, need_person, open_store, session_to_note_in
from teamchat.core.conversation.addressing import person
from teamchat.core.conversation.permission import check_no_hook
from teamchat.core.errors import NotTrusted, UnknownName, UsageError
from teamchat.core.messages import well_formed
from teamchat.core.routing.requests import quoted
from teamchat.core.routing.todos import Add, Change, Finish, Todo, Wish, read_todos, todo_text
from teamchat.core.store.database import Database
from teamchat.core.store.sessions import Session, check_there, find_session, name_of, need_session
from teamchat.core.store.todos import changes_of, clear_todos, note_todos
from teamchat.core.text.clean import printable
from teamchat.core.turn.caller import find_caller
from teamchat.core.turn.run_events import TodoChanged
from teamchat.core.turn.run_file import tell_watchers

LIST = "teamchat todo"
ADD = "teamchat todo add 'Write the tests'"
CLOSES = ("rm", "remove", "delete", "del", "close", "complete", "finish", "check")


class TodoAction(StrEnum):
    LIST = "list"
    ADD = "add"
    DONE = "done"
    CLEAR = "clear"


def actions(incomplete: str) -> list[str]:
    return [action for action in TodoAction if action.startswith(incomplete)]


def todo(
    what: Annotated[
        str,
        typer.Argument(
            metavar="ACTION",
            show_default=False,
            autocompletion=actions,
            help="What to do: list (the default), add, done or clear.",
        ),
    ] = TodoAction.LIST,
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="WORDS...", show_default=False, help="The text to add, or the numbers that are done."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="List completed todos, too.")] = False,
    history: Annotated[bool, typer.Option("--history", help="List who changed what, and when.")] = False,
    as_: Annotated[
        str | None, typer.Option("--as", metavar="NAME", autocompletion=people, help="The person who makes the change.")
    ] = None,
    *,
    place: PlaceOptions,
    as_json: JsonOption = False,
) -> None:
    """Show or change the conversation's todo list. Every member gets it."""
    given = words or []
    action = action_of(what, given)
    if (everything or history) and action is not TodoAction.LIST:
        raise UsageError(f"--all and --history are for listing, not for {action}", "teamchat todo --all")
    if action is TodoAction.CLEAR:
        need_person("the todo list is cleared")
    if action is not TodoAction.LIST:
        check_no_hook("the todo list is changed")
    if action in (TodoAction.LIST, TodoAction.CLEAR):
        if given:
            raise UsageError(f"{action} takes no text", ADD)
    elif not given:
        raise UsageError(f"{action} what?", ADD if action is TodoAction.ADD else LIST)
    team = None if action is TodoAction.LIST else find_team(place.team)
    with open_store(team.root if team else find_root(place.team)) as db, contextlib.ExitStack() as noting:
        if team is None:
            print_todos(db, need_session(db, place.session), everything=everything, history=history, as_json=as_json)
            return
        if action is TodoAction.ADD and find_caller() is None:
            chosen, caller = noting.enter_context(session_to_note_in(db, place.team, place.session)), None
        else:
            chosen, caller = session_of_todos(db, place.session, as_)
        by = caller or (team.humans[0] if as_ is None else person(team, as_)).name
        if action is TodoAction.CLEAR:
            clear(db, chosen, by, as_json=as_json)
        else:
            change(db, chosen, action, given, by, as_json=as_json)


def session_of_todos(db: Database, name: str | None, speaker: str | None) -> tuple[Session, str | None]:
    """Find the session whose list changes, and in an agent's turn the member whose turn it is.

    There it is by default the conversation of the turn, whose replies change the list, too. Raises `NotTrusted` for
    one that is neither that nor begun in the turn.
    """
    caller = find_caller()
    if caller is None:
        return need_session(db, name), None
    if speaker is not None:
        raise NotTrusted(f"only a person speaks as {speaker}, and this runs in an agent's turn; leave out --as")
    turn = caller.turn
    own = find_session(db, name_of(db, turn.session)) if turn.store == db.path.resolve() else None
    chosen = need_session(db, name) if name or own is None else own
    if own and chosen.id == own.id:
        return own, turn.member
    caller.check_session(db, chosen)
    return chosen, turn.speaker.role_name


def action_of(word: str, words: list[str]) -> TodoAction:
    """Find the action of that name. Raises `UsageError` with a hint to the probable command."""
    if word in (*TodoAction, *READS):
        return TodoAction.LIST if word in READS else TodoAction(word)
    numbers = numbers_of(words)
    hint: str | None = LIST
    if close := get_close_matches(word.lower(), TodoAction, n=1, cutoff=0.8):
        hint = line_of("todo", close[0], *words)
    elif word in CLOSES and numbers and None not in numbers.values():
        hint = line_of("todo", "done", *words)
    elif word not in CLOSES and None in numbers_of([word]).values():
        hint = line_of("todo", "add", word, *words)
    raise UsageError(f"todo has {', '.join([*TodoAction][:-1])} and {[*TodoAction][-1]}, not {quoted(word)}", hint)


def change(db: Database, session: Session, action: TodoAction, words: list[str], by: str, *, as_json: bool) -> None:
    """Apply what is possible. Raises `UnknownName` for an unknown number, `UsageError` if nothing changed."""
    with db.transaction():
        check_there(db, session)
        noted = note_todos(db, session.id, adding(words) if action is TodoAction.ADD else finishing(words), by)
    for problem in noted.problems if noted.changes and not noted.unknown else ():
        note(problem)
    for number in noted.already:
        note(f"todo {number} is already done")
    for done in noted.changes:
        tell_watchers(db.path.parent, session.id, session.name, TodoChanged(done))
        if as_json:
            write_line(f"todo_{done.what}", **todo_fields(done))
        else:
            note(todo_line(done))
    if noted.unknown:
        raise UnknownName("; ".join(noted.problems), LIST)
    if not (noted.changes or noted.already):
        raise UsageError("; ".join(noted.problems), LIST)


def adding(words: list[str]) -> tuple[Wish, ...]:
    text = todo_text(well_formed(" ".join(words)))
    if not text:
        raise UsageError("the todo has no letter or digit", ADD)
    return (Add(text),)


def finishing(words: list[str]) -> tuple[Wish, ...]:
    """Parse the numbers in `3 4`, `3,4` and `#3`."""
    numbers = numbers_of(words)
    wrong = [part for part, number in numbers.items() if number is None]
    if wrong or not numbers:
        raise UsageError(f"{quoted(wrong[0] if wrong else words[0])} is not a todo number", LIST)
    return tuple(Finish(number) for number in numbers.values() if number is not None)


def clear(db: Database, session: Session, by: str, *, as_json: bool) -> None:
    with db.transaction():
        check_there(db, session)
        gone = clear_todos(db, session.id, by)
    if as_json:
        for item in gone:
            write_line("todo_cleared", **todo_fields(item))
    else:
        note(f"{plural(len(gone), 'todo')} cleared from session {session.name}")


def print_todos(db: Database, session: Session, *, everything: bool, history: bool, as_json: bool) -> None:
    changes = changes_of(db, session.id)
    if history:
        for made in changes:
            if as_json:
                write_line("todo_change", **to_builtins(made))
            else:
                print(change_line(made))
        return
    todos = read_todos(changes)
    for item in todos.items.values():
        if everything or item.done is None:
            if as_json:
                write_line("todo", **item_fields(item))
            else:
                print(item_line(item))
    if not (todos.items or as_json):
        note(f"session {session.name} has no todos; add one: {ADD}")
    elif todos.done and not (everything or as_json):
        note(f"{todos.done} done (--all lists them)")


def item_line(item: Todo) -> str:
    done = f", done by {item.done.by}" if item.done else ""
    return f"[{'x' if item.done else ' '}] {item.number}  {printable(item.added.text)}  ({item.added.by}{done})"


def change_line(made: Change) -> str:
    where = f" in {made.message}" if made.message else ""
    back = ", undone" if made.hidden else ""
    return f"{moment(made.at)}  {todo_line(made, f'{where}{back}')}"


def item_fields(item: Todo) -> dict[str, object]:
    added, done = item.added, item.done
    return {
        "number": item.number,
        "text": added.text,
        "by": added.by,
        "at": added.at,
        "message": added.message,
        "done": done and {"by": done.by, "at": done.at, "message": done.message},
    }
