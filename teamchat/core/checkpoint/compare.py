"""The differences between two checkpoints: as values, as numbers of lines, as a patch. The work tree is not read."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from teamchat.core.checkpoint.git import GitFailed, GitProgram, git_environment
from teamchat.core.checkpoint.notes import Notes, message_of, notes_of, store_notes
from teamchat.core.checkpoint.values import GitRepository, Lines, PathChange, TreeEntry, What
from teamchat.core.errors import CheckpointFailed

_DIFF = ("diff-tree", "-r", "--no-renames", "--no-ext-diff", "--no-textconv", "--full-index")
_READABLE = ("-c", "core.quotePath=false", "-c", "core.bigFileThreshold=1m")
_NEXT = b"diff --git "  # no other line of a diff begins so: those of files begin with a sign
_PIECE = 1 << 16


@contextlib.contextmanager
def object_reader(repository: GitRepository, index: Path | None = None) -> Iterator[GitProgram]:
    """Open a git that has the objects of the checkpoints, and no files. Raises `CheckpointFailed`."""
    env = git_environment() | {"GIT_DIR": str(repository.store)}
    if index:
        env |= {"GIT_INDEX_FILE": str(index)}
    if not repository.store.is_dir():
        raise CheckpointFailed(f"the checkpoints of {repository.top} cannot be read: there are none")
    try:
        yield GitProgram(repository.store, env)
    except GitFailed as failed:
        raise CheckpointFailed(f"the checkpoints of {repository.top} cannot be read: {failed}") from failed


def changes(repository: GitRepository, old: str, new: str) -> tuple[PathChange, ...]:
    """List how the files of the tree `new` differ from the files of `old`, by path; a moved file is deleted and added.

    Raises `CheckpointFailed`, also where one of the trees is no longer there.
    """
    with object_reader(repository) as git:
        changed = _changes(git(*_DIFF, "--raw", "-z", old, new).split(b"\0")[:-1])
        return _with_bits(git, old, new, changed)


def changes_and_lines(repository: GitRepository, old: str, new: str) -> tuple[tuple[PathChange, ...], dict[str, Lines]]:
    """Return the results of `changes` and `stat`, from one git. Raises `CheckpointFailed`."""
    with object_reader(repository) as git:
        fields = git(*_DIFF, "--raw", "--numstat", "-z", old, new).split(b"\0")[:-1]
        paths = sum(field.startswith(b":") for field in fields[::2])  # a count of lines begins with a digit or `-`
        return _with_bits(git, old, new, _changes(fields[: 2 * paths])), _lines(fields[2 * paths :])


def left_out_changes(repository: GitRepository, old: str, new: str) -> dict[str, What]:
    """Find what happened between two checkpoints to the paths that they leave out.

    Raises `CheckpointFailed`.
    """
    with object_reader(repository) as git:
        before, after = (
            {path: (why, stamp) for path, why, stamp in notes_of(git, tree).left_out} for tree in (old, new)
        )
        recorded = {change.path for change in _changes(git(*_DIFF, "--raw", "-z", old, new).split(b"\0")[:-1])}
    paths = [path for path in sorted(before.keys() | after.keys()) if before.get(path) != after.get(path)]
    return {
        path: "added" if path not in before else "changed" if path in after else "deleted"
        for path in paths
        if path not in recorded
    }


def left_out_of(repository: GitRepository, tree: str) -> set[str]:
    """List the paths that a checkpoint leaves out. Raises `CheckpointFailed`."""
    with object_reader(repository) as git:
        return {path for path, _, _ in notes_of(git, tree).left_out}


def tree_with(repository: GitRepository, tree: str, paths: Mapping[str, TreeEntry | None]) -> str:
    """Store a checkpoint of `tree` with those paths changed; no ref keeps it. Raises `CheckpointFailed`."""
    none = "0" * len(tree)
    with (
        tempfile.TemporaryDirectory(prefix="index-", dir=repository.store) as folder,
        object_reader(repository, Path(folder, "index")) as git,
    ):
        git("read-tree", tree)
        deleted = [f"0 {none}\t".encode() + os.fsencode(path) for path, entry in paths.items() if entry is None]
        added = [f"{entry.mode} {entry.blob}\t".encode() + os.fsencode(path) for path, entry in paths.items() if entry]
        git("update-index", "-z", "--index-info", given=b"".join(line + b"\0" for line in (*deleted, *added)))
        message = message_of(notes_of(git, tree).with_entries(paths))
        return store_notes(git, git("write-tree").decode().strip(), message)


def _with_bits(git: GitProgram, old: str, new: str, found: tuple[PathChange, ...]) -> tuple[PathChange, ...]:
    if not found:
        return found
    before, after = notes_of(git, old), notes_of(git, new)
    return tuple(
        replace(change, old=_known(change.old, change.path, before), new=_known(change.new, change.path, after))
        for change in found
    )


def _known(entry: TreeEntry | None, path: str, noted: Notes) -> TreeEntry | None:
    return replace(entry, bits=noted.bits_of(path, entry.mode)) if entry else None


def _changes(fields: Sequence[bytes]) -> tuple[PathChange, ...]:
    pairs = zip(fields[::2], fields[1::2], strict=True)
    return tuple(_change(entry.decode(), os.fsdecode(path)) for entry, path in pairs)


def _change(entry: str, path: str) -> PathChange:
    old_mode, new_mode, old_blob, new_blob, letter = entry.removeprefix(":").split(" ")
    old = None if letter == "A" else TreeEntry(old_mode, old_blob)
    new = None if letter == "D" else TreeEntry(new_mode, new_blob)
    return PathChange(path, kind_of(old, new), old, new)


def kind_of(old: TreeEntry | None, new: TreeEntry | None) -> What:
    """Say what happened to a path that was `old` and is `new`."""
    if old is None or new is None:
        return "added" if old is None else "deleted"
    if old.mode[:3] != new.mode[:3]:
        return "type"
    return "mode" if old.blob == new.blob else "changed"


def entries(repository: GitRepository, tree: str) -> dict[str, TreeEntry]:
    """List every path of a checkpoint. Raises `CheckpointFailed`."""
    with object_reader(repository) as git:
        listed = git("ls-tree", "-r", "-z", "--full-tree", tree).split(b"\0")[:-1]
        noted = notes_of(git, tree)
    parted = (
        (os.fsdecode(path), head.decode().split(" ")) for head, _, path in (entry.partition(b"\t") for entry in listed)
    )
    return {path: TreeEntry(mode, blob, noted.bits_of(path, mode)) for path, (mode, _, blob) in parted}


def states_of(repository: GitRepository, tree: str, paths: Iterable[str]) -> dict[str, str]:
    """Describe each path of a checkpoint by a word that changes with its content; empty where nothing is.

    Raises `CheckpointFailed`.
    """
    there = entries(repository, tree)
    with object_reader(repository) as git:
        stamps = {path: stamp for path, _, stamp in notes_of(git, tree).left_out}
    known = {path: f"{entry.mode} {entry.blob}" for path, entry in there.items()}
    return {path: known.get(path, stamps.get(path, "")) for path in paths}


def stat(repository: GitRepository, old: str, new: str) -> dict[str, Lines]:
    """Count the added and removed lines of every path that differs. Raises `CheckpointFailed`."""
    with object_reader(repository) as git:
        return _lines(git(*_DIFF, "--numstat", "-z", old, new).split(b"\0")[:-1])


def _lines(listed: Iterable[bytes]) -> dict[str, Lines]:
    parted = (line.split(b"\t", 2) for line in listed)
    return {os.fsdecode(path): Lines(_number(added), _number(removed)) for added, removed, path in parted}


def _number(text: bytes) -> int | None:
    return None if text == b"-" else int(text)


def has_tree(repository: GitRepository, tree: str) -> bool:
    """Whether the repository has that tree, even if files of it are gone. Raises `CheckpointFailed`."""
    with object_reader(repository) as git:
        try:
            git("cat-file", "-e", f"{tree}^{{tree}}")
        except GitFailed:
            return False
    return True


def texts(repository: GitRepository, old: str, new: str) -> Iterator[bytes]:
    """Yield the unified diff of each path of `changes`, in the same order, for a reader: it cannot be applied.

    A file that is binary, or larger than a MiB, is only named. Raises `CheckpointFailed`.
    """
    diff = ("diff-tree", "-r", "--no-renames", "--no-ext-diff", "--no-textconv", "--abbrev=8", "--color=never")
    head, lines = b"", list[bytes]()
    with object_reader(repository) as git:
        with git.printing(*_READABLE, *diff, "--patch", "--src-prefix=a/", "--dst-prefix=b/", old, new) as printed:
            for line in printed.out:
                if line.startswith(_NEXT) and line != head:  # a file that became a link has two of the same head
                    if head:
                        yield b"".join(lines)
                    head, lines = line, []
                lines.append(line)
            ended = printed.end()
        if ended.code:
            raise GitFailed(diff[0], ended.err)
    if head:
        yield b"".join(lines)


def patch(
    repository: GitRepository, old: str, new: str, *, binary: bool = True, only: Sequence[str] = (), around: int = 3
) -> Iterator[bytes]:
    """Write the difference for `git apply`, in pieces of no particular length. Raises `CheckpointFailed`.

    Without `binary` it is for reading: a binary file is only named, and names are not quoted. With the paths
    `only` it has no others. `around` is the number of lines around each change.
    """
    with object_reader(repository) as git:
        shown = ("--patch", *(["--binary"] if binary else []), "--src-prefix=a/", "--dst-prefix=b/", "--color=never")
        trees = (f"--unified={around}", old, new, "--", *only)
        with git.printing(*(() if binary else _READABLE), *_DIFF, *shown, *trees) as diff:
            while piece := diff.out.read(_PIECE):
                yield piece
            ended = diff.end()
        if ended.code:
            raise GitFailed(_DIFF[0], ended.err)
