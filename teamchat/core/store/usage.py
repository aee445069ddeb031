"""What turns have used and been sent, summed by member, model and memory. Unknown stays unknown, never zero."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from teamchat.core.store import rows
from teamchat.core.store.database import Database


@dataclass(frozen=True, slots=True)
class Sum:
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


@dataclass(frozen=True, slots=True)
class Used:
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


@dataclass(frozen=True, slots=True)
class UsageRow:
    """`model` is what the CLI said it used, else what the team file asked for."""

    member: str
    model: str | None
    memory: str
    used: Used


QUANTITIES = ("input_tokens", "cached_tokens", "output_tokens", "cost_usd")
SENT = "json_extract(setup, '$.stdin_bytes') + json_extract(setup, '$.system_bytes')"
USED = ", ".join(f"SUM(json_extract(outcome, '$.usage.{name}')) AS {name}" for name in QUANTITIES)
UNKNOWN = ", ".join(f"SUM(json_extract(outcome, '$.usage.{name}') IS NULL) AS no_{name}" for name in QUANTITIES)
QUERY = f"""SELECT member, COALESCE(json_extract(outcome, '$.model'), json_extract(setup, '$.model')) AS model,
    json_extract(setup, '$.memory') AS memory, COUNT(*) AS turns, {USED}, {UNKNOWN}, SUM({SENT}) AS sent,
    SUM(CASE WHEN json_extract(setup, '$.resumes') IS NULL THEN {SENT} ELSE json_extract(setup, '$.fresh_bytes') END)
        AS fresh
    FROM turns WHERE ?1 IS NULL OR session = ?1 GROUP BY 1, 2, 3 ORDER BY MIN(id)"""  # noqa: S608 (our own names)


def used(db: Database, session: int | None) -> list[UsageRow]:
    """What a session's turns have used, or those of all sessions; in the order in which members first spoke."""
    return db.values(_row, QUERY, session)


def _row(row: rows.Row) -> UsageRow:
    return UsageRow(row.text("member"), row.text_or_none("model"), row.text("memory"), _used(row))


def _used(row: rows.Row) -> Used:
    sums = {name: Sum(row.real_or_none(name), row.count(f"no_{name}")) for name in QUANTITIES}
    return Used(row.count("turns"), **sums, sent_bytes=row.count("sent"), fresh_bytes=row.count("fresh"))


def total_used(rows: Iterable[UsageRow]) -> Used:
    return sum((row.used for row in rows), Used())
