"""The vendor sessions that a person began and a member is to continue, and what turns have used in theirs."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from msgspec import Struct

from teamchat.core.store.database import Database
from teamchat.core.store.lineage import place_of
from teamchat.core.store.rows import Row
from teamchat.core.store.turns import Turn, a_turn
from teamchat.runners.agent_events import Usage


class Adoption(Struct, frozen=True):
    """A vendor session that a member is to continue.

    `message` tells of it in the conversation. `agent` is the name of the agent whose session it is.
    """

    member: str
    agent: str
    vendor_session: str
    message: str


def an_adoption(row: Row) -> Adoption:
    return Adoption(row.text("member"), row.text("agent"), row.text("vendor_session"), row.text("message"))


def adopt(db: Database, session: int, adoption: Adoption) -> None:
    """Store the adoption instead of the member's last one. Its message is stored already."""
    db.execute("DELETE FROM adoptions WHERE session = ? AND member = ?", session, adoption.member)
    db.execute(
        """INSERT INTO adoptions (session, member, agent, vendor_session, message, after)
        VALUES (?1, ?2, ?3, ?4, ?5, (SELECT COALESCE(MAX(number), 0) FROM turns WHERE session = ?1))""",
        session, adoption.member, adoption.agent, adoption.vendor_session, adoption.message,
    )  # fmt: skip


def adoption_of(db: Database, session: int, member: str) -> Adoption | None:
    """Return the session that the member's next turn adopts.

    It stays until a turn has succeeded since, and comes back if that turn is undone. An undo that hides its message
    undoes it, too.
    """
    return db.value(
        an_adoption,
        """SELECT * FROM adoptions AS one WHERE session = ? AND member = ?
        AND NOT EXISTS (SELECT 1 FROM turns WHERE turns.session = one.session AND turns.member = one.member
            AND number > one.after AND route NOT NULL AND undone IS NULL AND status IN ('done', 'answered'))
        AND NOT EXISTS (SELECT 1 FROM hides JOIN messages ON messages.id = hides.message
            WHERE hides.session = one.session AND messages.message = one.message)""",
        session, member,
    )  # fmt: skip


def adopted_by(db: Database, session: int, member: str) -> Adoption | None:
    """Return the last session that the member was given, whether or not it has continued it since."""
    return db.value(an_adoption, "SELECT * FROM adoptions WHERE session = ? AND member = ?", session, member)


def forget_adoption(db: Database, session: int, member: str) -> None:
    db.execute("DELETE FROM adoptions WHERE session = ? AND member = ?", session, member)


def vendor_sessions(db: Database) -> set[str]:
    """Return the vendor sessions that members' turns began in this store, in any conversation."""
    sql = "SELECT DISTINCT vendor_session AS name FROM turns WHERE vendor_session NOT NULL"
    return set(db.column(str, sql))


THEIRS = "turns.session = ?1 AND turns.member = ?2 AND turns.vendor_session = ?3"
NEWEST_FIRST = f"SELECT * FROM turns WHERE {THEIRS} ORDER BY number DESC"  # noqa: S608 (our own words)
BY_HAND = f"""SELECT 1 FROM turns INDEXED BY turns_by_hand
    WHERE {THEIRS} AND (opened OR json_extract(setup, '$.adopted') NOT NULL)"""  # noqa: S608 (our own words)
REPLIES = f"""SELECT messages.message FROM messages CROSS JOIN turns ON turns.id = messages.turn
    WHERE messages.session = ?1 AND messages.id > ?4 AND {THEIRS}"""  # noqa: S608 (our own words)
USED = "SELECT * FROM vendor_usage WHERE session = ? AND member = ? AND vendor_session = ?"


class VendorTurns:
    """The turns of `member` in its vendor session `name`. Another member's vendor session may have the same name.

    Each answer is read when it is asked for. Turns that the session has `lost` count as turns of none.
    """

    def __init__(self, db: Database, session: int, member: str, name: str) -> None:
        self._db, self._key = db, (session, member, name)
        self.lost: tuple[Turn, ...] = ()

    def held(self, rows: Collection[str]) -> Turn | None:
        """Return the newest turn that a session of those rows of its record has, and keep those after it as `lost`."""
        lost = list[Turn]()
        for turn in self._newest_first():
            if turn.outcome is None or not turn.outcome.last_row or turn.outcome.last_row in rows:
                break
            lost.append(turn)
        else:
            turn = None
        self.lost = tuple(lost)
        return turn

    def _newest_first(self) -> Iterator[Turn]:
        return self._db.each(a_turn, NEWEST_FIRST, *self._key)

    def had(self, message: str) -> bool:
        """Whether a turn was for the request with that id, or showed it beside its history."""
        # the newest first: most requests are repeated by the next turns
        lost = {turn.number for turn in self.lost}
        turns = (turn for turn in self._newest_first() if turn.number not in lost)
        return any(message in (turn.setup.request, *turn.setup.beside) for turn in turns)

    def replies_after(self, message: str) -> frozenset[str]:
        """Return the ids of this session's replies after the message with that id."""
        place = place_of(self._db, self._key[0], message) or 0
        lost = {turn.outcome.reply for turn in self.lost if turn.outcome}
        return frozenset(self._db.column(str, REPLIES, *self._key, place)) - lost

    @property
    def by_hand(self) -> bool:
        """Whether a person has continued the session, or began it."""
        return self._db.row(BY_HAND, *self._key) is not None

    @property
    def usage(self) -> Usage:
        """The usage of the turns. A figure that a turn did not report counts as nothing."""
        return self._db.value(a_vendor_usage, USED, *self._key) or Usage(0, 0, 0, 0.0)


def a_vendor_usage(row: Row) -> Usage:
    return Usage(
        row.count("input_tokens"), row.count("cached_tokens"), row.count("output_tokens"), row.real("cost_usd")
    )
