from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from teamchat.cli.output.jsonl import print_line
from teamchat.cli.output.lines import confirmed, learned, moment, note, plural
from teamchat.cli.running.converse import converse
from teamchat.cli.startup.bare_words import typed_text
from teamchat.cli.startup.complete import members
from teamchat.cli.startup.options import JsonOption, LimitOptions, PlaceOptions, ShownOptions, at_least
from teamchat.cli.startup.workspace import find_root, find_team, need_person, need_trust, open_store
from teamchat.core.conversation.lessons import keep_lessons, learner_of
from teamchat.core.errors import ExitCode, UnknownName, UsageError
from teamchat.core.store.database import Database
from teamchat.core.store.lessons import add_lesson, delete_lesson, newest_lessons
from teamchat.core.store.sessions import last_session, need_session
from teamchat.core.text.clean import printable
from teamchat.core.text.commands import LEARN
from teamchat.core.turn.lines import lesson_line
from teamchat.core.turn.run_events import ConversationEvent, LessonsFound


def learn_from_session(
    place: PlaceOptions, member: str | None, limits: LimitOptions, *, as_json: bool, yes: bool
) -> ExitCode:
    """Returns the turn's exit code. Raises `UsageError` before the turn if there is no terminal to confirm at."""
    if not yes and (as_json or not (sys.stdin.isatty() and sys.stderr.isatty())):
        raise UsageError(
            "storing lessons needs your yes, and there is no terminal to ask on", "teamchat learn --from-session --yes"
        )
    team = find_team(place.team, limits.timeout)
    learner_of(team, member)  # before anything begins
    need_trust(team, give=limits.trust)
    lessons: list[str] = []

    def listen(event: ConversationEvent) -> None:
        if isinstance(event, LessonsFound):
            lessons.extend(event.found)

    with open_store(team.root) as db:
        chosen = need_session(db, place.session)
        keep_as, show = chosen.name if yes else None, ShownOptions(as_json)
        code = converse(
            team, db, chosen, show, lambda one: one.learn(member, keep_as), wait=not limits.no_wait, listen=listen
        )
        if lessons and not yes and code is ExitCode.DONE:
            if confirmed(f"Keep {plural(len(lessons), 'lesson')}?"):
                for lesson in keep_lessons(db, lessons, chosen.name):
                    note(learned(lesson))
            else:
                note("no lesson was stored")
    return code


LIST = "teamchat learn"


def learn(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TEXT]...", show_default=False, help="The lesson, in one line. Without it, all lessons are listed."
        ),
    ] = None,
    delete: Annotated[
        int | None, typer.Option("--delete", callback=at_least(1), metavar="N", help="Delete lesson N.")
    ] = None,
    from_session: Annotated[
        bool, typer.Option("--from-session", help="Ask a member for lessons from the conversation.")
    ] = False,
    member: Annotated[
        str | None,
        typer.Option("--member", metavar="NAME", autocompletion=members, help="The member to ask (default: the lead)."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Store the lessons without asking.")] = False,
    *,
    place: PlaceOptions,
    as_json: JsonOption = False,
    limits: LimitOptions,
) -> int:
    """Store a lesson of this workspace. Prompts include it where it fits."""
    text = typed_text(words, "lesson", forgetting)
    if from_session or delete is not None or text is not None:
        need_person("lessons are stored and deleted")
    if from_session:
        if text is not None or delete is not None:
            raise UsageError("--from-session takes neither a text nor --delete")
        return learn_from_session(place, member, limits, as_json=as_json, yes=yes)
    if member or yes or limits.timeout or limits.trust or limits.no_wait:
        raise UsageError("--member, --yes, --timeout, --trust and --no-wait need --from-session")
    if text is not None and delete is not None:
        raise UsageError("--delete takes no text")
    with open_store(find_root(place.team)) as db:
        if delete is not None:
            if delete_lesson(db, delete) is None:
                raise UnknownName(f"there is no lesson {delete}", LIST)
            note(f"lesson {delete} is deleted")
        elif text is not None:
            origin = need_session(db, place.session) if place.session else last_session(db)  # the newest one
            lesson, new = add_lesson(db, text, origin.name if origin else None)
            note(learned(lesson) if new else f"lesson {lesson.number} already exists")
        else:
            print_lessons(db, as_json=as_json)
    return 0


def print_lessons(db: Database, *, as_json: bool) -> None:
    known = newest_lessons(db)
    if not (known or as_json):
        note(f"there are no lessons yet; add one: {LEARN}")
    for lesson in known:
        if as_json:
            print_line(lesson_line(lesson))
        else:
            words = printable(lesson.text)
            print(f"{lesson.number}  {moment(lesson.learned_at)}  {lesson.session or '-'}  {words}")


def forgetting(numbers: Sequence[int]) -> str:
    """Write the commands that delete these lessons; without numbers, the command that lists them."""
    return "\n".join(f"{LIST} --delete {number}" for number in numbers) or LIST
