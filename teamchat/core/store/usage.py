"""What turns have used and been sent, summed by member, model and memory. Unknown stays unknown, never zero."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct, field

from teamchat.core.store import rows
from teamchat.core.store.database import Database
from teamchat.core.store.schema import QUANTITIES, TURN_USED


class Sum(Struct, frozen=True):
    """The sum of what is known, and of how many turns nothing is. None: of no turn is anything known."""

    known: float | None = None
    unknown: int = 0

    @property
    def exact(self) -> float | None:
        """The sum, where every part of it is known."""
        return None if self.unknown else self.known or 0

    def __add__(self, other: Sum) -> Sum:
        known = [part.known for part in (self, other) if part.known is not None]
        return Sum(sum(known) if known else None, self.unknown + other.unknown)


class Used(Struct, frozen=True):
    """Turns of one kind. `sent_bytes` went to their agents; as fresh turns they would have been sent `fresh_bytes`."""

    turns: int = 0
    input_tokens: Sum = field(default_factory=Sum)
    cached_tokens: Sum = field(default_factory=Sum)
    output_tokens: Sum = field(default_factory=Sum)
    cost_usd: Sum = field(default_factory=Sum)
    sent_bytes: int = 0
    fresh_bytes: int = 0

    def __add__(self, other: Used) -> Used:
        return Used(
            self.turns + other.turns,
            self.input_tokens + other.input_tokens,
            self.cached_tokens + other.cached_tokens,
            self.output_tokens + other.output_tokens,
            self.cost_usd + other.cost_usd,
            self.sent_bytes + other.sent_bytes,
            self.fresh_bytes + other.fresh_bytes,
        )

    @property
    def saving(self) -> float:
        """The part of the bytes that memory saved, from 0 to 1."""
        return max(1 - self.sent_bytes / self.fresh_bytes, 0.0) if self.fresh_bytes else 0.0


class UsageRow(Struct, frozen=True):
    """`model` is what the CLI said it used, else what the team file asked for."""

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
    """What a session's turns have used, or those of all sessions; in the order in which members first spoke."""
    if session is None:
        return db.values(a_usage_row, QUERY.format("TRUE"))
    return db.values(a_usage_row, QUERY.format("session = ?1"), session)


def a_usage_row(row: rows.Row) -> UsageRow:
    return UsageRow(row.text("member"), row.text("model") or None, row.text("memory"), _used(row))


def _used(row: rows.Row) -> Used:
    turns = row.count("turns")
    sums = {name: _sum(row.real(name), row.count(f"no_{name}"), turns) for name in QUANTITIES}
    return Used(turns, **sums, sent_bytes=row.count("sent"), fresh_bytes=row.count("fresh"))


def _sum(known: float, unknown: int, turns: int) -> Sum:
    return Sum(known if unknown < turns else None, unknown)


def total_used(rows: Iterable[UsageRow]) -> Used:
    return sum((row.used for row in rows), Used())
