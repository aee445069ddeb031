"""Writes objects as git does: each in a compressed file of its own, under the name that its content has."""

from __future__ import annotations

import hashlib
import os
import zlib
from pathlib import Path

_READABLE = 0o444


def write_object(objects: Path, object_format: str, kind: str, content: bytes) -> str:
    """The name of the object. It is in the folder `objects` from then on. Raises `OSError`."""
    whole = f"{kind} {len(content)}\0".encode() + content
    name = hashlib.new(object_format, whole, usedforsecurity=False).hexdigest()
    file = objects / name[:2] / name[2:]
    try:
        os.utime(file)  # git removes an object that is old and that nothing names yet
    except OSError:
        _write(file, zlib.compress(whole, zlib.Z_BEST_SPEED))
    return name


def _write(file: Path, content: bytes) -> None:
    file.parent.mkdir(exist_ok=True)
    new = file.with_name(f"tmp_obj_{os.urandom(6).hex()}")  # git removes files of this name that are old
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _READABLE), "wb") as opened:
        opened.write(content)
    new.replace(file)
