"""The places of teamchat's own files: the user's state and configuration folders.

They are outside the folders that agents work in, so that no agent edits the record of its own work.
"""

from __future__ import annotations

import errno
import os
import pwd
import sys
from hashlib import sha256
from pathlib import Path

from teamchat.core.errors import StoreError
from teamchat.patterns import regex

STORE_NAME = "teamchat.db"
TRUST_NAME = "trust.json"
WRITABLE = "set TEAMCHAT_HOME to a folder that can be written"
NO_ROOM = "cannot be written: its disk is full; free some space there"
FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
"""The errors of a full disk, and of a user who may write no more there."""
_UNFIT = regex(r"[^A-Za-z0-9._-]+")


def state_path() -> Path:
    """Return `TEAMCHAT_HOME`, or the user's state folder; it need not exist.

    Raises `StoreError` for a user without a home folder (in a container, say).
    """
    if home := os.environ.get("TEAMCHAT_HOME"):
        return Path(home).absolute()
    if folder := _users_own("XDG_STATE_HOME", ".local/state"):
        return folder
    raise StoreError(f"this user has no home folder; {WRITABLE}")


def workspace_path(root: Path) -> Path:
    """Find the state folder of the workspace `root`, equal for all spellings of `root`; it need not exist.

    Raises `StoreError` where a link stands for it: its author could choose where the record is.
    """
    return state_folder_of(root.resolve())


def state_folder_of(real: Path) -> Path:
    """Find the state folder of a folder that may be gone, by its path without links. Raises `StoreError`."""
    name = _UNFIT.sub("-", real.name).strip(".-")[:40] or "folder"
    digest = sha256(os.fsencode(real)).hexdigest()[:12]
    folder = state_path() / "workspaces" / f"{name}-{digest}"
    if link := next((path for path in (folder.parent, folder) if path.is_symlink()), None):
        raise StoreError(f"{link} is a link, which is not followed; remove it, or set TEAMCHAT_HOME to another folder")
    return folder


def workspace_folders() -> list[Path]:
    """List the state folders of all workspaces. Links are left out."""
    try:
        return [
            folder for folder in (state_path() / "workspaces").iterdir() if folder.is_dir() and not folder.is_symlink()
        ]
    except OSError:
        return []


def state_dir() -> Path:
    """Create `state_path` for the user alone. Raises `StoreError`."""
    return _private(state_path())


def workspace_dir(root: Path) -> Path:
    """Create `workspace_path` for the user alone. Raises `StoreError`."""
    folder = workspace_path(root)
    for parent in (state_path(), folder.parent):  # a folder's mode is not that of the parents that are made with it
        _private(parent)
    return _private(folder)


def config_dir() -> Path:
    """Return the folder of the user's `teams/`; without a home folder the state folder. It need not exist."""
    return _users_own("XDG_CONFIG_HOME", ".config") or state_path()


def _users_own(variable: str, below: str) -> Path | None:
    """Find the folder `teamchat` in that of the variable, else `below` the home folder; None without a home folder.

    A relative path in a variable would be another place in every working folder, so it counts as none.
    """
    if os.path.isabs(parent := os.environ.get(variable, "")):  # noqa: PTH117
        return Path(parent, "teamchat")
    home = os.environ.get("HOME", "")
    if not os.path.isabs(home):  # noqa: PTH117
        try:
            home = pwd.getpwuid(os.getuid()).pw_dir
        except KeyError:  # a user that the machine does not know
            return None
    return Path(home, "Library/Application Support" if sys.platform == "darwin" else below, "teamchat")


def _private(folder: Path) -> Path:
    # A folder that was there before keeps its mode: TEAMCHAT_HOME may name one that others use, too.
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"the folder {folder} cannot be made: {error.strerror}; {WRITABLE}") from error
    return folder
