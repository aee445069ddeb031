"""The paths of images that are dragged or pasted into a terminal, in whatever way it quotes them."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from urllib.parse import unquote, urlsplit

from teamchat.core.conversation.mentioned import image_at, image_kind
from teamchat.core.errors import UsageError
from teamchat.core.text.clean import printable
from teamchat.patterns import regex

_LONGEST = 10_000  # characters
_IMAGE = regex(r"\.(?:png|jpe?g|gif|webp|bmp|tiff?|heic|avif|svg)\Z", re.IGNORECASE)
_BEGINS = ("/", "~/", "file://", "'/", '"/', "'file://", '"file://')
_WORD = regex(r"[^\s\"]*[^\s\".,:;!?)]")


def dragged_images(text: str) -> list[str]:
    """Return the paths, if the text is nothing but absolute paths with an image among them; else none.

    Raises `UsageError` if one cannot be attached.
    """
    text = text.strip()
    if "\n" in text or len(text) > _LONGEST or not text.startswith(_BEGINS):
        return []
    paths = _paths(text)
    if not any(_IMAGE.search(path) or _is_image(path) for path in paths):
        return []
    for path in paths:
        if '"' in path or not path.isprintable():
            raise UsageError(f"{printable(path)} has a quote or an invisible character in its name: it is not attached")
        image_at(Path(path), path)
    return paths


def ends_image(typed: str) -> bool:
    """Whether a text may be the path of an image that has just been typed to its end."""
    text = typed.strip()
    if not text.startswith(_BEGINS):
        return False
    quote = text[0] if text[0] in "'\"" else ""
    return typed == typed.rstrip() and text.endswith(quote) and bool(_IMAGE.search(text.removesuffix(quote)))


def at_path(path: str) -> str:
    """Write the path as a message mentions it."""
    return f"@{path}" if _WORD.fullmatch(path) else f'@"{path}"'


def _paths(text: str) -> list[str]:
    if _is_image(text):  # a space in it is neither quoted nor escaped
        return [text]
    try:
        words = [_path(word) for word in shlex.split(text)]
    except ValueError:
        return []
    return words if all(os.path.isabs(word) for word in words) else []  # noqa: PTH117


def _path(word: str) -> str:
    if word.startswith("file://"):
        return unquote(urlsplit(word).path)
    return os.path.expanduser(word) if word.startswith("~/") else word  # noqa: PTH111


def _is_image(path: str) -> bool:
    try:
        return Path(path).is_file() and image_kind(Path(path)) is not None
    except (OSError, ValueError):
        return False
