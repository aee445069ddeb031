"""The free room on a disk."""

from __future__ import annotations

import os
from pathlib import Path

LITTLE = 64 * 1024  # bytes; with less room on the disk an output may be cut short


def room_in(folder: Path) -> int | None:
    """Return the number of bytes that the user can still write there; None is unknown."""
    try:
        disk = os.statvfs(folder)
    except OSError:
        return None
    blocks = disk.f_bavail if os.geteuid() else disk.f_bfree
    return blocks * disk.f_frsize if disk.f_blocks else None  # some file systems count none


def is_full(folder: Path) -> bool:
    """Whether the disk has so little room that output written there may be lost: few programs notice."""
    room = room_in(folder)
    return room is not None and room <= LITTLE
