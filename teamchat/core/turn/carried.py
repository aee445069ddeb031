"""The files of a turn on a host: a member's worktree goes there as git objects, and what became of it comes back.

The worktree stands here as that of a member of this machine does, so that `merge`, `undo`, `diff` and receipts know of
no host. Files that come back are written into it by the code of an undo, and no other files of the user are.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from teamchat.core.checkpoint.compare import changes, entries
from teamchat.core.checkpoint.packs import CheckpointPack, TooLarge, pack, unpack
from teamchat.core.checkpoint.paths import readable
from teamchat.core.checkpoint.refs import git_command, set_refs, tree_of
from teamchat.core.checkpoint.restore import Restore, restore
from teamchat.core.checkpoint.take import take
from teamchat.core.dispatch.order import OrderFiles
from teamchat.core.errors import CheckpointFailed, HostUnavailable
from teamchat.core.text.commands import command_of
from teamchat.core.worktrees.make import need_worktree, usable
from teamchat.core.worktrees.records import Opened

_DIGITS = 12  # characters of a digest


class Carried(Struct, frozen=True):
    """The worktree of a turn that goes to `host`. `state` is the state folder of home."""

    state: Path
    there: Opened
    host: str

    @property
    def _known(self) -> str:
        """The ref of the last checkpoint that the host has as well."""
        key = sha256(f"{self.host}\0{self.there.home.common_dir}".encode()).hexdigest()[:_DIGITS]
        return f"refs/teamchat/hosts/{key}"

    def files(self, heads: Sequence[str]) -> OrderFiles:
        """Pack the current files, as a change to the last ones that the host saw or to its clones' `heads`.

        Blocks while git works. Raises `HostUnavailable` if there is too much to send, and `CheckpointFailed`.
        """
        tree, home = self.there.tree, self.there.home
        sent = take(self.there.own, self.state, tree.ref("sent")).tree
        known = tree_of(home, self.state, self._known)
        try:
            packed = pack(home, self.state, sent, [*filter(None, [known]), *heads], home.common_dir / "objects")
        except TooLarge as large:
            how = "commit them, push, and fetch them into the clone of that host"
            raise HostUnavailable(f"the files of {tree.member} do not go to {self.host}: {large}; {how}") from None
        return OrderFiles(f"{tree.refs}", tree.member, tree.session_name, packed)

    def forget(self) -> None:
        """Forget the files on the host, because it lost them: the next turn sends all. Raises `CheckpointFailed`."""
        set_refs(self.there.home, self.state, {self._known: None})

    def bring(self, packed: CheckpointPack) -> None:
        """Write the host's changes into the worktree; a second time changes nothing. Raises `CheckpointFailed`.

        If files were changed here meanwhile, these stay and nothing is written.
        """
        home, tree = self.there.home, self.there.tree
        unpack(home, self.state, packed, tree.ref("came"))
        set_refs(home, self.state, {self._known: packed.checkpoint})
        sent = tree_of(home, self.state, tree.ref("sent"))
        if sent is None:
            raise CheckpointFailed(f"what {tree.member} was sent is no longer known")
        now = take(self.there.own, self.state, tree.ref("now")).tree
        made = {change.path: change.new for change in changes(home, sent, packed.checkpoint)}
        here = {change.path: change.new for change in changes(home, sent, now)}
        if other := [path for path in here if path not in made or here[path] != made[path]]:
            kept = packed.checkpoint
            set_refs(home, self.state, {tree.ref(f"kept-{kept[:_DIGITS]}"): kept})
            raise CheckpointFailed(
                f"has made what is not written to {tree.folder}, where {readable(other[0])} was changed meanwhile; "
                "it is kept",
                command_of(*git_command(home), "diff", sent, kept),
            )
        wanted = {path: entry for path, entry in made.items() if path not in here}
        restore(self.state, [Restore(self.there.own, entries(home, now), wanted)])


def carried(state: Path, session: int, session_name: str, name: str, host: str) -> Carried:
    """Open the worktree of that name for a host. Raises `UnknownName`, `UsageError` and `CheckpointFailed`."""
    return Carried(state, usable(state, need_worktree(state, session, session_name, name)), host)
