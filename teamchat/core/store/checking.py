"""Whether a store holds what a healthy one does: every page, every reference, and every row as a value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from teamchat.core.errors import DamagedStore, StoreError
from teamchat.core.store.database import NO_VALUE, Database
from teamchat.core.store.lessons import a_lesson
from teamchat.core.store.messages import a_message
from teamchat.core.store.routes import a_route, a_state
from teamchat.core.store.rows import Row
from teamchat.core.store.sessions import SELECT as SESSIONS
from teamchat.core.store.sessions import a_session
from teamchat.core.store.texts import a_text
from teamchat.core.store.todos import a_change
from teamchat.core.store.turns import a_turn, an_event

MOST_SHOWN = 5  # problems of one kind


@dataclass(frozen=True, slots=True)
class Kind:
    """What the rows of a table are, and what makes values of them."""

    noun: str
    make: Callable[[Row], object]
    rows: str


def _session(row: Row) -> None:
    a_session(row)
    a_state(row)
    row.text("fence_key")
    row.integer("used")


def _summary(row: Row) -> None:
    [str(message) for message in (*row.json("kept"), *row.json("without"))]
    row.text("text")


KINDS = (
    Kind("session", _session, SESSIONS),
    Kind("message", a_message, "SELECT messages.*, NULL AS agent FROM messages ORDER BY id"),
    Kind("turn", a_turn, "SELECT * FROM turns ORDER BY id"),
    Kind("event", an_event, "SELECT * FROM turn_events"),
    Kind("text", a_text, "SELECT * FROM texts"),
    Kind("route", a_route, "SELECT * FROM routes"),
    Kind("todo change", a_change, "SELECT *, 0 AS hidden FROM todo_changes ORDER BY id"),
    Kind("summary", _summary, "SELECT * FROM summaries ORDER BY id"),
    Kind("lesson", a_lesson, "SELECT * FROM lessons ORDER BY id"),
)
REFERENCES = (
    "SELECT integrity_check AS problem FROM pragma_integrity_check(5) WHERE integrity_check <> 'ok'",
    """SELECT 'a row of ' || "table" || ' refers to one of ' || parent || ' that is missing' AS problem
    FROM pragma_foreign_key_check""",
    """SELECT 'route ' || number || ' is about a message that is missing' AS problem FROM routes
    WHERE place IS NOT NULL AND EXISTS (
        SELECT 1 FROM (SELECT parent AS named UNION ALL SELECT request UNION ALL SELECT as_of) WHERE named NOT NULL
        AND NOT EXISTS (SELECT 1 FROM messages WHERE message = named AND messages.session = routes.session)
    )""",
    """SELECT 'turn ' || number || ' is about a message that is missing' AS problem FROM turns WHERE EXISTS (
        SELECT 1 FROM (SELECT shown_through AS named UNION ALL SELECT json_extract(setup, '$.request'))
        WHERE NOT EXISTS (SELECT 1 FROM messages WHERE message = named AND messages.session = turns.session)
    )""",
    """SELECT 'the number of route ' || number || ' is given again' AS problem FROM routes
    JOIN sessions ON sessions.id = routes.session WHERE number >= next_route""",
    """SELECT 'route ' || routes.number || ' waits with a reply that is missing' AS problem FROM routes
    LEFT JOIN turns ON turns.id = answer
    WHERE place IS NOT NULL AND (routes.status = 'answered') <> (turns.text NOT NULL AND turns.status = 'answered')
    AND (routes.status = 'answered' OR answer NOT NULL)""",
)
"""What holds between rows, with `problem` for what breaks it."""


def problems(db: Database) -> Iterator[str]:
    """What is wrong with the store, in sentences; nothing for a healthy one. Never raises `DamagedStore`."""
    for sql in REFERENCES:
        try:
            yield from db.values(_problem, sql)[:MOST_SHOWN]
        except DamagedStore as error:
            yield reason(error)
    for kind in KINDS:
        yield from (f"a {kind.noun} cannot be read: {wrong}" for wrong in readable(db, kind)[1][:MOST_SHOWN])


def _problem(row: Row) -> str:
    return row.text("problem")


def readable(db: Database, kind: Kind) -> tuple[int, list[str]]:
    """How many rows of a kind can be read, and what is wrong with the others."""
    values, wrong = db.each(lambda row: row, kind.rows), list[str]()
    count = 0
    while True:
        try:
            row = next(values, None)
        except DamagedStore as error:
            return count, [*wrong, reason(error)]
        if row is None:
            return count, wrong
        try:
            kind.make(row)
        except NO_VALUE as error:
            wrong.append(str(error).partition("\n")[0])
        else:
            count += 1


def reason(error: StoreError) -> str:
    """What is wrong, without the name of the file."""
    return str(error).partition(" is damaged: ")[2] or str(error)
