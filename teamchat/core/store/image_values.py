"""Images that a person attaches to a message."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

LARGEST_IMAGE = 5 << 20  # bytes, which is what Anthropic's API takes of one
MOST_IMAGES = 10  # in one message

Kind = Literal["png", "jpg", "gif", "webp"]
_BEGINS: Mapping[Kind, tuple[bytes, ...]] = {
    "png": (b"\x89PNG\r\n\x1a\n",),
    "jpg": (b"\xff\xd8\xff",),
    "gif": (b"GIF87a", b"GIF89a"),
}


class Image(Struct, frozen=True):
    """An image by its content: `name` is what the person called it, `kind` one of png, jpg, gif and webp."""

    name: str
    kind: Kind
    data: bytes


ImagesOf = Callable[[str], tuple[Image, ...]]
"""The images of the message of an id."""


def no_images(message: str) -> tuple[Image, ...]:
    """No message has an image."""
    del message
    return ()


def image_files(images: Sequence[Image], scratch: Path) -> Iterator[tuple[Path, Image]]:
    """Where a turn whose private folder is `scratch` has its images; their names are theirs who gave them."""
    for number, image in enumerate(images, 1):
        yield scratch / "images" / f"{number}.{image.kind}", image


def image_type(data: bytes) -> Kind | None:
    """The kind of image that `data` is, whatever its file is called; None for everything else."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "webp"
    return next((kind for kind, heads in _BEGINS.items() if data.startswith(heads)), None)
