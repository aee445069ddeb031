"""Turns as rows: written when they begin, completed when they end, read for receipts."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct, convert
from msgspec.structs import replace

from teamchat.core.agents import AgentType, ProtocolName, agent_type
from teamchat.core.engine.state import LastSaid, Route, Rules, State
from teamchat.core.engine.workflow import Process
from teamchat.core.made import made_of
from teamchat.core.receipt import Outcome, Setup
from teamchat.core.store.database import Database
from teamchat.core.store.lineage import MESSAGES
from teamchat.core.store.rows import Count, Moment, Row, dump, load_outcome
from teamchat.core.store.texts import Packed, get_text, pack, put_text, stored_text
from teamchat.core.store.turn_events import TimedEvent, put_events

if TYPE_CHECKING:
    from teamchat.core.worktrees import PlaceTurn

LARGEST = 2**63 - 1  # the largest integer of SQLite
TurnStatus = Literal["running", "answered", "done", "failed", "interrupted", "stopped"]


class Before(Struct, frozen=True):
    """The state that an undo of a turn restores: the queue, the counters and the task just before it began."""

    queue: tuple[Route, ...]
    turns: int
    since: float
    last_ai: str | None
    stale: int
    task: str | None
    through: int
    """The id of the session's newest message in the store, 0 without one."""
    first: int
    """The number of the turn whose state it is: the turns of a group begin from one state."""
    process: str | None = None
    """The running process, as JSON."""
    last_said: tuple[LastSaid, ...] = ()

    @property
    def state(self) -> State:
        """The engine's state, without rules, route numbers and spendings."""
        process = convert(json.loads(self.process), Process) if self.process else None
        return made_of(State, self, rules=Rules((), ()), process=process)


class NewTurn(Struct, frozen=True):
    """A turn that is about to start."""

    session: int
    route: int | None
    """None for a side turn, which has no state `before` it."""
    member: str
    agent: str
    protocol: ProtocolName
    system_text: Packed | None
    prompt: Packed
    shown_through: str
    setup: Setup
    folder: Path
    before: State | None = None
    group: int | None = None
    """The id of the group's turn that keeps the state `before`, which this turn takes over."""
    admission: str | None = None
    """The agent's admission, as in `running_admissions`."""


class Turn(Struct, frozen=True):
    """A stored turn; `number` counts within the session, and a user calls the turn by it.

    `route` is None for a side turn, which is not part of the conversation and not remembered by its member. `undone` is
    the id of the undo that took it back.
    """

    id: int
    number: Count
    route: int | None
    member: str
    agent: str
    protocol: ProtocolName
    status: TurnStatus
    started_at: Moment
    shown_through: str
    setup: Setup
    folder: Path
    outcome: Outcome | None = None
    vendor_session: str | None = None
    opened: bool = False
    prompt_key: str = ""
    system_key: str | None = None
    partial_key: str | None = None
    undone: int | None = None

    @property
    def who(self) -> str:
        """The name of its member beside other turns of the same member: `sarah#3`."""
        return self.setup.place or self.member

    @property
    def type(self) -> AgentType:
        """The type of its agent, which decided its prompt and its command."""
        return agent_type(self.protocol, self.setup.row)


def turns_in_places(db: Database, session: int) -> dict[str, PlaceTurn]:
    """Map the name of each place to the session's last turn there."""
    from teamchat.core.worktrees import PlaceTurn  # most commands look at no worktree

    rows = db.rows(
        """SELECT json_extract(setup, '$.place') AS named, turns.number, route, turns.status, undone,
                COALESCE(json_extract(part, '$.apart'), 0) AS judged
            FROM turns JOIN routes ON routes.session = turns.session AND routes.number = route
            WHERE turns.session = ? AND named IS NOT NULL ORDER BY turns.number""",
        session,
    )
    return {
        row.text("named"): PlaceTurn(
            row.count("number"),
            row.integer("route"),
            done=row.one_of(TurnStatus, "status") in ("answered", "done"),
            undone=row.integer_or_none("undone") is not None,
            judged=bool(row.integer("judged")),
        )
        for row in rows
    }


