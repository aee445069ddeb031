"""Texts that come again and again (prompts, instructions), each stored once under its SHA-256 and compressed."""

from __future__ import annotations

import codecs
import zlib
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256

from msgspec import Struct

from teamchat.core.store.database import NO_VALUE, Database
from teamchat.core.store.rows import Row
from teamchat.runners.growing import joined

COMPRESS_FROM = 512  # bytes; below that zlib gains nothing
LEVEL = 6  # of compression
SLICE = 256 * 1024  # bytes, or characters, that are read or made at once


SELECT = "SELECT hash, compressed, body FROM texts WHERE hash = ?"


class Packed(Struct, frozen=True):
    """A text as it is stored: its key, its size in bytes, and its body, `compressed` where that makes it smaller."""

    key: str
    size: int
    compressed: bool
    body: bytes


def pack(body: bytes) -> Packed:
    """Hash and compress `body`: seconds for a large one, so it is done before the transaction that stores it."""
    return _packed(_slices(body), lambda: body)


def pack_text(text: str) -> Packed:
    """The same for a text that may be large: it is encoded in slices."""

    def encoded(piece: str) -> bytes:
        return piece.encode(errors="replace")

    return _packed((encoded(text[at : at + SLICE]) for at in range(0, len(text), SLICE)), lambda: encoded(text))


def _packed(slices: Iterable[bytes], whole: Callable[[], bytes]) -> Packed:
    digest, stream, size = sha256(), zlib.compressobj(LEVEL), 0
    packed: list[bytes] = []
    for data in slices:
        digest.update(data)
        size += len(data)
        packed.append(stream.compress(data))
    body = b"".join((*packed, stream.flush()))
    compressed = COMPRESS_FROM <= size > len(body)
    return Packed(digest.hexdigest(), size, compressed, body if compressed else whole())


def put_text(db: Database, text: Packed) -> str:
    """Store a text if it is new; its key."""
    db.execute(
        "INSERT INTO texts VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
        text.key, text.size, text.compressed, text.body,
    )  # fmt: skip
    return text.key


def get_text(db: Database, key: str) -> bytes:
    """The body of a key that was returned by `put_text`."""
    return db.the(a_text, SELECT, key)


def stored_text(db: Database, key: str) -> str:
    """The text of a key. Raises `DamagedStore`, also if the value is not text."""
    return joined(stored_pieces(db, key))


def stored_pieces(db: Database, key: str) -> Iterator[str]:
    """The text of a key in pieces, which are made as they are asked for. Raises `DamagedStore`, maybe at the end."""
    compressed, body = db.the(lambda row: (row.integer("compressed"), row.blob("body")), SELECT, key)
    digest = sha256()

    def noted(pieces: Iterator[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            digest.update(piece)
            yield piece

    try:
        yield from codecs.iterdecode(noted(_inflated(body) if compressed else _slices(body)), "utf-8")
        if digest.hexdigest() != key:
            raise ValueError("it is not what was stored")
    except NO_VALUE as error:
        raise db.damaged(f"text: {error}") from error


def size_of(db: Database, key: str) -> int:
    """The bytes of the text of a key."""
    return db.the(lambda row: row.count("bytes"), "SELECT bytes FROM texts WHERE hash = ?", key)


def _slices(body: bytes) -> Iterator[bytes]:
    return (body[at : at + SLICE] for at in range(0, len(body), SLICE))


def _inflated(body: bytes) -> Iterator[bytes]:
    stream = zlib.decompressobj()
    for data in _slices(body):
        yield stream.decompress(data, SLICE)
        while stream.unconsumed_tail:
            yield stream.decompress(stream.unconsumed_tail, SLICE)


def a_text(row: Row) -> bytes:
    body = zlib.decompress(row.blob("body")) if row.integer("compressed") else row.blob("body")
    if sha256(body).hexdigest() != row.text("hash"):
        raise ValueError("it is not what was stored")
    return body
