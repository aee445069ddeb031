from __future__ import annotations

import os

import pytest

from teamchat.core.store.database import Database
from teamchat.core.store.texts import get_text, pack, put_text, stored_text


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"short",
        b"\x00\xff not text",
        "水".encode() * 1000,
        b"x" * 511,
        b"x" * 512,
        b"x" * 1_000_000,
        os.urandom(2000),
    ],
    ids=["nothing", "short", "bytes", "utf-8", "below", "at", "long", "random"],
)
def test_a_text_comes_back_byte_for_byte(db: Database, body: bytes) -> None:
    assert get_text(db, put_text(db, pack(body))) == body


@pytest.mark.parametrize("text", ["", "水", "é🙂" * 100_000])
def test_a_text_is_packed_as_its_bytes_are(db: Database, text: str) -> None:
    packed = pack(text)
    assert packed == pack(text.encode())
    assert stored_text(db, put_text(db, packed)) == text


def test_the_same_text_is_stored_once(db: Database) -> None:
    keys = {put_text(db, pack(body)) for body in (b"instruction" * 100, b"other", b"instruction" * 100)}
    assert len(keys) == 2
    assert db.rows("SELECT COUNT(*) FROM texts")[0][0] == 2


def test_a_long_text_is_compressed_and_one_that_would_grow_is_not(db: Database) -> None:
    put_text(db, pack(b"again and " * 1000))
    put_text(db, pack(os.urandom(2000)))
    rows = db.rows("SELECT bytes, compressed, LENGTH(body) AS size FROM texts ORDER BY bytes DESC")
    assert rows[0]["bytes"] == 10_000
    assert rows[0]["compressed"] == 1
    assert rows[0]["size"] < 200
    assert tuple(rows[1]) == (2000, 0, 2000)
