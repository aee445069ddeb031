"""Texts that come again and again (prompts, instructions), each stored once under its SHA-256 and compressed."""

from __future__ import annotations

import zlib
from hashlib import sha256

from msgspec import Struct

from teamchat.core.store.database import Database
from teamchat.core.store.rows import Row

COMPRESS_FROM = 512  # bytes; below that zlib gains nothing
SELECT = "SELECT hash, compressed, body FROM texts WHERE hash = ?"


class Packed(Struct, frozen=True):
    """A text as it is stored: its key, its size in bytes, and its body, `compressed` where that makes it smaller."""

    key: str
    size: int
    compressed: bool
    body: bytes


def pack(text: str | bytes) -> Packed:
    """Hash and compress a text: a large one takes a second, so do it before the transaction that stores it."""
    data = text.encode(errors="replace") if isinstance(text, str) else text
    body = zlib.compress(data) if len(data) >= COMPRESS_FROM else data
    compressed = len(body) < len(data)
    return Packed(sha256(data).hexdigest(), len(data), compressed, body if compressed else data)


def put_text(db: Database, text: Packed) -> str:
    """Store a text unless it is stored already, and return its key."""
    db.execute(
        "INSERT INTO texts VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
        text.key, text.size, text.compressed, text.body,
    )  # fmt: skip
    return text.key


def get_text(db: Database, key: str) -> bytes:
    """Return the body that `put_text` stored under the key."""
    return db.the(a_text, SELECT, key)


def stored_text(db: Database, key: str) -> str:
    """Return the text stored under the key. Raises `DamagedStore`, also if the value is not text."""
    return db.the(lambda row: a_text(row).decode(), SELECT, key)


def a_text(row: Row) -> bytes:
    body = zlib.decompress(row.blob("body")) if row.integer("compressed") else row.blob("body")
    if sha256(body).hexdigest() != row.text("hash"):
        raise ValueError("it is not what was stored")
    return body