def changed_places(db: Database, session: int, request: str) -> list[str]:
    """List the places where work for the request changed files, in the order of the routes."""
    return db.column(
        str,
        """SELECT json_extract(setup, '$.place') AS place FROM turns
            WHERE session = ? AND place IS NOT NULL AND status IN ('answered', 'done') AND undone IS NULL
                AND json_extract(setup, '$.request') = ? AND json_array_length(outcome, '$.changes.files') > 0
            ORDER BY route""",
        session,
        request,
    )


def begin_turn(db: Database, new: NewTurn) -> Turn:
    """Store a turn that starts now, with the exact bytes it is given."""
    started = time.time()
    with db.transaction():
        prompt = put_text(db, new.prompt)
        system = put_text(db, new.system_text) if new.system_text else None
        turn = db.the(
            a_turn,
            """INSERT INTO turns (session, number, route, member, agent, "like", status, started_at, system_text,
                prompt, shown_through, setup, folder, admission)
            VALUES (?1, (SELECT COALESCE(MAX(number), 0) + 1 FROM turns WHERE session = ?1),
                ?2, ?3, ?4, ?5, 'running', ?6, ?7, ?8, ?9, ?10, ?11, ?12) RETURNING *""",
            new.session, new.route, new.member, new.agent, new.protocol, started, system,
            prompt, new.shown_through, dump(new.setup), json.dumps(str(new.folder)), new.admission,
        )  # fmt: skip
        # Store what an undo of the turn needs, with the row that has just been made of it.
        if new.group is not None:
            same = "(SELECT before_state FROM turns WHERE id = ?)"
            db.execute(f"UPDATE turns SET before_state = {same} WHERE id = ?", new.group, turn.id)  # noqa: S608 (our own words)
        elif new.before is not None:
            before = state_now(db, new.session, new.before, turn.number)
            db.execute("UPDATE turns SET before_state = ? WHERE id = ?", dump(before), turn.id)
    return turn


def state_now(db: Database, session: int, state: State, first: int) -> Before:
    """Capture the state of a session with its task and its newest message."""
    task, through = db.the(
        lambda row: (row.text_or_none("task"), row.integer("through")),
        """SELECT task, (SELECT COALESCE(MAX(id), 0) FROM messages WHERE session = sessions.id) AS through
        FROM sessions WHERE id = ?""",
        session,
    )
    process = dump(state.process) if state.process else None
    return made_of(Before, state, task=task, through=through, first=first, process=process)


def before_turn(db: Database, turn: Turn) -> Before | None:
    """Return the state before a turn; None for a side turn, and for a turn by a version that stored none."""
    return db.the(a_before, "SELECT before_state FROM turns WHERE id = ?", turn.id)


def states_of_turns(db: Database, session: int) -> list[Before]:
    """List the states before the turns of a session, including undone ones, in order."""
    sql = "SELECT before_state FROM turns WHERE session = ? AND before_state NOT NULL ORDER BY number"
    return [before for before in db.values(a_before, sql, session) if before]


def a_before(row: Row) -> Before | None:
    written = json.loads(row.text_or_none("before_state") or "null")
    return None if written is None else convert(written, Before)


class Trace(Struct, frozen=True):
    """The traces of a turn besides its outcome, ready to be written: a text, a vendor session, its events."""

    text: Packed | None = None
    vendor_session: str | None = None
    events: tuple[TimedEvent, ...] = ()


NO_TRACE = Trace()


def trace(text: str = "", vendor_session: str | None = None, events: Iterable[TimedEvent] = ()) -> Trace:
    """Pack the results of a turn. A large text takes long, so do it before the transaction that ends the turn."""
    return Trace(pack(text) if text else None, vendor_session, tuple(events))


def end_turn(db: Database, turn: Turn, status: TurnStatus, outcome: Outcome, left: Trace = NO_TRACE) -> None:
    """Complete a turn; part of the caller's transaction, with the reply and the queue."""
    with db.transaction():
        db.execute(
            "UPDATE turns SET status = ?, outcome = ?, text = ?, vendor_session = ?, admission = NULL WHERE id = ?",
            status, dump(outcome), put_text(db, left.text) if left.text else None, left.vendor_session, turn.id,
        )  # fmt: skip
        put_events(db, turn.id, left.events)


def deliver_turn(db: Database, turn: Turn, reply: str) -> None:
    """Note that the reply kept by an answered turn is a message now."""
    assert turn.outcome is not None, turn
    outcome = replace(turn.outcome, reply=reply)
    db.execute("UPDATE turns SET status = 'done', outcome = ?, text = NULL WHERE id = ?", dump(outcome), turn.id)


