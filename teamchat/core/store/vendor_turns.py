"""What a member's next turn needs of its earlier turns in one session of its CLI."""

from __future__ import annotations

from teamchat.core.store.database import Database
from teamchat.core.store.lineage import place_of
from teamchat.core.store.rows import Row
from teamchat.core.store.turns import a_turn
from teamchat.runners.events import Usage

THEIRS = "turns.session = ?1 AND turns.member = ?2 AND turns.vendor_session = ?3"
NEWEST_FIRST = f"SELECT * FROM turns WHERE {THEIRS} ORDER BY number DESC"  # noqa: S608 (our own words)
BY_HAND = f"""SELECT 1 FROM turns INDEXED BY turns_by_hand
    WHERE {THEIRS} AND (opened OR json_extract(setup, '$.adopted') NOT NULL)"""  # noqa: S608 (our own words)
REPLIES = f"""SELECT messages.message FROM messages CROSS JOIN turns ON turns.id = messages.turn
    WHERE messages.session = ?1 AND messages.id > ?4 AND {THEIRS}"""  # noqa: S608 (our own words)
USED = "SELECT * FROM vendor_usage WHERE session = ? AND member = ? AND vendor_session = ?"


class VendorTurns:
    """The turns of `member` in its vendor session `name`. Another member's vendor session may have the same name.

    Each answer is read when it is asked for.
    """

    def __init__(self, db: Database, session: int, member: str, name: str) -> None:
        self._db, self._key = db, (session, member, name)

    def had(self, message: str) -> bool:
        """Whether a turn was for the request of that id, or was shown it beside its history."""
        # the newest first: most requests are repeated by the next turns
        turns = self._db.each(a_turn, NEWEST_FIRST, *self._key)
        return any(message in (turn.setup.request, *turn.setup.beside) for turn in turns)

    def replies_after(self, message: str) -> frozenset[str]:
        """The ids of the replies that came after the message of that id."""
        place = place_of(self._db, self._key[0], message) or 0
        return frozenset(self._db.values(lambda row: row.text("message"), REPLIES, *self._key, place))

    @property
    def by_hand(self) -> bool:
        """Whether a person has continued the session, or began it."""
        return self._db.row(BY_HAND, *self._key) is not None

    @property
    def usage(self) -> Usage:
        """What the turns have used. A figure that a turn did not report counts as nothing."""
        return self._db.value(a_vendor_usage, USED, *self._key) or Usage(0, 0, 0, 0.0)


def a_vendor_usage(row: Row) -> Usage:
    return Usage(
        row.count("input_tokens"), row.count("cached_tokens"), row.count("output_tokens"), row.real("cost_usd")
    )
