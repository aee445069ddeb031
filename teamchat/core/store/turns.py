"""Turns as rows: written when they begin, completed when they end, read for receipts."""

from __future__ import annotations

import dataclasses
import json
import re
import sqlite3
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from teamchat.core.agent_types import Like
from teamchat.core.pairing import StoredEvent, paired
from teamchat.core.receipt import Outcome, Setup
from teamchat.core.store.database import Database
from teamchat.core.store.texts import Packed, get_text, pack, put_text
from teamchat.runners.agent_events import AgentEvent, TextDelta

if TYPE_CHECKING:
    from pydantic import TypeAdapter

LARGEST = 2**63 - 1  # that SQLite holds
_SURROGATE = re.compile("[\ud800-\udfff]")
TurnStatus = Literal["running", "answered", "done", "failed", "interrupted"]


@dataclass(frozen=True, slots=True)
class TimedEvent:
    """An agent event and when it came, in seconds since the turn began."""

    at: float
    event: AgentEvent


@dataclass(frozen=True, slots=True)
class NewTurn:
    """A turn that is about to start; `route` is None for one aside from the conversation."""

    session: int
    route: int | None
    member: str
    agent: str
    like: Like
    system_text: Packed | None
    prompt: Packed
    shown_through: str
    setup: Setup
    folder: Path


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn as it is stored; `number` counts within the session and is what a user calls it by.

    `route` is None for one aside from the conversation: no part of it, and nothing that its member remembers.
    """

    id: int
    number: int
    route: int | None
    member: str
    agent: str
    like: Like
    status: TurnStatus
    started_at: float
    shown_through: str
    setup: Setup
    folder: Path
    outcome: Outcome | None
    vendor_session: str | None
    opened: bool
    prompt_key: str
    system_key: str | None
    partial_key: str | None


def begin_turn(db: Database, new: NewTurn) -> Turn:
    """Store a turn that starts now, with the exact bytes it is given."""
    started = time.time()
    with db.transaction():
        prompt = put_text(db, new.prompt)
        system = put_text(db, new.system_text) if new.system_text else None
        row = db.row(
            """INSERT INTO turns (session, number, route, member, agent, "like", status, started_at, system_text,
                prompt, shown_through, setup, folder)
            VALUES (?1, (SELECT COALESCE(MAX(number), 0) + 1 FROM turns WHERE session = ?1),
                ?2, ?3, ?4, ?5, 'running', ?6, ?7, ?8, ?9, ?10, ?11) RETURNING id, number""",
            new.session, new.route, new.member, new.agent, new.like, started, system,
            prompt, new.shown_through, _dump(new.setup), json.dumps(str(new.folder)),
        )  # fmt: skip
    assert row is not None
    return Turn(
        id=row["id"],
        number=row["number"],
        route=new.route,
        member=new.member,
        agent=new.agent,
        like=new.like,
        status="running",
        started_at=started,
        shown_through=new.shown_through,
        setup=new.setup,
        folder=new.folder,
        outcome=None,
        vendor_session=None,
        opened=False,
        prompt_key=prompt,
        system_key=system,
        partial_key=None,
    )


@dataclass(frozen=True, slots=True)
class Trace:
    """What a turn leaves beside its outcome, as it is written: a text, a session of its agent's CLI, its events."""

    text: Packed | None = None
    vendor_session: str | None = None
    events: tuple[tuple[float, str, str], ...] = ()


def trace(text: str = "", vendor_session: str | None = None, events: Iterable[TimedEvent] = ()) -> Trace:
    """Make ready what a turn leaves: much work for a large text, and so done before the transaction that ends it."""
    kept = (timed for timed in events if not isinstance(timed.event, TextDelta))  # a Text holds their sum
    return Trace(
        pack(text.encode(errors="replace")) if text else None,
        vendor_session,
        tuple((round(timed.at, 3), type(timed.event).__name__, _dump(timed.event)) for timed in kept),
    )


def end_turn(db: Database, turn: Turn, status: TurnStatus, outcome: Outcome, left: Trace = Trace()) -> None:
    """Complete a turn; part of the caller's transaction, with the reply and the queue."""
    with db.transaction():
        db.execute(
            "UPDATE turns SET status = ?, outcome = ?, text = ?, vendor_session = ? WHERE id = ?",
            status, _dump(outcome), put_text(db, left.text) if left.text else None, left.vendor_session, turn.id,
        )  # fmt: skip
        db.executemany(
            "INSERT INTO turn_events VALUES (?, ?, ?, ?, ?)",
            ((turn.id, number, *event) for number, event in enumerate(left.events)),
        )


def deliver_turn(db: Database, turn: Turn, reply: str) -> None:
    """The reply that an answered turn has kept is a message now."""
    assert turn.outcome is not None, turn
    outcome = dataclasses.replace(turn.outcome, reply=reply)
    db.execute("UPDATE turns SET status = 'done', outcome = ?, text = NULL WHERE id = ?", _dump(outcome), turn.id)


def _dump(value: Any) -> str:
    fields = dataclasses.asdict(value)
    written = json.dumps(fields, ensure_ascii=False, default=list)
    # surrogates can not be stored; JSON's escapes, up to six times as long, keep them
    return json.dumps(fields, default=list) if _SURROGATE.search(written) else written


