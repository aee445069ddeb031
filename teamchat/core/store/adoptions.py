"""The vendor sessions that a person began and a member is to continue."""

from __future__ import annotations

from msgspec import Struct

from teamchat.core.store.database import Database
from teamchat.core.store.rows import Row


class Adoption(Struct, frozen=True):
    """`message` tells of it in the conversation. `agent` is the name of the agent whose session it is."""

    member: str
    agent: str
    vendor_session: str
    message: str


def an_adoption(row: Row) -> Adoption:
    return Adoption(row.text("member"), row.text("agent"), row.text("vendor_session"), row.text("message"))


def adopt(db: Database, session: int, adoption: Adoption) -> None:
    """Store it in the place of the member's last one. Its message is stored already."""
    db.execute("DELETE FROM adoptions WHERE session = ? AND member = ?", session, adoption.member)
    db.execute(
        """INSERT INTO adoptions (session, member, agent, vendor_session, message, after)
        VALUES (?1, ?2, ?3, ?4, ?5, (SELECT COALESCE(MAX(number), 0) FROM turns WHERE session = ?1))""",
        session, adoption.member, adoption.agent, adoption.vendor_session, adoption.message,
    )  # fmt: skip


def adoption_of(db: Database, session: int, member: str) -> Adoption | None:
    """What the member's next turn adopts. It stays until a turn has succeeded since, and after an undo of that turn.

    An undo that hides its message undoes it, too.
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
    """The last session that the member was given, whether or not it has continued it since."""
    return db.value(an_adoption, "SELECT * FROM adoptions WHERE session = ? AND member = ?", session, member)


def forget_adoption(db: Database, session: int, member: str) -> None:
    db.execute("DELETE FROM adoptions WHERE session = ? AND member = ?", session, member)


def vendor_sessions(db: Database) -> set[str]:
    """The vendor sessions that members' turns began in this store, in any conversation."""
    sql = "SELECT DISTINCT vendor_session AS name FROM turns WHERE vendor_session NOT NULL"
    return set(db.values(lambda row: row.text("name"), sql))
