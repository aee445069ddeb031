from __future__ import annotations

import sqlite3

from teamchat.core.text.words import APART, spaced


def m026_scripts_without_spaces(db: sqlite3.Connection) -> None:
    """Index the words of scripts that have no spaces between them."""
    db.create_function("spaced", 1, spaced, deterministic=True)
    for statement in SCRIPTS:
        db.execute(statement)


_WORDS = "substr(content, 1, 1000000)"
_TO_INDEX = f"FROM messages WHERE id <= (SELECT through FROM indexed) AND content GLOB '*[{APART}]*'"  # noqa: S608
SCRIPTS: tuple[str, ...] = (
    f"INSERT INTO message_text (message_text, rowid, content) SELECT 'delete', id, {_WORDS} {_TO_INDEX}",
    f"INSERT INTO message_text (rowid, content) SELECT id, spaced({_WORDS}) {_TO_INDEX}",
    "DROP VIEW message_words",
    f"""CREATE VIEW message_words AS
        SELECT id, spaced({_WORDS}) AS content FROM messages WHERE id <= (SELECT through FROM indexed)""",  # noqa: S608
    "DROP TRIGGER messages_unindexed",
    f"""CREATE TRIGGER messages_unindexed AFTER DELETE ON messages BEGIN
        INSERT INTO message_text (message_text, rowid, content)
            SELECT 'delete', old.id, spaced({_WORDS.replace("content", "old.content")})
            WHERE old.id <= (SELECT through FROM indexed);
        UPDATE indexed SET through = (SELECT COALESCE(MAX(id), 0) FROM messages)
            WHERE through > (SELECT COALESCE(MAX(id), 0) FROM messages);
    END""",  # noqa: S608 (our own words)
    "DELETE FROM lesson_words",
    "INSERT INTO lesson_words (rowid, body) SELECT id, spaced(text) FROM lessons",
)
