"""The messages that were typed and are not sent yet: kept in the store, shown, removed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import typer
from msgspec import Struct

from teamchat.cli.shared.options import session_title
from teamchat.cli.shared.workspace import choose_session
from teamchat.core.conversation.entry import check_entry
from teamchat.core.errors import UsageError
from teamchat.core.messages import Span
from teamchat.core.store.database import Database
from teamchat.core.store.sessions import Session, current_session, find_session, remove_session
from teamchat.core.store.unsent import Unsent, keep_unsent, remove_unsent, unsent_of
from teamchat.core.team.team import Team


class Place(Struct):
    """Where chat is: the team, as loaded and as typed, the person, the session, and what tells of the end of a run.

    A session that it does not continue begins with the first message, with the `name` and `title` that were typed.
    """

    team: Team
    team_typed: str | None
    speaker: str | None
    name: str | None
    new: bool
    title: str | None = None
    session: Session | None = None
    notify: str | None = None

    @property
    def you(self) -> str:
        """The person at the keyboard."""
        return self.speaker or self.team.humans[0].name

    def find(self, db: Database) -> Session | None:
        """The session that it continues, if there is one."""
        if self.session is None and not self.new:
            self.session = current_session(db, self.name)
        return self.session

    def begin_another(self, title: str) -> None:
        """Let the next message begin another session, with that title if there is one. Raises `UsageError`."""
        try:
            self.title = session_title(title or None)
        except typer.BadParameter as error:
            raise UsageError(str(error)) from None
        self.session, self.name, self.new = None, None, True

    @contextlib.contextmanager
    def begun(self, db: Database) -> Iterator[None]:
        """Begin the conversation for a command. If the command is refused before its first message, there is none."""
        self.session, _ = choose_session(db, self.team, self.name, new=True, title=self.title)
        yield
        found = find_session(db, self.session.name)
        if found and not (found.messages or unsent_of(db, found.id)):
            remove_session(db, found.id)
            self.session = None


class Kept:
    """For the thread that has made `db`. `waiting` has the messages in the order typed, as of the last look."""

    def __init__(self, db: Database, place: Place) -> None:
        self._db, self._place = db, place
        self.waiting: list[Unsent] = []

    def look(self) -> None:
        session = self._place.session
        self.waiting = unsent_of(self._db, session.id) if session else []

    def keep(self, text: str, to: str | None, pasted: tuple[Span, ...]) -> None:
        """Store a message if it can be sent as it is. Raises the reason otherwise, as `check_entry` does."""
        place = self._place
        check_entry(
            place.team, self._db, place.session, text, speaker=place.speaker, to=to, typed=len(text), pasted=pasted
        )
        if place.session is None:
            place.session, _ = choose_session(self._db, place.team, place.name, new=True, title=place.title)
        self.waiting.append(keep_unsent(self._db, place.session.id, text, place.speaker, to, pasted=pasted))

    def remove_last(self) -> Unsent | None:
        """Remove the message that was typed last; None if all have been sent meanwhile."""
        self.look()
        while self.waiting:
            last = self.waiting.pop()
            if remove_unsent(self._db, last.id):
                return last
        return None
