"""The images of messages: each content is stored once, under the name that every message gave it."""

from __future__ import annotations

from collections.abc import Iterable

from teamchat.core.images import Image
from teamchat.core.store.database import Database
from teamchat.core.store.texts import get_text, pack, put_text


def put_images(db: Database, session: int, message: str, images: Iterable[Image]) -> None:
    """Store the images of a message, in the caller's transaction."""
    for number, image in enumerate(images, 1):
        body = put_text(db, pack(image.data))
        db.execute(
            "INSERT INTO images VALUES (?, ?, ?, ?, ?, ?)", session, message, number, image.name, image.kind, body
        )


def images_of(db: Database, session: int, message: str) -> tuple[Image, ...]:
    """The images of a message, in order."""
    rows = db.rows("SELECT * FROM images WHERE session = ? AND message = ? ORDER BY number", session, message)
    return tuple(Image(row["name"], row["kind"], get_text(db, row["body"])) for row in rows)
