"""`teamchat learn --from-session`: a member says what the conversation has taught, a person whether that is kept."""

from __future__ import annotations

import sys

from teamchat.cli.conversation import Show, choose_output, converse
from teamchat.cli.output.words import learned, note, plural
from teamchat.cli.place import find_team, need_trust, open_store
from teamchat.core.errors import ExitCode, UsageError
from teamchat.core.events import ConversationEvent, LessonsFound
from teamchat.core.learning import keep_lessons, learner_of
from teamchat.core.store.sessions import need_session


def learn_from_session(
    team: str | None,
    session: str | None,
    member: str | None,
    *,
    as_json: bool,
    yes: bool,
    timeout: str | None,
    trust: bool,
    wait: bool,
) -> ExitCode:
    """The exit code of the turn. Raises `UsageError`, before anybody is asked, where nobody could say yes."""
    if not yes and (as_json or not (sys.stdin.isatty() and sys.stderr.isatty())):
        raise UsageError(
            "lessons are kept after a yes, and there is nobody to ask for it", "teamchat learn --from-session --yes"
        )
    found = find_team(team, timeout)
    learner_of(found, member)  # before anything begins
    need_trust(found, give=trust)
    lessons: list[str] = []

    def listen(event: ConversationEvent) -> None:
        if isinstance(event, LessonsFound):
            lessons.extend(event.found)

    with open_store(found.root) as db:
        chosen = need_session(db, session)
        keep_as = chosen.name if yes else None
        output = choose_output(found, chosen.name, Show(as_json))
        code = converse(
            found, db, chosen, output, lambda coordinator: coordinator.learn(member, keep_as), wait=wait, listen=listen
        )
        if lessons and not yes and code is ExitCode.DONE:
            if confirmed(len(lessons)):
                for lesson in keep_lessons(db, lessons, chosen.name):
                    note(learned(lesson))
            else:
                note("nothing is kept")
    return code


def confirmed(count: int) -> bool:
    """Whether the person at the terminal says so."""
    print(f"Keep {plural(count, 'lesson')}? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
