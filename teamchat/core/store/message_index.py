"""The FTS5 index of the messages' words.

Adding one message takes as long as storing it, and adding hundreds hardly longer. So messages are added together: some
hundreds while they are stored, and the missing ones before a search. The latest time of them is kept, too, so that a
search from a time on begins near it.
"""

from __future__ import annotations

from teamchat.core.store.database import Database

INDEXED = 1_000_000  # characters of a message that are indexed
INDEXED_TOGETHER = 256  # messages
LONG = 20_000  # characters; for a longer message the cost of a transaction does not matter
AT_ONCE = 2_000_000  # characters added in one transaction, which keeps others from writing
BEHIND = "SELECT through FROM indexed WHERE through < (SELECT MAX(id) FROM messages)"
"""The id of the last message in the index, if there are later ones."""
NEXT_TO_INDEX = "SELECT id, length(content) AS size FROM messages WHERE id > ? ORDER BY id LIMIT ?"
ADD = f"""INSERT INTO message_text (rowid, content)
    SELECT id, spaced(substr(content, 1, {INDEXED})) FROM messages WHERE id > ? AND id <= ?"""  # noqa: S608 (our own words)

ADD_TIME = """INSERT INTO message_times SELECT MIN(id), MAX(timestamp) FROM messages WHERE id > ? AND id <= ?
    ON CONFLICT DO UPDATE SET latest = max(latest, excluded.latest)"""


def index_if_due(db: Database, message: int, content: str) -> None:
    """Add missing messages if they are many, in the transaction that stores the message with the id `message`."""
    if message % INDEXED_TOGETHER == 0 or len(content) > LONG:
        index_messages(db)


def index_messages(db: Database) -> None:
    """Add the words of every message that is not in the index yet."""
    while db.scalar(int, BEHIND) is not None:
        with db.transaction():
            _index_some(db)


def _index_some(db: Database) -> None:
    begin = db.scalar(int, BEHIND)
    if begin is None:  # another process has added them
        return
    through, size = begin, 0
    for message, length in db.values(
        lambda row: (row.integer("id"), row.integer("size")), NEXT_TO_INDEX, begin, INDEXED_TOGETHER
    ):
        if size and size + length > AT_ONCE:
            break
        through, size = message, size + length
    db.execute(ADD, begin, through)
    db.execute(ADD_TIME, begin, through)
    db.execute("UPDATE indexed SET through = ?", through)
