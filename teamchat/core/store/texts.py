"""Texts that come again and again (prompts, instructions), each stored once under its SHA-256 and compressed."""

from __future__ import annotations

import hashlib
import zlib

from teamchat.core.store.database import Database

COMPRESS_FROM = 512  # bytes; below that zlib gains nothing


def put_text(db: Database, body: bytes) -> str:
    """Store `body` if it is new; its key."""
    key = hashlib.sha256(body).hexdigest()
    if db.row("SELECT 1 FROM texts WHERE hash = ?", key) is None:
        packed = zlib.compress(body, 6) if len(body) >= COMPRESS_FROM else body
        small = packed if len(packed) < len(body) else body
        db.execute("INSERT INTO texts VALUES (?, ?, ?, ?)", key, len(body), small is not body, small)
    return key


def get_text(db: Database, key: str) -> bytes:
    """The body of a key that was returned by `put_text`."""
    row = db.row("SELECT compressed, body FROM texts WHERE hash = ?", key)
    assert row is not None, key  # a foreign key points here
    return zlib.decompress(row["body"]) if row["compressed"] else bytes(row["body"])
