"""What sessions have used that the agent of a turn runs: they are the turn's children, and are stored in any store."""

from __future__ import annotations

import json

from msgspec import Struct

from teamchat.core.receipt import Child
from teamchat.core.store.database import Database
from teamchat.core.store.rows import Row
from teamchat.core.store.values import dump, load

ADD = """INSERT INTO children VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET turns = turns + excluded.turns,
    tokens = tokens + excluded.tokens, cost_usd = cost_usd + excluded.cost_usd,
    turns_with_cost = turns_with_cost + excluded.turns_with_cost"""
SUMS = "SUM(children.turns) AS turns, SUM(tokens) AS tokens, SUM(children.cost_usd) AS cost_usd"


class CalledBy(Struct, frozen=True):
    """The turn whose agent began a session: its number, its member, and the session and store that it is of."""

    store: str
    session: str
    turn: int
    member: str


class Sum(Struct, frozen=True):
    """What several children have used."""

    turns: int = 0
    tokens: int = 0
    cost_usd: float = 0.0


def add_used(db: Database, session: int, turn: int, used: Child) -> None:
    """Count what a child of the session's turn of that id has used, on top of what it had used before."""
    values = used.store, used.session, used.turns, used.tokens, used.cost_usd, used.turns_with_cost
    db.execute(ADD, session, turn, *values)


def children_of(db: Database, session: int, turn: int) -> tuple[Child, ...]:
    """The children of the session's turn of that id, in the order of their names."""
    sql = "SELECT * FROM children WHERE session = ? AND turn = ? ORDER BY store, child"
    return tuple(db.values(a_child, sql, session, turn))


def children_in(db: Database, session: int) -> list[tuple[str, Child]]:
    """The children of a session's turns, each with the member whose turn it is."""
    return db.values(
        lambda row: (row.text("member"), a_child(row)),
        """SELECT children.*, member FROM children JOIN turns ON turns.id = turn
        WHERE children.session = ? ORDER BY turn, store, child""",
        session,
    )


def a_child(row: Row) -> Child:
    counts = {name: row.count(name) for name in ("turns", "tokens", "turns_with_cost")}
    return Child(row.text("child"), row.text("store"), cost_usd=row.real("cost_usd"), **counts)


def used_meanwhile(db: Database, session: int) -> Sum:
    """What the children of the turns that run have used: the session's own counters do not have it yet."""
    return db.the(
        _sum,
        f"""SELECT {SUMS} FROM turns INDEXED BY turns_running
        JOIN children ON children.session = turns.session AND turn = turns.id
        WHERE turns.session = ? AND status = 'running'""",  # noqa: S608 (our own words)
        session,
    )


def _sum(row: Row) -> Sum:
    return Sum(row["turns"] or 0, row["tokens"] or 0, row["cost_usd"] or 0.0)


def begun_by(db: Database, session: int) -> CalledBy | None:
    """The turn whose agent began the session; None for one that nobody's agent began."""
    return db.the(called_by, "SELECT caller FROM sessions WHERE id = ?", session)


def called_by(row: Row) -> CalledBy | None:
    written = row.text_or_none("caller") if row.has("caller") else None
    return None if written is None else load(CalledBy, json.loads(written))


def set_caller(db: Database, session: int, caller: CalledBy) -> None:
    """Note which turn's agent begins the session."""
    db.execute("UPDATE sessions SET caller = ? WHERE id = ?", dump(caller), session)
