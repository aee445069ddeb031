"""The files of an order on its host: a worktree of the project's clone with what home has, and what became of it.

What git ignores stays there from turn to turn. Nothing of the clone itself is written but a branch and a worktree.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from teamchat.core.checkpoint.compare import changes, entries
from teamchat.core.checkpoint.find import find_repository
from teamchat.core.checkpoint.linked import linked_at
from teamchat.core.checkpoint.packs import Packed, borrow, pack, unpack
from teamchat.core.checkpoint.restore import Restore, restore
from teamchat.core.checkpoint.take import take
from teamchat.core.checkpoint.values import GitRepository, NoRepository
from teamchat.core.dispatch.order import Files
from teamchat.core.errors import CheckpointFailed
from teamchat.core.worktrees.make import need_worktree, ready
from teamchat.core.worktrees.records import Owner

_DIGITS = 12  # of a digest


class HostFiles(Struct, frozen=True):
    """The worktree of an order: the folder in which its agent works, and the checkpoint that it begins with."""

    state: Path
    own: GitRepository
    cwd: Path
    came: str
    made_ref: str

    def made(self) -> Packed:
        """What the files are now, as a pack over what they were. Blocks. Raises `TooLarge` and `CheckpointFailed`."""
        now = take(self.own, self.state, self.made_ref).tree
        return pack(self.own, self.state, now, [self.came])


def prepared(state: Path, files: Files, folder: Path) -> HostFiles:
    """The worktree for the files of an order for `folder` of a clone. `state` is that of the worker.

    Blocks while git works. Raises `LacksBase` and `CheckpointFailed`, and `UsageError` where no worktree can be made.
    """
    home = find_repository(folder, state)
    if isinstance(home, NoRepository):
        raise CheckpointFailed(f"{folder} is in no repository: {home.reason}")
    key = sha256(files.worktree.encode()).hexdigest()[:_DIGITS]
    owner = Owner(int(key, 16), files.session, f"refs/teamchat/{key}")
    borrow(home, state)
    unpack(home, state, files.packed, f"{owner.refs}/came")
    cwd = ready(state, owner, files.place, folder, refresh=False)
    tree = need_worktree(state, owner.session, owner.name, files.place)
    own = linked_at(home, state, tree.folder)
    if own is None:
        raise CheckpointFailed(f"{tree.folder} is no longer a worktree of {home.top}")
    came, now = files.packed.checkpoint, take(own, state, tree.ref("now")).tree
    wanted = {change.path: change.new for change in changes(home, now, came)}
    restore(state, [Restore(own, entries(home, now), wanted)])
    cwd.mkdir(parents=True, exist_ok=True)
    return HostFiles(state, own, cwd, came, tree.ref("made"))