def a_turn(row: Row) -> Turn:
    outcome = row.json_or_none("outcome")
    status = row.one_of(TurnStatus, "status")
    if (outcome is None) != (status == "running"):
        raise ValueError(f"outcome is {outcome!r:.40} of a turn that is {status}")
    return row.read(
        Turn,
        protocol=row.one_of(ProtocolName, "like"),
        outcome=load_outcome(outcome) if outcome is not None else None,
        prompt_key=row.text("prompt"),
        system_key=row.text_or_none("system_text"),
        partial_key=row.text_or_none("text"),
    )


def session_of(db: Database, turn: Turn) -> str:
    """Name the session of the turn. A branch also shows replies of the session it branched from."""
    sql = "SELECT sessions.name FROM turns JOIN sessions ON sessions.id = turns.session WHERE turns.id = ?"
    return db.the(lambda row: row.only(str), sql, turn.id)


def find_turn(db: Database, session: int, number: int | None = None) -> Turn | None:
    """Find a turn by its number, or the session's last."""
    if number is None:
        return db.value(a_turn, "SELECT * FROM turns WHERE session = ? ORDER BY number DESC LIMIT 1", session)
    return db.value(a_turn, "SELECT * FROM turns WHERE session = ? AND number = ?", session, min(number, LARGEST))


def get_turn(db: Database, turn: int) -> Turn:
    """Return the turn with that id, as a route keeps it. Raises `DamagedStore` if it is missing."""
    return db.the(a_turn, "SELECT * FROM turns WHERE id = ?", turn)


def find_any_turn(db: Database, turn: int) -> Turn | None:
    """Find the turn with that id; None if there is none."""
    return db.value(a_turn, "SELECT * FROM turns WHERE id = ?", turn)


def turn_of_session(db: Database, session: int, turn: int) -> Turn | None:
    """Find the turn with that id; None if it is not the session's."""
    return db.value(a_turn, "SELECT * FROM turns WHERE session = ? AND id = ?", session, turn)


def request_of(db: Database, turn: int) -> str | None:
    """Return the id of the person's message that the turn with that id served."""
    return db.scalar(str, "SELECT json_extract(setup, '$.request') FROM turns WHERE id = ?", turn)


def turns_of(db: Database, session: int) -> list[Turn]:
    """List every turn of the session, in order."""
    return db.values(a_turn, "SELECT * FROM turns WHERE session = ? ORDER BY number", session)


def turns_without_reply(db: Database, session: int) -> Iterator[Turn]:
    """List the session's turns for a route that gave no message, in order."""
    sql = (
        "SELECT * FROM turns WHERE session = ? AND route IS NOT NULL AND json_extract(outcome, '$.reply') IS NULL"
        " ORDER BY number"
    )
    return db.each(a_turn, sql, session)


def latest_turns(db: Database, session: int) -> Iterator[Turn]:
    """Read the turns of the session one by one, newest first."""
    return db.each(a_turn, "SELECT * FROM turns WHERE session = ? ORDER BY number DESC", session)


def runs(db: Database, session: int, turn: int) -> bool:
    """Whether the session's turn with that id has not ended, as far as the store knows."""
    sql = "SELECT 1 FROM turns WHERE id = ? AND session = ? AND status = 'running'"
    return db.row(sql, turn, session) is not None


def running_turns(db: Database, session: int) -> list[Turn]:
    return db.values(a_turn, "SELECT * FROM turns WHERE session = ? AND status = 'running' ORDER BY number", session)


class Admitted(Struct, frozen=True):
    """A running turn, with its admission as JSON: `Admission` in `core/turn/caller.py`."""

    session: int
    session_name: str
    turn: int
    number: Count
    member: str
    admission: str


def running_admissions(db: Database) -> list[Admitted]:
    """List the running turns of all sessions whose agents may run teamchat."""
    return db.values(
        an_admitted,
        """SELECT turns.id AS turn, number, member, session, name AS session_name, admission FROM turns
        JOIN sessions ON sessions.id = session WHERE status = 'running' AND admission NOT NULL""",
    )


def an_admitted(row: Row) -> Admitted:
    return row.read(Admitted)


