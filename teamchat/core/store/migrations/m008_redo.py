from __future__ import annotations

import sqlite3


def m008_redo(db: sqlite3.Connection) -> None:
    for statement in REDO:
        db.execute(statement)


REDO: tuple[str, ...] = (
    "DROP TRIGGER message_brought_back",
    # nothing is said between an undo and its redo, so after it agents' own sessions know what there is
    """CREATE TRIGGER message_brought_back AFTER DELETE ON hides BEGIN
        UPDATE sessions SET edits = edits - 1 WHERE id = old.session;
    END""",
)
