"""The images of messages: each content is stored once, under the name that every message gave it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Literal

from msgspec import Struct

from teamchat.core.store.database import Database
from teamchat.core.store.lineage import MESSAGES
from teamchat.core.store.rows import Row
from teamchat.core.store.texts import Packed, get_text, put_text

LARGEST_IMAGE = 5 << 20  # bytes; Anthropic's API takes no larger one
MOST_IMAGES = 10  # images in one message

Kind = Literal["png", "jpg", "gif", "webp"]
_BEGINS: Mapping[Kind, tuple[bytes, ...]] = {
    "png": (b"\x89PNG\r\n\x1a\n",),
    "jpg": (b"\xff\xd8\xff",),
    "gif": (b"GIF87a", b"GIF89a"),
}


class Image(Struct, frozen=True):
    """An image by its content: `name` is the person's name for it, `kind` one of png, jpg, gif and webp."""

    name: str
    kind: Kind
    data: bytes


ImagesOf = Callable[[str], tuple[Image, ...]]
"""The images of the message of an id."""


def no_images(message: str) -> tuple[Image, ...]:
    """Return no images, for a conversation without any."""
    del message
    return ()


def image_files(images: Sequence[Image], scratch: Path) -> Iterator[tuple[Path, Image]]:
    """Pair each image with its file in a turn's private folder `scratch`; its `name` is the person's own."""
    for number, image in enumerate(images, 1):
        yield scratch / "images" / f"{number}.{image.kind}", image


def image_type(data: bytes) -> Kind | None:
    """Return the kind of image in `data`, whatever its file is called; None for anything else."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "webp"
    return next((kind for kind, heads in _BEGINS.items() if data.startswith(heads)), None)


def put_images(db: Database, session: int, message: str, images: Iterable[Image]) -> None:
    """Store the images of a message, in the caller's transaction."""
    for number, image in enumerate(images, 1):
        key = sha256(image.data).hexdigest()
        body = put_text(db, Packed(key, len(image.data), compressed=False, body=image.data))  # it is compressed already
        db.execute(
            "INSERT INTO images VALUES (?, ?, ?, ?, ?, ?)", session, message, number, image.name, image.kind, body
        )


def images_of(db: Database, session: int, message: str) -> tuple[Image, ...]:
    """Return the images of a message, in order. Raises `DamagedStore`."""
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
    """Map the id of each message with images to the names of its images."""
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
    """Return the image's name, its kind and the key of its content."""
    row.integer("session"), row.text("message"), row.integer("number")
    return row.text("name"), row.one_of(Kind, "kind"), row.text("body")