def last_turn_of(db: Database, session: int, member: str) -> Turn | None:
    """Return the member's newest turn with a route."""
    return next(turns_of_member(db, session, member), None)


def has_turn(db: Database, session: int, member: str) -> bool:
    """Whether the member had a turn with a route."""
    sql = "SELECT 1 FROM turns WHERE session = ? AND member = ? AND route IS NOT NULL LIMIT 1"
    return db.row(sql, session, member) is not None


def lacks_denials(db: Database, session: int) -> bool:
    """Whether the denied actions of one of the newest 20 turns are unknown.

    There may be too many others to look at.
    """
    sql = """SELECT 1 FROM (
        SELECT outcome FROM turns WHERE session = ? AND outcome IS NOT NULL ORDER BY number DESC LIMIT 20
    ) WHERE json_extract(outcome, '$.denied') IS NULL LIMIT 1"""
    return db.row(sql, session) is not None


def turns_of_member(db: Database, session: int, member: str) -> Iterator[Turn]:
    """Read the member's turns with a route one by one, newest first."""
    sql = "SELECT * FROM turns WHERE session = ? AND member = ? AND route IS NOT NULL ORDER BY number DESC"
    return db.each(a_turn, sql, session, member)


def turns_of_route(db: Database, session: int, turn: Turn) -> list[Turn]:
    """List the turns of the turn's member for its route, newest first."""
    sql = "SELECT * FROM turns WHERE session = ? AND member = ? AND route = ? ORDER BY number DESC"
    return db.values(a_turn, sql, session, turn.member, turn.route)


def last_summary_turn(db: Database, session: int) -> Turn | None:
    """Return the newest turn that was asked for a summary, whether or not it succeeded."""
    return db.value(
        a_turn,
        "SELECT * FROM turns WHERE session = ? AND route IS NULL AND json_extract(setup, '$.purpose') = 'summary'"
        " ORDER BY number DESC LIMIT 1",
        session,
    )


def previous_turn(db: Database, turn: Turn) -> Turn | None:
    """Return the member's last turn with the same purpose before this one."""
    return db.value(
        a_turn,
        "SELECT * FROM turns WHERE session = (SELECT session FROM turns WHERE id = ?1) AND member = ?2 AND number < ?3"
        " AND json_extract(setup, '$.purpose') = ?4 ORDER BY number DESC LIMIT 1",
        turn.id, turn.member, turn.number, turn.setup.purpose,
    )  # fmt: skip


def sessions_with_undone(db: Database, session: int, member: str) -> set[str]:
    """Return the member's vendor sessions that remember an undone turn."""
    sql = """SELECT DISTINCT COALESCE(vendor_session, json_extract(setup, '$.resumes')) AS name FROM turns
        WHERE session = ? AND member = ? AND undone NOT NULL"""
    return set(filter(None, db.values(lambda row: row.text_or_none("name"), sql, session, member)))


def turns_from(db: Database, session: int, number: int) -> Iterator[Turn]:
    """Read the turns from that number on that are not undone, one by one, including side turns."""
    sql = "SELECT * FROM turns WHERE session = ? AND number >= ? AND undone IS NULL ORDER BY number"
    return db.each(a_turn, sql, session, min(number, LARGEST))


def turns_between(db: Database, session: int, first: int, last: int) -> list[Turn]:
    """List the turns from the number `first` to `last`, in order, including undone ones."""
    sql = "SELECT * FROM turns WHERE session = ? AND number BETWEEN ? AND ? ORDER BY number"
    return db.values(a_turn, sql, session, first, last)


def replied_between(db: Database, session: int, place: int, through: int) -> list[Turn]:
    """List the turns with replies after `place` up to `through`, without undone ones."""
    return db.values(
        a_turn,
        """SELECT turns.* FROM messages CROSS JOIN turns ON turns.id = messages.turn
        WHERE messages.session = ?1 AND messages.id > ?2 AND messages.id <= ?3 AND turns.session = ?1
            AND undone IS NULL""",
        session, place, through,
    )  # fmt: skip


