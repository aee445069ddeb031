"""The images of messages: each content is stored once, under the name that every message gave it."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

from teamchat.core.store.database import Database
from teamchat.core.store.image_values import Image, Kind
from teamchat.core.store.lineage import MESSAGES
from teamchat.core.store.rows import Row
from teamchat.core.store.texts import Packed, get_text, put_text


def put_images(db: Database, session: int, message: str, images: Iterable[Image]) -> None:
    """Store the images of a message, in the caller's transaction."""
    for number, image in enumerate(images, 1):
        key = sha256(image.data).hexdigest()
        body = put_text(db, Packed(key, len(image.data), compressed=False, body=image.data))  # it is compressed already
        db.execute(
            "INSERT INTO images VALUES (?, ?, ?, ?, ?, ?)", session, message, number, image.name, image.kind, body
        )


def images_of(db: Database, session: int, message: str) -> tuple[Image, ...]:
    """The images of a message, in order. Raises `DamagedStore`."""
    rows = db.values(
        an_image,
        f"""SELECT images.* FROM {MESSAGES}
        JOIN images ON images.session = messages.session AND images.message = messages.message
        WHERE lineage.session = ?1 AND messages.message = ?2 ORDER BY lineage.through, images.number""",  # noqa: S608 (our own words)
        session,
        message,
    )
    return tuple(Image(name, kind, get_text(db, body)) for name, kind, body in rows)


def image_names(db: Database, session: int) -> dict[str, tuple[str, ...]]:
    """The names of the images of each message that has some, by the message's id."""
    names: dict[str, tuple[str, ...]] = {}
    for message, name in db.values(
        lambda row: (row.text("message"), row.text("name")),
        f"""SELECT images.message, images.name FROM {MESSAGES}
        JOIN images ON images.session = messages.session AND images.message = messages.message
        WHERE lineage.session = ?1 ORDER BY images.message, images.number""",  # noqa: S608 (our own words)
        session,
    ):
        names[message] = (*names.get(message, ()), name)
    return names


def an_image(row: Row) -> tuple[str, Kind, str]:
    """Its name, its kind and the key of its content."""
    row.integer("session"), row.text("message"), row.integer("number")
    return row.text("name"), row.one_of(Kind, "kind"), row.text("body")
