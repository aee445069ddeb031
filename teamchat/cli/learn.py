from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from teamchat.cli.options import JsonOption, SessionOption, TeamOption

if TYPE_CHECKING:
    from teamchat.core.store.lessons import Lesson


def learn(
    text: Annotated[str | None, typer.Argument(help="What was learned, in a line; without it all is listed.")] = None,
    delete: Annotated[int | None, typer.Option("--delete", min=1, metavar="N", help="Forget lesson N.")] = None,
    team: TeamOption = None,
    session: SessionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Keep a lesson of this workspace, which members are told where it fits."""
    from teamchat.cli.output.words import note
    from teamchat.cli.place import find_root, open_store
    from teamchat.core.errors import UnknownName, UsageError
    from teamchat.core.store.lessons import add_lesson, delete_lesson, newest_lessons
    from teamchat.core.store.sessions import last_session, need_session

    if text is not None and delete is not None:
        raise UsageError("--delete takes no text")
    with open_store(find_root(team)) as db:
        if delete is not None:
            if delete_lesson(db, delete) is None:
                raise UnknownName(f"there is no lesson {delete}", "teamchat learn  # lists them")
            note(f"lesson {delete} is forgotten")
        elif text is not None:
            origin = need_session(db, session) if session else last_session(db)
            lesson, new = add_lesson(db, text, origin.name if origin else None)
            note(f"lesson {lesson.number} is {'learned' if new else 'there already'}")
        else:
            known = newest_lessons(db)
            if not (known or as_json):
                note('nothing is learned here yet; keep a lesson: teamchat learn "..."')
            for lesson in known:
                show(lesson, as_json=as_json)


def show(lesson: Lesson, *, as_json: bool) -> None:
    from teamchat.cli.output.jsonl import write
    from teamchat.cli.output.words import moment

    if as_json:
        fields = {"number": lesson.number, "text": lesson.text, "session": lesson.session}
        write("lesson", **fields, learned_at=lesson.learned_at)
    else:
        print(f"{lesson.number}  {moment(lesson.learned_at)}  {lesson.session or '-'}  {lesson.text}")
