"""The usage of turns and the bytes sent to them, summed by member, model and memory. Unknown stays unknown, never zero.

Sessions that the agent of a turn runs are the turn's children: their usage is added up beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import add

from msgspec import Struct, field
from msgspec.structs import astuple

from teamchat.core.receipt import QUANTITIES, Child
from teamchat.core.store.database import Database
from teamchat.core.store.rows import Count, Row
from teamchat.core.store.schema import TURN_USED
from teamchat.runners.agent_events import Usage


class Sum(Struct, frozen=True):
    """The sum of the known values, and the number of turns without one. `known` is None if no turn has one."""

    known: float | None = None
    unknown: int = 0

    @property
    def exact(self) -> float | None:
        """The sum, if every part of it is known."""
        return None if self.unknown else self.known or 0

    def __add__(self, other: Sum) -> Sum:
        known = [part.known for part in (self, other) if part.known is not None]
        return Sum(sum(known) if known else None, self.unknown + other.unknown)


class Used(Struct, frozen=True):
    """The usage of similar turns. `sent_bytes` went to their agents; fresh turns would have been sent `fresh_bytes`."""

    turns: int = 0
    input_tokens: Sum = field(default_factory=Sum)
    cached_tokens: Sum = field(default_factory=Sum)
    output_tokens: Sum = field(default_factory=Sum)
    cost_usd: Sum = field(default_factory=Sum)
    sent_bytes: int = 0
    fresh_bytes: int = 0

    def __add__(self, other: Used) -> Used:
        return Used(*map(add, astuple(self), astuple(other)))

    @property
    def saving(self) -> float:
        """The share of the bytes that memory saved, from 0 to 1."""
        return max(1 - self.sent_bytes / self.fresh_bytes, 0.0) if self.fresh_bytes else 0.0


class UsageRow(Struct, frozen=True):
    """The usage of a member by model and memory.

    `model` is the one that the CLI reported, else the one in the team file.
    """

    member: str
    model: str | None
    memory: str
    used: Used


QUERY = f"""SELECT member, model, memory, SUM(turns) AS turns,
    {", ".join(f"SUM({name}) AS {name}" for name in (*QUANTITIES, *map("no_{}".format, QUANTITIES), "sent", "fresh"))}
    FROM (
        SELECT * FROM usage WHERE {{0}}
        UNION ALL SELECT {TURN_USED} FROM turns WHERE status = 'running' AND {{0}}
    ) GROUP BY member, model, memory ORDER BY MIN(first)"""  # noqa: S608 (our own names)


def used(db: Database, session: int | None) -> list[UsageRow]:
    """List the usage of a session's turns, or of all sessions, in the order of the members' first turns."""
    if session is None:
        return db.values(a_usage_row, QUERY.format("TRUE"))
    return db.values(a_usage_row, QUERY.format("session = ?1"), session)


def a_usage_row(row: Row) -> UsageRow:
    return UsageRow(row.text("member"), row.text("model") or None, row.text("memory"), _used(row))


def _used(row: Row) -> Used:
    turns = row.count("turns")
    sums = {name: _sum(row.real(name), row.count(f"no_{name}"), turns) for name in QUANTITIES}
    return Used(turns, **sums, sent_bytes=row.count("sent"), fresh_bytes=row.count("fresh"))


def _sum(known: float, unknown: int, turns: int) -> Sum:
    return Sum(known if unknown < turns else None, unknown)


def total_used(rows: Iterable[UsageRow]) -> Used:
    return sum((row.used for row in rows), Used())


COUNTED = ("turns", *QUANTITIES, *map("no_{}".format, QUANTITIES))
ADD = f"""INSERT INTO children (session, turn, store, child, {", ".join(COUNTED)})
    VALUES ({", ".join("?" * (4 + len(COUNTED)))})
    ON CONFLICT DO UPDATE SET {", ".join(f"{name} = {name} + excluded.{name}" for name in COUNTED)}"""  # noqa: S608 (our own names)


class ChildrenUsage(Struct, frozen=True):
    """The usage of several children."""

    turns: int = 0
    tokens: int = 0
    cost_usd: float = 0.0


def count_turn(db: Database, session: int, turn: int, store: str, child: str) -> None:
    """Count a turn of a child of the session's turn with that id. Its usage is not known yet."""
    _add(db, session, turn, store, child, {"turns": 1} | {f"no_{name}": 1 for name in QUANTITIES})


def add_used(db: Database, session: int, turn: int, store: str, child: str, usage: Usage) -> None:
    """Add the known usage of a child's counted turn."""
    known = {name: value for name in QUANTITIES if (value := getattr(usage, name)) is not None}
    _add(db, session, turn, store, child, known | {f"no_{name}": -1 for name in known})


def _add(db: Database, session: int, turn: int, store: str, child: str, counts: Mapping[str, float]) -> None:
    db.execute(ADD, session, turn, store, child, *(counts.get(name, 0) for name in COUNTED))


def children_of(db: Database, session: int, turn: int) -> tuple[Child, ...]:
    """List the children of the session's turn with that id, in the order of their names."""
    sql = "SELECT * FROM children WHERE session = ? AND turn = ? ORDER BY store, child"
    return tuple(db.values(a_child, sql, session, turn))


def children_in(db: Database, session: int) -> list[tuple[str, Child]]:
    """List the children of each of the session's turns, with the member of that turn."""
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
    """Sum up the usage of the children of running turns: the session's own counters do not have it yet."""
    return db.the(
        lambda row: ChildrenUsage(row["turns"] or 0, int(row["tokens"] or 0), row["cost_usd"] or 0.0),
        """SELECT SUM(turns) AS turns, SUM(input_tokens + output_tokens) AS tokens, SUM(cost_usd) AS cost_usd FROM (
            SELECT children.* FROM turns INDEXED BY turns_running
            JOIN children ON children.session = turns.session AND turn = turns.id
            WHERE turns.session = ? AND status = 'running'
        )""",
        session,
    )


class UsageSums(Struct, frozen=True):
    """The usage of a session's ended turns. Each sum covers the `of` turns whose value is known; None is unknown."""

    turns: Count
    seconds: float | None
    of_seconds: Count
    tokens: int | None
    of_tokens: Count
    cost_usd: float | None
    of_cost: Count


def spent(db: Database, session: int) -> UsageSums:
    sql = """SELECT COUNT(*) AS turns, SUM(seconds) AS seconds, COUNT(seconds) AS of_seconds, SUM(tokens) AS tokens,
            COUNT(tokens) AS of_tokens, SUM(cost_usd) AS cost_usd, COUNT(cost_usd) AS of_cost
        FROM (SELECT json_extract(outcome, '$.seconds') AS seconds,
                json_extract(outcome, '$.usage.input_tokens')
                    + json_extract(outcome, '$.usage.output_tokens') AS tokens,
                json_extract(outcome, '$.usage.cost_usd') AS cost_usd
            FROM turns WHERE session = ? AND outcome IS NOT NULL)"""
    return db.the(a_spent, sql, session)


def a_spent(row: Row) -> UsageSums:
    return row.read(UsageSums)
