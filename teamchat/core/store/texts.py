"""Texts that come again and again (prompts, instructions), each stored once under its SHA-256 and compressed."""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import dataclass

from teamchat.core.store.database import Database

COMPRESS_FROM = 512  # bytes; below that zlib gains nothing


@dataclass(frozen=True, slots=True)
class Packed:
    """A text as it is stored: its key, its size in bytes, and its body, `compressed` where that makes it smaller."""

    key: str
    size: int
    compressed: bool
    body: bytes


def pack(body: bytes) -> Packed:
    """Hash and compress `body`: seconds for a large one, so it is done before the transaction that stores it."""
    packed = zlib.compress(body, 6) if len(body) >= COMPRESS_FROM else body
    compressed = len(packed) < len(body)
    return Packed(hashlib.sha256(body).hexdigest(), len(body), compressed, packed if compressed else body)


def put_text(db: Database, text: Packed) -> str:
    """Store a text if it is new; its key."""
    db.execute(
        "INSERT INTO texts VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
        text.key, text.size, text.compressed, text.body,
    )  # fmt: skip
    return text.key


def get_text(db: Database, key: str) -> bytes:
    """The body of a key that was returned by `put_text`."""
    row = db.row("SELECT compressed, body FROM texts WHERE hash = ?", key)
    assert row is not None, key  # a foreign key points here
    return zlib.decompress(row["body"]) if row["compressed"] else bytes(row["body"])
