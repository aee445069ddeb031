"""Begins a chat: finds the team and the session, and prints where the conversation is."""

from __future__ import annotations

from teamchat.cli.chatting.chat import Chat
from teamchat.cli.chatting.kept import Place
from teamchat.cli.chatting.slash import here, run_command
from teamchat.cli.output.lines import note
from teamchat.cli.shared.workspace import check_title, find_team, need_trust, open_store
from teamchat.core.conversation.addressing import person
from teamchat.core.errors import UnknownName, UsageError
from teamchat.core.store.sessions import find_session, no_session, touch_session
from teamchat.core.text.commands import saying

LAST_MESSAGES = "2"


def begin(
    team: str | None,
    session: str | None,
    *,
    speaker: str | None,
    new: bool,
    title: str | None,
    timeout: str | None,
    notify: str | None,
    trust: bool,
) -> int:
    """Chat until the person leaves. Returns the exit code. `notify` is a shell command for the end of each run.

    Raises `UnknownName` for a session that is not there, `UnknownPerson` and `UsageError`.
    """
    found = find_team(team, timeout)
    need_trust(found, give=trust)
    who = person(found, speaker).name if speaker else None
    with open_store(found.root) as db:
        there = find_session(db, session) if session else None
        if there and new:
            raise UsageError(f"session {session!r} already exists", saying("--session", there.name))
        if session and not (there or new):
            raise UnknownName(no_session(db, session), "teamchat sessions")
        place = Place(found, team, who, session, new, title, notify=notify)
        if continued := place.find(db):
            check_title(continued, title)
            touch_session(db, continued.id)
            note(f"session {continued.name} continues (--new starts another)")
            run_command(here(("log", "-n", LAST_MESSAGES), continued.name, team))
        return Chat(db, place, lambda: find_team(team, timeout)).run()
