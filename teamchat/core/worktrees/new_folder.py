"""A new folder with the files of a checkpoint and nothing else, for a check that is to run without ignored files.

It is a linked worktree, so that git works in it, on a branch that goes with it. A session has one at a time. The
remains of a killed process are replaced by the next one, or removed when its check is closed.
"""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

from teamchat.core.checkpoint.compare import entries
from teamchat.core.checkpoint.find import find_repository
from teamchat.core.checkpoint.linked import link, linked_at, unlink
from teamchat.core.checkpoint.values import GitRepository, NoRepository
from teamchat.core.errors import CheckpointFailed
from teamchat.core.worktrees.make import write_files
from teamchat.core.worktrees.records import branch_name, folder_for

NAME = "new+folder"  # no member can have this name


def new_folder_of(state: Path, session: int, top: Path) -> Path:
    """Return the session's new folder of that work tree."""
    return folder_for(state, session, NAME, top)


def make_new_folder(state: Path, session: int, session_name: str, home: GitRepository, tree: str) -> None:
    """Make the folder with the files of the checkpoint `tree`. Blocks while git works.

    Raises `CheckpointFailed` and `OSError`; the caller then removes its remains.
    """
    folder = new_folder_of(state, session, home.top)
    wanted = entries(home, tree)
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(folder)
    link(home, state, folder, branch_name(session_name, NAME))
    own = linked_at(home, state, folder)
    if own is None:
        raise CheckpointFailed(f"git does not find the worktree that was made in {folder}")
    write_files(own, state, wanted, {})


def remove_new_folder(state: Path, session_name: str, folder: Path) -> None:
    """Remove it with its branch, whatever was committed there. Raises `CheckpointFailed` and `OSError`."""
    own = find_repository(folder, state)
    if isinstance(own, NoRepository) or own.top != folder:
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(folder)
        return
    unlink(own, state, folder, branch_name(session_name, NAME), None)


def is_in_new_folder(state: Path, session: int, place: Path) -> Path | None:
    """Find the new folder of the session that the place is in; None if it is in none."""
    above = new_folder_of(state, session, Path("/")).parent
    if not place.is_relative_to(above) or place == above:
        return None
    return above / place.relative_to(above).parts[0]
