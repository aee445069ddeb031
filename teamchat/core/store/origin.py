"""The folder of a store, noted beside it: so the conversations of a moved folder are found again."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from pathlib import Path

from msgspec import Struct, ValidationError, convert

from teamchat.core.checkpoint.find import find_repository
from teamchat.core.checkpoint.values import NoRepository
from teamchat.core.errors import CheckpointFailed, StoreError
from teamchat.core.files.folders import STORE_NAME, state_folder_of, workspace_folders, workspace_path
from teamchat.core.store.database import Database
from teamchat.core.store.sessions import session_names
from teamchat.core.text.clean import printable
from teamchat.core.text.commands import command_of
from teamchat.runners.untrusted.regular_files import read_regular

NAME = "folder.json"
_LARGEST = 1 << 16
_LONGEST_S = 2.0
_TOO_LONG = ""


class Origin(Struct, frozen=True):
    """A folder: its path without links, its place on the disk, and of its repository the root commit.

    `inside` is where the folder is in its work tree. `root` is None without a commit, and empty where the history is
    too long to look through.
    """

    folder: str
    device: int
    inode: int
    root: str | None = None
    inside: str = ""

    def is_of(self, other: Origin) -> bool:
        """Whether both may be one folder: by the root commit; where one has none, by its place or its name."""
        if self.root and other.root:
            return (self.root, self.inside) == (other.root, other.inside)
        place = (self.device, self.inode) == (other.device, other.inode)
        return place or Path(self.folder).name == Path(other.folder).name


def keep_origin(folder: Path) -> None:
    """Note which folder the store of the workspace `folder` belongs to; do nothing if that cannot be written."""
    state = workspace_path(folder)
    origin = _read(state)
    with contextlib.suppress(OSError):
        as_noted = origin and (origin.folder, origin.device, origin.inode) == (str(folder.resolve()), *_place(folder))
        if origin and as_noted and origin.root is not None:
            return
        if (now := _origin(folder)) != origin:
            from teamchat.core.checkpoint.shadow import keep_file

            keep_file(state / NAME, json.dumps({name: getattr(now, name) for name in now.__struct_fields__}).encode())


def noted_folder(state: Path) -> str:
    """Name the folder of the workspace with that state folder; if none is noted, name the state folder itself."""
    origin = _read(state)
    return printable(origin.folder if origin else state.name)


def is_noted(db: Database) -> bool:
    """Whether the folder of the store is noted."""
    return db.path.with_name(NAME).exists()


def moved_from(folder: Path) -> list[Path]:
    """List the missing folders that may be called `folder` now, the one with the newest conversation first.

    For a workspace without a conversation: it reads the notes of all other workspaces.
    """
    own = workspace_path(folder)
    gone = [(state, origin) for state in workspace_folders() if state != own and (origin := _gone(state))]
    try:
        now = _origin(folder) if gone else None
        moved = [(_used(state), origin.folder) for state, origin in gone if now and origin.is_of(now)]
    except OSError:
        return []
    return [Path(name) for _, name in sorted(moved, reverse=True)]


def has_sessions(state: Path) -> bool:
    """Whether the store in that state folder has a conversation; False where it cannot be read."""
    with contextlib.suppress(sqlite3.Error):
        return bool(session_names(state / STORE_NAME))
    return False


def told_of_moved(folder: Path) -> tuple[str, str | None] | None:
    """Write a sentence about the folders of `moved_from`, with a command to paste for each; None without any."""
    if not (old := [str(path) for path in moved_from(folder)]):
        return None
    verbs = ("are", "have") if len(old) > 1 else ("is", "has")
    names = printable(" and ".join(old))
    text = f"{names} {verbs[0]} gone and {verbs[1]} conversations, which may be this folder's"
    commands = (command_of("teamchat", "sessions", "move", path) for path in old)
    return text, "\n".join(command for command in commands if command.isprintable()) or None


def is_there(folder: Path) -> bool:
    """Whether the path leads to a folder without a link: a moved folder may have left one behind."""
    return folder.is_dir() and os.path.realpath(folder) == str(folder)


def _gone(state: Path) -> Origin | None:
    """Return the folder of that store if it is missing and the store has a conversation."""
    origin = _read(state)
    if origin is None or is_there(Path(origin.folder)):
        return None
    with contextlib.suppress(StoreError):  # what stands in its place is a link
        return origin if state_folder_of(Path(origin.folder)) == state and has_sessions(state) else None
    return None


def _used(state: Path) -> float:
    files = (state / f"{STORE_NAME}{end}" for end in ("", "-wal"))
    return max(file.stat().st_mtime for file in files if file.exists())


def _read(state: Path) -> Origin | None:
    try:
        return convert(json.loads(read_regular(state / NAME, _LARGEST)), Origin)
    except (OSError, ValueError, ValidationError, RecursionError):
        return None


def _place(folder: Path) -> tuple[int, int]:
    status = folder.stat()
    return status.st_dev, status.st_ino


def _origin(folder: Path) -> Origin:
    """Describe the folder as it is now. Raises `OSError` if it is missing."""
    real = folder.resolve()
    repository = find_repository(real, Path(os.sep))  # no checkpoint of it is looked for
    if isinstance(repository, NoRepository):
        return Origin(str(real), *_place(real))
    return Origin(str(real), *_place(real), _root_commit(real), str(real.relative_to(repository.top)))


def _root_commit(folder: Path) -> str | None:
    from teamchat.core.checkpoint.git import GitFailed, GitProgram, git_environment

    try:
        git = GitProgram(folder, git_environment(users_own=True), _LONGEST_S)
        return git("rev-list", "--max-parents=0", "HEAD").decode().split()[-1]  # the oldest of several
    except GitFailed:  # there is no commit yet
        return None
    except CheckpointFailed:
        return _TOO_LONG
