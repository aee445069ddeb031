"""Images that a person attaches to a message."""

from __future__ import annotations

from dataclasses import dataclass, field

LARGEST_IMAGE = 5 << 20  # bytes, which is what Anthropic's API takes of one
MOST_IMAGES = 10  # in one message

_BEGINS = {
    "png": (b"\x89PNG\r\n\x1a\n",),
    "jpg": (b"\xff\xd8\xff",),
    "gif": (b"GIF87a", b"GIF89a"),
}


@dataclass(frozen=True, slots=True)
class Image:
    """An image by its content: `name` is what the person called it, `kind` one of png, jpg, gif and webp."""

    name: str
    kind: str
    data: bytes = field(repr=False)


def image_type(data: bytes) -> str | None:
    """The kind of image that `data` is, whatever its file is called; None for everything else."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "webp"
    return next((kind for kind, heads in _BEGINS.items() if data.startswith(heads)), None)
