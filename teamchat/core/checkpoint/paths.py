"""Paths in a work tree: which are safe, what their folders are, and how they are shown."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator

from teamchat.patterns import regex

_GITS_OWN = regex(r"(\.git|git~[0-9]+)[ .]*(:.*)?", re.IGNORECASE | re.DOTALL)
_IGNORED = regex("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")  # a Mac's file system ignores them in names


def is_safe(path: str) -> bool:
    """Whether git records the path on every system; a tree that somebody forged may have others."""
    return all(_is_name(part) for part in path.split("/"))


def _is_name(part: str) -> bool:
    return part not in ("", ".", "..") and "\0" not in part and not _GITS_OWN.fullmatch(_IGNORED.sub("", part))


def folders_of(path: str) -> Iterator[str]:
    """Yield the folders that a path is in, the topmost first."""
    at = path.find("/")
    while at != -1:
        yield path[:at]
        at = path.find("/", at + 1)


def is_within(path: str, places: Collection[str]) -> bool:
    """Whether the path is one of the places, or in a folder that is one."""
    return path in places or any(folder in places for folder in folders_of(path))


def readable(path: str) -> str:
    """Return a path as text: bytes that are not UTF-8 are in it as escapes."""
    return os.fsencode(path).decode(errors="backslashreplace")
