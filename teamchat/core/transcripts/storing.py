"""Stores a transcript as a new session: nothing in it is run, and its markers call nobody."""

from __future__ import annotations

import json
from collections.abc import Iterator

from teamchat.core.store.clears import add_clear
from teamchat.core.store.database import Database
from teamchat.core.store.imported import ImportedEntry, put_imported
from teamchat.core.store.lineage import hide_messages
from teamchat.core.store.messages import SqliteLog
from teamchat.core.store.sessions import Session, create_session, need_session, set_beginning
from teamchat.core.transcripts.form import turn_fields
from teamchat.core.transcripts.transcript import MemberTurn, Transcript


def store(db: Database, transcript: Transcript, name: str | None) -> Session:
    """A new session of that name with the transcript, whose messages have ids of their own; all of it or nothing.

    The session is the one that the next command continues.
    """
    entries = list(_entries(transcript))  # before the transaction, which keeps others from writing
    with db.transaction():
        session = create_session(db, transcript.team, None, name, title=transcript.title)
        set_beginning(db, session.id, transcript.began_ms / 1000)
        SqliteLog(db, session.id).restore((said.message for said in transcript.said), transcript.task)
        for said in transcript.said:
            if said.cleared and not said.undone:
                add_clear(db, session.id, said.message.id)
        SqliteLog(db, session.id).team_task = transcript.task  # which a clear has removed
        hide_messages(db, session.id, (said.message.id for said in transcript.said if said.undone))
        put_imported(db, session.id, entries)
        return need_session(db, session.name)


def _entries(transcript: Transcript) -> Iterator[ImportedEntry]:
    after: str | None = None
    for entry in transcript.entries:
        if isinstance(entry, MemberTurn):
            yield ImportedEntry(None, after, _json(entry))
            continue
        after = entry.message.id
        if entry.turn or entry.images:
            yield ImportedEntry(after, None, _json(entry.turn) if entry.turn else None, entry.images)


def _json(turn: MemberTurn) -> str:
    return json.dumps(turn_fields(turn), ensure_ascii=False)
