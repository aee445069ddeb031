"""What sessions have used that the agent of a turn runs: they are the turn's children, and are stored in any store."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from teamchat.core.receipt import QUANTITIES, Child
from teamchat.core.store.database import Database
from teamchat.core.store.rows import Row
from teamchat.runners.events import Usage

COUNTED = ("turns", *QUANTITIES, *map("no_{}".format, QUANTITIES))
ADD = f"""INSERT INTO children (session, turn, store, child, {", ".join(COUNTED)})
    VALUES ({", ".join("?" * (4 + len(COUNTED)))})
    ON CONFLICT DO UPDATE SET {", ".join(f"{name} = {name} + excluded.{name}" for name in COUNTED)}"""  # noqa: S608 (our own names)


class ChildrenUsage(Struct, frozen=True):
    """What several children have used."""

    turns: int = 0
    tokens: int = 0
    cost_usd: float = 0.0


def count_turn(db: Database, session: int, turn: int, store: str, child: str) -> None:
    """Count a turn of a child of the session's turn of that id. What it uses is not known yet."""
    _add(db, session, turn, store, child, {"turns": 1} | {f"no_{name}": 1 for name in QUANTITIES})


def add_used(db: Database, session: int, turn: int, store: str, child: str, usage: Usage) -> None:
    """Add what a counted turn of a child has used, as far as it is known."""
    known = {name: value for name in QUANTITIES if (value := getattr(usage, name)) is not None}
    _add(db, session, turn, store, child, known | {f"no_{name}": -1 for name in known})


def _add(db: Database, session: int, turn: int, store: str, child: str, counts: Mapping[str, float]) -> None:
    db.execute(ADD, session, turn, store, child, *(counts.get(name, 0) for name in COUNTED))


def children_of(db: Database, session: int, turn: int) -> tuple[Child, ...]:
    """The children of the session's turn of that id, in the order of their names."""
    sql = "SELECT * FROM children WHERE session = ? AND turn = ? ORDER BY store, child"
    return tuple(db.values(a_child, sql, session, turn))


def children_in(db: Database, session: int) -> list[tuple[str, Child]]:
    """The children of each of the session's turns, with the member whose turn it is."""
    return db.values(
        lambda row: (row.text("member"), a_child(row)),
        """SELECT children.*, member FROM children JOIN turns ON turns.id = turn
        WHERE children.session = ? ORDER BY turn, store, child""",
        session,
    )


def a_child(row: Row) -> Child:
    tokens = {name: int(row.real(name)) for name in QUANTITIES if name != "cost_usd"}
    unknown = {f"no_{name}": row.count(f"no_{name}") for name in QUANTITIES}
    cost, turns = row.real("cost_usd"), row.count("turns")
    return Child(row.text("child"), row.text("store"), turns, cost_usd=cost, **tokens, **unknown)


def used_meanwhile(db: Database, session: int) -> ChildrenUsage:
    """What the children of the turns that run have used: the session's own counters do not have it yet."""
    return db.the(
        _children_usage,
        """SELECT SUM(turns) AS turns, SUM(input_tokens + output_tokens) AS tokens, SUM(cost_usd) AS cost_usd FROM (
            SELECT children.* FROM turns INDEXED BY turns_running
            JOIN children ON children.session = turns.session AND turn = turns.id
            WHERE turns.session = ? AND status = 'running'
        )""",
        session,
    )


def _children_usage(row: Row) -> ChildrenUsage:
    return ChildrenUsage(row["turns"] or 0, int(row["tokens"] or 0), row["cost_usd"] or 0.0)
