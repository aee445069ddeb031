"""The files of an order on its host: a worktree of the project's clone with the files of home, and their changes.

Ignored files stay there from turn to turn. Nothing of the clone itself is written but a branch and a worktree.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from teamchat.core.checkpoint.compare import changes, entries
from teamchat.core.checkpoint.find import find_repository
from teamchat.core.checkpoint.linked import linked_at
from teamchat.core.checkpoint.packs import CheckpointPack, borrow, pack, unpack
from teamchat.core.checkpoint.paths import readable
from teamchat.core.checkpoint.refs import set_refs, tree_of
from teamchat.core.checkpoint.restore import Restore, restore
from teamchat.core.checkpoint.take import Begun, begin_turn, end_turn, take
from teamchat.core.checkpoint.values import GitRepository, NoRepository
from teamchat.core.dispatch.order import OrderFiles
from teamchat.core.errors import CheckpointFailed
from teamchat.core.worktrees.make import need_worktree, ready
from teamchat.core.worktrees.records import Owner, Worktree

_DIGITS = 12  # characters of a digest
_UNSENT = "unsent"
_STAYS = ("large", "unreadable", "special", "repository", "name", "changing")  # why a checkpoint leaves a path out


class HostFiles(Struct, frozen=True):
    """The worktree of an order: its agent's folder, and the files at the beginning.

    `came` is the checkpoint of home, and `begun` is noted here for the end of the turn.
    """

    state: Path
    own: GitRepository
    tree: Worktree
    cwd: Path
    came: str
    begun: Begun

    def made(self) -> tuple[CheckpointPack, tuple[str, ...]]:
        """Pack the present files over the earlier ones; list new files that no checkpoint takes, and why.

        Blocks. Files too large to travel are noted, so that no later turn takes them away. Raises `CheckpointFailed`.
        """
        before, after = self.tree.ref("before"), self.tree.ref("made")
        now = end_turn(self.own, self.state, after, before)
        stays = tuple(f"{readable(left.path)} ({left.why})" for left in now.left_out if left.why in _STAYS)
        try:
            return pack(self.own, self.state, now.tree, [self.came]), stays
        except CheckpointFailed:
            set_refs(self.own, self.state, {self.tree.ref(_UNSENT): now.tree})
            raise


def prepared(state: Path, files: OrderFiles, clone: Path, inner: str) -> HostFiles:
    """Prepare the worktree for the files of an order, and in it the folder `inner`. `state` is that of the worker.

    Blocks while git works. Raises `LacksBase` and `CheckpointFailed`, and `UsageError` where no worktree can be made.
    """
    home = find_repository(clone, state)
    if isinstance(home, NoRepository):
        raise CheckpointFailed(f"{clone} is in no repository: {home.reason}")
    key = sha256(files.worktree.encode()).hexdigest()[:_DIGITS]
    owner = Owner(int(key, 16), files.session, f"refs/teamchat/{key}")
    borrow(home, state)
    unpack(home, state, files.packed, f"{owner.refs}/came")
    top = ready(state, owner, files.place, clone, refresh=False)
    tree = need_worktree(state, owner.session, owner.name, files.place)
    own = linked_at(home, state, tree.folder)
    if own is None:
        raise CheckpointFailed(f"{tree.folder} is no longer a worktree of {home.top}: remove that folder there")
    came, now = files.packed.checkpoint, take(own, state, tree.ref("now")).tree
    if (unsent := tree_of(home, state, tree.ref(_UNSENT))) and now == unsent:
        raise CheckpointFailed(
            f"{tree.folder} has what an earlier turn made and could not send: take it from there, and remove the folder"
        )
    wanted = {change.path: change.new for change in changes(home, now, came)}
    restore(state, [Restore(own, entries(home, now), wanted)])
    cwd = top / inner
    cwd.mkdir(parents=True, exist_ok=True)
    if not cwd.resolve().is_relative_to(tree.folder.resolve()):
        raise CheckpointFailed(f"{inner} leads out of the worktree")
    return HostFiles(state, own, tree, cwd, came, begin_turn(own, state, tree.ref("before")))
