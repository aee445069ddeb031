"""The folder that a process starts in, held open from the check to the start: its path may change its target."""

from __future__ import annotations

import fcntl
import os
import sys
from pathlib import Path

from teamchat.runners.process.start_errors import FolderReplaced

_HOW = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC  # Linux can enter unreadable folders


def open_folder(path: Path, real: Path | None = None) -> int:
    """A descriptor of the folder at `path`, which must be the one at `real` if that is given.

    Raises `FolderReplaced`, and `OSError` if there is no such folder.
    """
    folder = os.open(path, _HOW)
    if real is not None and (now := _path_of(folder, path)) != real:
        os.close(folder)
        raise FolderReplaced(f"its folder {path} was {real}, and now is {now}")
    return folder


def _path_of(folder: int, path: Path) -> Path:
    """Where an open folder is; by its `path` where the system cannot tell."""
    try:
        if sys.platform == "linux":
            return Path(f"/proc/self/fd/{folder}").readlink()
        return Path(os.fsdecode(fcntl.fcntl(folder, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0")))
    except (OSError, AttributeError):
        return Path(os.path.realpath(path))
