"""Brings a store to the schema of this version. The migrations are loaded only if some are missing."""

from __future__ import annotations

import sqlite3
import time

SCHEMA = 26
"""How many migrations there are."""


class NewerStore(Exception):
    """The store was written by a later teamchat."""


def migrate(db: sqlite3.Connection) -> None:
    """Take the missing migrations, one transaction for each. Raises `NewerStore`."""
    done = _version(db)
    if done > SCHEMA:
        raise NewerStore(done)
    if done == SCHEMA:
        return
    from teamchat.core.store.migrations.in_order import MIGRATIONS

    for number, step in enumerate(MIGRATIONS[done:], done + 1):
        db.execute("BEGIN IMMEDIATE")
        try:
            if _version(db) < number:  # else another process has run it
                step(db)
                db.execute(
                    "CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, applied_at REAL NOT NULL) STRICT"
                )
                db.execute("INSERT INTO migrations VALUES (?, ?)", (step.__name__, time.time()))
                db.execute(f"PRAGMA user_version = {number}")
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise


def _version(db: sqlite3.Connection) -> int:
    version: int = db.execute("PRAGMA user_version").fetchone()[0]
    return version