@cache
def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def _turn(row: sqlite3.Row) -> Turn:
    # by way of json: pydantic's own parser refuses the escaped surrogates of a path that is no UTF-8
    setup, outcome = json.loads(row["setup"]), json.loads(row["outcome"] or "null")
    return Turn(
        id=row["id"],
        number=row["number"],
        route=row["route"],
        member=row["member"],
        agent=row["agent"],
        like=row["like"],
        status=row["status"],
        started_at=row["started_at"],
        shown_through=row["shown_through"],
        setup=_adapter(Setup).validate_python(setup),
        folder=Path(json.loads(row["folder"])),
        outcome=_adapter(Outcome).validate_python(outcome) if outcome else None,
        vendor_session=row["vendor_session"],
        opened=bool(row["opened"]),
        prompt_key=row["prompt"],
        system_key=row["system_text"],
        partial_key=row["text"],
    )


def find_turn(db: Database, session: int, number: int | None = None) -> Turn | None:
    """A turn by its number, or the session's last."""
    row = db.row(
        "SELECT * FROM turns WHERE session = ? AND (?2 IS NULL OR number = ?2) ORDER BY number DESC LIMIT 1",
        session, None if number is None else min(number, LARGEST),
    )  # fmt: skip
    return _turn(row) if row else None


def get_turn(db: Database, turn: int) -> Turn:
    """The turn of that id, as a route keeps it."""
    row = db.row("SELECT * FROM turns WHERE id = ?", turn)
    assert row is not None, turn
    return _turn(row)


def turns_of(db: Database, session: int) -> list[Turn]:
    return [_turn(row) for row in db.rows("SELECT * FROM turns WHERE session = ? ORDER BY number", session)]


def running_turns(db: Database, session: int) -> list[Turn]:
    rows = db.rows("SELECT * FROM turns WHERE session = ? AND status = 'running' ORDER BY number", session)
    return [_turn(row) for row in rows]


def last_turn_of(db: Database, session: int, member: str) -> Turn | None:
    """The member's newest turn that had a route."""
    return next(turns_of_member(db, session, member), None)


def turns_of_member(db: Database, session: int, member: str) -> Iterator[Turn]:
    """The member's turns that had a route, the newest first."""
    sql = "SELECT * FROM turns WHERE session = ? AND member = ? AND route IS NOT NULL ORDER BY number DESC"
    return map(_turn, db.execute(sql, session, member))


def last_compaction(db: Database, session: int) -> Turn | None:
    """The newest turn that was to sum up the conversation, whatever came of it."""
    row = db.row(
        "SELECT * FROM turns WHERE session = ? AND route IS NULL AND json_extract(setup, '$.purpose') = 'summary'"
        " ORDER BY number DESC LIMIT 1",
        session,
    )
    return _turn(row) if row else None


def previous_turn(db: Database, turn: Turn) -> Turn | None:
    """The same member's turn of the same purpose before that one."""
    row = db.row(
        "SELECT * FROM turns WHERE session = (SELECT session FROM turns WHERE id = ?1) AND member = ?2 AND number < ?3"
        " AND json_extract(setup, '$.purpose') = ?4 ORDER BY number DESC LIMIT 1",
        turn.id, turn.member, turn.number, turn.setup.purpose,
    )  # fmt: skip
    return _turn(row) if row else None


def turns_in(db: Database, session: int, member: str, vendor_session: str) -> list[Turn]:
    """The turns of a member that one session of its CLI has had; another member's CLI may call its own the same."""
    rows = db.rows(
        "SELECT * FROM turns WHERE session = ? AND member = ? AND vendor_session = ? ORDER BY number",
        session, member, vendor_session,
    )  # fmt: skip
    return [_turn(row) for row in rows]


def mark_opened(db: Database, turn: Turn) -> None:
    """A person goes on by hand with the session that the turn has left."""
    db.execute("UPDATE turns SET opened = 1 WHERE id = ?", turn.id)


def running_folders(db: Database) -> set[str]:
    """The names of the folders of all turns that run, or whose process died over them, in any session."""
    return {
        Path(json.loads(row["folder"])).name for row in db.rows("SELECT folder FROM turns WHERE status = 'running'")
    }


def session_of_folder(db: Database, name: str) -> int | None:
    """The session of the turn whose folder has that name."""
    row = db.row("SELECT session FROM turns WHERE folder LIKE '%/' || ? || '\"'", name)
    return None if row is None else int(row["session"])


def events_of(db: Database, turn: Turn) -> list[StoredEvent]:
    """A stored turn's events, every tool call with its result."""
    rows = db.rows("SELECT at, type, data FROM turn_events WHERE turn = ? ORDER BY number", turn.id)
    return paired(StoredEvent(row["at"], row["type"], json.loads(row["data"])) for row in rows)


def prompt_of(db: Database, turn: Turn) -> bytes:
    return get_text(db, turn.prompt_key)


def system_of(db: Database, turn: Turn) -> str | None:
    return get_text(db, turn.system_key).decode() if turn.system_key else None


def partial_of(db: Database, turn: Turn) -> str:
    return get_text(db, turn.partial_key).decode() if turn.partial_key else ""


def turn_numbers(db: Database, session: int) -> dict[int, int]:
    """The number of each turn by its id."""
    return {row["id"]: row["number"] for row in db.rows("SELECT id, number FROM turns WHERE session = ?", session)}
