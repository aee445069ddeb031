"""The queue and the engine's counters of a session, as rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from msgspec import convert
from msgspec.json import encode
from msgspec.structs import replace

from teamchat.core.engine.state import AlsoCalled, LastSaid, Route, RouteStatus, Rules, State
from teamchat.core.engine.workflow import Part, Process
from teamchat.core.store.database import Database
from teamchat.core.store.rows import Row, dump


def load_state(db: Database, session: int, rules: Rules) -> State:
    """Load the state as it was last saved."""
    state = db.the(a_state, "SELECT * FROM sessions WHERE id = ?", session)
    return replace(state, rules=rules, queue=open_routes(db, session))


def process_of(row: Row) -> Process | None:
    """Read the process of a session's row."""
    written = row.json_or_none("process")
    return None if written is None else convert(written, Process)


def last_process(db: Database, session: int) -> Process | None:
    """Return the process that runs, is on hold or ran last, whatever was said since."""
    sql = "SELECT COALESCE(process, last_process) AS process FROM sessions WHERE id = ?"
    return db.the(process_of, sql, session)


def a_state(row: Row) -> State:
    """Read the engine's counters; rules and queue come from elsewhere."""
    return State(
        rules=Rules((), ()),
        next_route=row.count("next_route"),
        turns=row.count("turns"),
        since=row.moment("since"),
        last_ai=row.text_or_none("last_ai"),
        tokens=row.count("tokens"),
        cost_usd=row.real("cost_usd"),
        stale=row.count("stale"),
        process=process_of(row),
        last_said=convert(row.json("last_said"), tuple[LastSaid, ...]),
    )


def open_routes(db: Database, session: int) -> tuple[Route, ...]:
    """Return the routes in the queue, in its order."""
    sql = "SELECT * FROM routes WHERE session = ? AND place IS NOT NULL ORDER BY place"
    return tuple(db.values(a_route, sql, session))


def a_route(row: Row) -> Route:
    return row.read(
        Route,
        number=row.count("number"),
        status=RouteStatus(row.text("status")),
        attempt=row.count("attempt"),
        also=convert(row.json_or_none("also") or (), tuple[AlsoCalled, ...]),
    )


def save_state(db: Database, session: int, old: State, new: State, dropped: Collection[Route] = ()) -> None:
    """Write what changed. A route that left the queue is stored as taken out if it is in `dropped`, else as done."""
    db.execute(
        "UPDATE sessions SET next_route = ?, turns = ?, since = ?, last_ai = ?, tokens = ?, cost_usd = ?, stale = ?,"
        " process = ?, last_said = ? WHERE id = ?",
        new.next_route, new.turns, new.since, new.last_ai, new.tokens, new.cost_usd, new.stale,
        dump(new.process) if new.process else None, encode(new.last_said).decode(), session,
    )  # fmt: skip
    if old.process and new.process is None:
        db.execute("UPDATE sessions SET last_process = ? WHERE id = ?", dump(old.process), session)
    left = {route.number for route in old.queue} - {route.number for route in (*new.queue, *dropped)}
    for route in old.queue:
        if route.number in left:
            _write(db, session, replace(route, status=RouteStatus.DONE), None)
    for route in dropped:  # one that another reply of the same group has just asked for was never queued before
        status = route.status if route.status is RouteStatus.JOINED else RouteStatus.DROPPED
        _write(db, session, replace(route, status=status), None)
    places = {route: place for place, route in enumerate(old.queue)}
    for place, route in enumerate(new.queue):
        if places.get(route) != place:
            _write(db, session, route, place)


def _write(db: Database, session: int, route: Route, place: int | None) -> None:
    db.execute(
        "INSERT OR REPLACE INTO routes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        session, route.number, place, route.target, route.priority, route.group, route.parent, route.by,
        route.request, route.as_of, route.status.value, route.attempt, route.answer,
        route.instead_of, dump(route.part) if route.part else None, encode(route.also).decode() if route.also else None,
    )  # fmt: skip


def find_route(db: Database, session: int, number: int) -> Route | None:
    return db.value(a_route, "SELECT * FROM routes WHERE session = ? AND number = ?", session, number)


def part_of(db: Database, turn: int) -> Part | None:
    """Return the part in a process that the turn with that id played; None if it played none."""
    sql = (
        "SELECT routes.part FROM turns JOIN routes ON routes.session = turns.session AND routes.number = turns.route"
        " WHERE turns.id = ?"
    )
    return db.value(_a_part, sql, turn)


def _a_part(row: Row) -> Part | None:
    part = row.json_or_none("part")
    return None if part is None else convert(part, Part)


def requests_of(db: Database, session: int, numbers: Iterable[int]) -> set[str]:
    """Return the ids of the people's messages behind the routes with these numbers."""
    routes = (find_route(db, session, number) for number in numbers)
    return {route.request for route in routes if route}


def replies_to(db: Database, session: int, request: str) -> list[str | None]:
    """List the reply of each member that a person's message calls, as the id of a message; None without a reply."""
    return db.values(
        lambda row: row.text_or_none("reply"),
        """SELECT (SELECT messages.message FROM turns JOIN messages ON messages.turn = turns.id
            WHERE turns.session = routes.session AND turns.route = routes.number AND turns.undone IS NULL
            ORDER BY messages.id DESC) AS reply
        FROM routes WHERE session = ? AND request = ? AND parent = request ORDER BY number""",
        session, request,
    )  # fmt: skip


def all_routes(db: Database, session: int) -> list[Route]:
    """List every route of the session in the order of queueing."""
    return db.values(a_route, "SELECT * FROM routes WHERE session = ? ORDER BY number", session)
