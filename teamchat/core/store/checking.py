"""Whether a store is healthy: every page, every reference, and every row as a value."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct

from teamchat.core.engine.state import State
from teamchat.core.engine.strategies import strategy_of
from teamchat.core.errors import DamagedStore, StoreError
from teamchat.core.store.accepted import an_accepted
from teamchat.core.store.checks import a_check
from teamchat.core.store.database import EMPTY, NO_VALUE, Database
from teamchat.core.store.images import an_image
from teamchat.core.store.imported import an_imported_entry
from teamchat.core.store.lessons import a_lesson
from teamchat.core.store.messages import a_message
from teamchat.core.store.routes import a_route, a_state
from teamchat.core.store.rows import Row
from teamchat.core.store.sessions import a_session
from teamchat.core.store.summaries import a_clear
from teamchat.core.store.texts import a_text
from teamchat.core.store.todos import a_change
from teamchat.core.store.turn_events import an_event
from teamchat.core.store.turns import a_before, a_turn
from teamchat.core.store.undos import an_undo
from teamchat.core.store.unsent import an_unsent_message
from teamchat.core.store.usage import a_child, a_usage_row
from teamchat.core.store.vendor_sessions import a_vendor_usage, an_adoption
from teamchat.core.text.clean import printable

MOST_SHOWN = 5  # problems of one kind


class CheckedRows(Struct, frozen=True):
    """The rows of a table in the order of their `key`, and the function that makes values of them.

    `more` are further columns that it needs.
    """

    noun: str
    table: str
    key: str
    make: Callable[[Row], object]
    more: str = ""

    def rows(self, *, backwards: bool = False) -> str:
        order = ", ".join(f"{column}{' DESC' if backwards else ''}" for column in self.key.split(", "))
        return f"SELECT {self.table}.*{self.more} FROM {self.table} ORDER BY {order}"  # noqa: S608 (our own names)


def _session(row: Row) -> None:
    a_session(row)
    _state(a_state(row))
    row.text("fence_key")
    row.json_or_none("last_process")
    row.integer("used")


def _state(state: State) -> None:
    """Check that the strategy of a state's process, if it has one, can continue it and report on it."""
    if state.process:
        strategy = strategy_of(state.process.kind)
        strategy.step(state.process), strategy.report(state.process)


def _summary(row: Row) -> None:
    [str(message) for message in (*row.json("kept"), *row.json("without"))]
    row.text("text")


def _turn(row: Row) -> None:
    a_turn(row)
    if before := a_before(row):
        _state(before.state)


def _undo(row: Row) -> None:
    _state(an_undo(row).before.state)


def _lineage(row: Row) -> None:
    for name in ("session", "ancestor", "through", "todos"):
        row.integer(name)


def _hide(row: Row) -> None:
    row.integer("session"), row.integer("message"), row.integer_or_none("undo")


