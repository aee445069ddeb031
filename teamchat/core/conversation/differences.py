"""The changes of turns in the files, by their checkpoints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from teamchat.core.checkpoint.compare import changes, has_tree, left_out_changes, patch, stat
from teamchat.core.checkpoint.find import find_repository
from teamchat.core.checkpoint.paths import readable
from teamchat.core.checkpoint.private import has_secret_name
from teamchat.core.checkpoint.values import GitRepository, Lines, NoRepository, What
from teamchat.core.errors import CheckpointFailed
from teamchat.core.store.turns import Turn
from teamchat.runners.untrusted.file_changes import FileChange, FileChanges, NoCheckpoint


class TreeDifference(Struct, frozen=True):
    """The changes of one work tree from before turn `first` to after turn `last`, whoever made them."""

    repository: GitRepository
    old: str
    new: str
    first: int
    last: int

    def files(self) -> Iterator[FileChange]:
        """List the changes by path, relative to the top of the work tree. Raises `CheckpointFailed`."""
        lines = stat(self.repository, self.old, self.new)
        for change in changes(self.repository, self.old, self.new):
            count = lines.get(change.path, Lines(None, None))
            yield FileChange(readable(change.path), change.what, count.added, count.removed)

    def unrecorded(self) -> dict[str, What]:
        """Say what happened to paths that no checkpoint has, such as a secret. Raises `CheckpointFailed`."""
        left_out = left_out_changes(self.repository, self.old, self.new)
        return {readable(path): what for path, what in left_out.items()}

    def patch(self, *, binary: bool = True) -> Iterator[bytes]:
        """Write the patch that `git apply` takes at the top of the work tree. Raises `CheckpointFailed`.

        Without `binary`, the patch is for reading: it only names a binary file.
        """
        return patch(self.repository, self.old, self.new, binary=binary)


def differences(state_folder: Path, turns: Sequence[Turn]) -> tuple[TreeDifference, ...]:
    """Return one difference for each work tree that the turns, given in order, worked in.

    Raises `CheckpointFailed` where a work tree or its checkpoints are no longer there.
    """
    by_top: dict[str, list[tuple[Turn, FileChanges]]] = {}
    for turn in turns:
        if file_changes := known_changes(turn):
            by_top.setdefault(file_changes.top, []).append((turn, file_changes))
    return tuple(_difference(state_folder, Path(top), changed) for top, changed in by_top.items())


def patch_to_read(state_folder: Path, found: FileChanges, most: int) -> Iterator[bytes]:
    """Write a turn's patch of at most that many files, with one line around each change.

    It leaves out binary files, and files with the name of a secret. Raises `CheckpointFailed`.
    """
    texts = [file.path for file in found.files if (file.added or file.removed) and not has_secret_name(file.path)]
    repository = find_repository(Path(found.top), state_folder)
    if isinstance(repository, NoRepository):
        raise CheckpointFailed(f"the files in {found.top} cannot be compared: {repository.reason}")
    if not texts:
        return iter(())
    return patch(repository, found.before, found.after, binary=False, only=texts[:most], around=1)


def _difference(state_folder: Path, top: Path, found: Sequence[tuple[Turn, FileChanges]]) -> TreeDifference:
    repository = find_repository(top, state_folder)
    if isinstance(repository, NoRepository):
        raise CheckpointFailed(f"the files in {top} cannot be compared: {repository.reason}")
    first, (last, ended) = found[0], max(found, key=lambda one: _end(one[0]))
    for turn, tree in ((first[0], first[1].before), (last, ended.after)):
        if not has_tree(repository, tree):
            raise CheckpointFailed(f"the checkpoints of turn {turn.number} are no longer there (keep_checkpoints)")
    return TreeDifference(repository, first[1].before, ended.after, first[0].number, found[-1][0].number)


def _end(turn: Turn) -> tuple[float, int]:
    """Return when a turn ended, to sort by: turns of a group end in any order."""
    seconds = turn.outcome.seconds if turn.outcome else None
    return turn.started_at + (seconds or 0), turn.number


def known_changes(turn: Turn) -> FileChanges | None:
    """Return the changes that the checkpoints of a turn show; None without checkpoints."""
    return turn.outcome.known_changes if turn.outcome else None


def why_unknown(turn: Turn) -> str | None:
    """Say why a turn's changes are not known, with the files that its CLI reported; None where they are known."""
    if turn.outcome is None:
        return f"turn {turn.number} ({turn.member}) has not ended"
    if turn.outcome.known_changes:
        return None
    changed = turn.outcome.changes
    reason = changed.reason if isinstance(changed, NoCheckpoint) else "an older teamchat or a replay ran it"
    reported = ", ".join(turn.outcome.files) or "no file"
    return f"turn {turn.number} ({turn.member}) has no checkpoints: {reason}; its CLI reported {reported}"