def unreplied_between(db: Database, session: int, place: int, through: int) -> list[Turn]:
    """List the turns without a reply whose newest message is from `place` up to before `through`; no undone ones."""
    return db.values(
        a_turn,
        f"""SELECT turns.* FROM turns INDEXED BY turns_without_reply
        CROSS JOIN {MESSAGES} AND messages.message = shown_through
        WHERE turns.session = ?1 AND (status <> 'done' OR route IS NULL) AND undone IS NULL
            AND lineage.session = ?1 AND messages.id >= ?2 AND messages.id < ?3""",  # noqa: S608 (our own words)
        session, place, through,
    )  # fmt: skip


def last_turn_with_files(db: Database, session: int) -> Turn | None:
    """Return the newest turn that changed files and is not undone."""
    return db.value(
        a_turn,
        "SELECT * FROM turns WHERE session = ? AND undone IS NULL AND json_array_length(outcome, '$.files') > 0"
        " ORDER BY number DESC LIMIT 1",
        session,
    )


def turns_with_files(db: Database, session: int, most: int) -> list[int]:
    """List the ids of the `most` newest turns that changed files and are not undone, in order; -1 for all."""
    sql = (
        "SELECT id FROM turns WHERE session = ? AND undone IS NULL AND json_array_length(outcome, '$.files') > 0"
        " ORDER BY number DESC LIMIT ?"
    )
    return db.values(lambda row: row.integer("id"), sql, session, most)[::-1]


def last_turn_to_undo(db: Database, session: int) -> Turn | None:
    """Return the newest turn with a route that is not undone."""
    sql = "SELECT * FROM turns WHERE session = ? AND undone IS NULL AND route IS NOT NULL ORDER BY number DESC LIMIT 1"
    return db.value(a_turn, sql, session)


def mark_undone(db: Database, turns: Iterable[Turn], undo: int) -> None:
    db.executemany("UPDATE turns SET undone = ? WHERE id = ?", ((undo, turn.id) for turn in turns))


def mark_redone(db: Database, undo: int) -> None:
    """Restore the turns that this undo took back, as part of a redo."""
    db.execute("UPDATE turns SET undone = NULL WHERE undone = ?", undo)


def keep_reply(db: Database, turn: Turn, text: Packed) -> None:
    """Make a delivered turn keep its reply again, since its group is open again; reverses `deliver_turn`."""
    assert turn.outcome is not None, turn
    outcome = replace(turn.outcome, reply=None)
    db.execute(
        "UPDATE turns SET status = 'answered', outcome = ?, text = ? WHERE id = ?",
        dump(outcome), put_text(db, text), turn.id,
    )  # fmt: skip


def mark_opened(db: Database, turn: Turn) -> None:
    """Note that a person continues the turn's vendor session by hand."""
    db.execute("UPDATE turns SET opened = 1 WHERE id = ?", turn.id)


def running_folders(db: Database) -> set[str]:
    """Name the folders of all running turns in any session, including those whose process was killed."""
    sql = "SELECT folder FROM turns WHERE status = 'running'"
    return {path.name for path in db.values(lambda row: row.path("folder"), sql)}


def session_of_folder(db: Database, name: str) -> int | None:
    """Return the session of the turn whose folder has that name of 16 characters."""
    sql = "SELECT session FROM turns WHERE substr(folder, -17) = ? || '\"'"
    return db.scalar(int, sql, name)


def prompt_of(db: Database, turn: Turn) -> bytes:
    return get_text(db, turn.prompt_key)


def prompts_of(db: Database, turn: Turn) -> list[str]:
    """Return the system text, if the turn had one, and the prompt."""
    return [get_text(db, key).decode(errors="replace") for key in (turn.system_key, turn.prompt_key) if key]


def system_of(db: Database, turn: Turn) -> str | None:
    return stored_text(db, turn.system_key) if turn.system_key else None


def partial_of(db: Database, turn: Turn) -> str:
    """Return the partial text of a failed turn."""
    return stored_text(db, turn.partial_key) if turn.partial_key else ""


def number_of(db: Database, session: int, turn: int) -> int | None:
    """Return the number of the turn with that id; None if it is not the session's."""
    sql = "SELECT number FROM turns WHERE id = ? AND session = ?"
    return db.scalar(int, sql, turn, session)


def turn_numbers(db: Database, session: int) -> dict[int, int]:
    """Map the id of each turn to its number."""
    sql = "SELECT id, number FROM turns WHERE session = ?"
    return dict(db.values(lambda row: (row.integer("id"), row.integer("number")), sql, session))