KINDS = (
    CheckedRows("session", "sessions", "id", _session, ", 0 AS not_counted"),
    CheckedRows("lineage", "lineage", "session, through", _lineage),
    CheckedRows("text", "texts", "hash", a_text),
    CheckedRows("undo", "undos", "id", _undo),
    CheckedRows("turn", "turns", "id", _turn),
    CheckedRows("check", "checks", "id", a_check),
    CheckedRows("accepted file", "accepted", "session, path, state", an_accepted),
    CheckedRows("child", "children", "session, turn, store, child", a_child),
    CheckedRows("event", "turn_events", "turn, number", an_event),
    CheckedRows("message", "messages", "id", a_message, ", NULL AS agent"),
    CheckedRows("hidden message", "hides", "session, message", _hide),
    CheckedRows("route", "routes", "session, number", a_route),
    CheckedRows("todo change", "todo_changes", "id", a_change, ", 0 AS hidden"),
    CheckedRows("summary", "summaries", "id", _summary),
    CheckedRows("image", "images", "session, message, number", an_image),
    CheckedRows("unsent message", "unsent", "id", an_unsent_message),
    CheckedRows("adopted session", "adoptions", "session, member", an_adoption),
    CheckedRows("imported entry", "imported_entries", "session, number", an_imported_entry),
    CheckedRows("clear", "clears", "id", a_clear, ", '' AS message"),
    CheckedRows("lesson", "lessons", "id", a_lesson),
)
"""The tables in an order where rows refer to earlier ones, except the messages of turns."""
SUMS = (
    CheckedRows("sum of turns", "usage", "session, member, model, memory", a_usage_row),
    CheckedRows("sum of turns", "vendor_usage", "session, member, vendor_session", a_vendor_usage),
)
"""Made from the turns: a rescue makes them anew."""
REFERENCES = (
    "SELECT integrity_check AS problem FROM pragma_integrity_check(5) WHERE integrity_check <> 'ok'",
    """SELECT 'a row of ' || "table" || ' refers to one of ' || parent || ' that is missing' AS problem
    FROM pragma_foreign_key_check""",
    """SELECT 'route ' || number || ' is about a message that is missing' AS problem FROM routes
    WHERE place IS NOT NULL AND EXISTS (
        SELECT 1 FROM (SELECT parent AS named UNION ALL SELECT request UNION ALL SELECT as_of) WHERE named NOT NULL
        AND NOT EXISTS (SELECT 1 FROM lineage CROSS JOIN messages ON messages.session = lineage.ancestor
            AND messages.message = named AND messages.id <= lineage.through WHERE lineage.session = routes.session)
    )""",
    """SELECT 'turn ' || number || ' is about a message that is missing' AS problem FROM turns WHERE EXISTS (
        SELECT 1 FROM (SELECT shown_through AS named UNION ALL SELECT json_extract(setup, '$.request')
            UNION ALL SELECT json_extract(setup, '$.answers'))
        WHERE NOT EXISTS (SELECT 1 FROM lineage CROSS JOIN messages ON messages.session = lineage.ancestor
            AND messages.message = named AND messages.id <= lineage.through WHERE lineage.session = turns.session)
    )""",
    """SELECT 'session ' || name || ' goes on from a message that is missing' AS problem FROM sessions WHERE EXISTS (
        SELECT 1 FROM json_each(last_said) WHERE NOT EXISTS (
            SELECT 1 FROM lineage CROSS JOIN messages ON messages.session = lineage.ancestor AND messages.message =
            json_extract(value, '$.message') AND messages.id <= lineage.through WHERE lineage.session = sessions.id)
    )""",
    """SELECT 'session ' || name || ' has lost its messages' AS problem FROM sessions
    WHERE NOT EXISTS (SELECT 1 FROM lineage WHERE session = id AND ancestor = id)""",
    """SELECT 'the number of route ' || number || ' is given again' AS problem FROM routes
    JOIN sessions ON sessions.id = routes.session WHERE number >= next_route""",
    """SELECT 'route ' || routes.number || ' waits with a reply that is missing' AS problem FROM routes
    LEFT JOIN turns ON turns.id = answer
    WHERE place IS NOT NULL AND (answer NOT NULL OR routes.status = 'answered')
    AND NOT COALESCE(turns.text NOT NULL AND turns.status = 'answered', 0)""",
    """SELECT 'a search does not find all messages' AS problem WHERE (SELECT COUNT(*) FROM indexed) <> 1
    OR (SELECT through FROM indexed) NOT BETWEEN 0 AND (SELECT COALESCE(MAX(id), 0) FROM messages)""",
)
"""The conditions between rows, with a `problem` for a broken one."""


def problems(db: Database) -> Iterator[str]:
    """List the faults of the store in sentences; none if it is healthy. Never raises `DamagedStore`."""
    try:
        if not db.version():
            yield EMPTY
            return
    except DamagedStore as error:
        yield reason(error)
        return
    for sql in REFERENCES:
        try:
            yield from db.column(str, sql)[:MOST_SHOWN]
        except DamagedStore as error:
            yield reason(error)
    for kind in (*KINDS, *SUMS):
        article = "an" if kind.noun[0] in "aeiou" else "a"
        yield from (f"{article} {kind.noun} cannot be read: {wrong}" for wrong in _unreadable(db, kind)[:MOST_SHOWN])


def _unreadable(db: Database, kind: CheckedRows) -> list[str]:
    wrong: list[str] = []
    try:
        for row in db.each(lambda row: row, kind.rows()):
            try:
                kind.make(row)
            except NO_VALUE as error:
                wrong.append(printable(str(error).partition("\n")[0]))
    except DamagedStore as error:
        wrong.append(reason(error))
    return wrong


def reason(error: StoreError) -> str:
    """Say what is wrong, without the name of the file."""
    return str(error).partition(" is damaged: ")[2] or str(error)
