"""What differs between two checkpoints: as values, as numbers of lines, as a patch. The work tree is not read."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from teamchat.core.checkpoint.git import GitFailed, GitProgram, git_environment
from teamchat.core.checkpoint.values import GitRepository, Lines, PathChange, TreeEntry, What
from teamchat.core.errors import CheckpointFailed

_DIFF = ("diff-tree", "-r", "--no-renames", "--no-ext-diff", "--no-textconv", "--full-index")
_READABLE = ("-c", "core.quotePath=false", "-c", "core.bigFileThreshold=1m")
_NEXT = b"diff --git "  # no other line of a diff begins so: those of files begin with a sign
_PIECE = 1 << 16
_NOBODYS = "[core]\n\trepositoryformatversion = 1\n\tbare = true\n\tattributesFile = /dev/null\n[extensions]\n"


@contextlib.contextmanager
def object_reader(repository: GitRepository) -> Iterator[GitProgram]:
    """A git that reads the objects of the repository, and nothing else of it. Raises `CheckpointFailed`."""
    with tempfile.TemporaryDirectory(prefix="teamchat-git-") as name:
        folder = Path(name)
        (folder / "refs").mkdir()
        (folder / "HEAD").write_text("ref: refs/heads/none\n")
        (folder / "config").write_text(f"{_NOBODYS}\tobjectFormat = {repository.object_format}\n")
        try:
            yield GitProgram(
                folder, git_environment() | {"GIT_DIR": name, "GIT_OBJECT_DIRECTORY": str(repository.objects)}
            )
        except GitFailed as failed:
            raise CheckpointFailed(f"the checkpoints of {repository.top} cannot be read: {failed}") from failed


def changes(repository: GitRepository, old: str, new: str) -> tuple[PathChange, ...]:
    """How the files of the tree `new` differ from those of `old`, by path; what moved is deleted and added.

    Raises `CheckpointFailed`, also where one of the trees is no longer there.
    """
    with object_reader(repository) as git:
        return _changes(git(*_DIFF, "--raw", "-z", old, new).split(b"\0")[:-1])


def changes_and_lines(repository: GitRepository, old: str, new: str) -> tuple[tuple[PathChange, ...], dict[str, Lines]]:
    """What `changes` and `stat` return, from one git. Raises `CheckpointFailed`."""
    with object_reader(repository) as git:
        fields = git(*_DIFF, "--raw", "--numstat", "-z", old, new).split(b"\0")[:-1]
    paths = sum(field.startswith(b":") for field in fields[::2])  # a count of lines begins with a digit or `-`
    return _changes(fields[: 2 * paths]), _lines(fields[2 * paths :])


def _changes(fields: Sequence[bytes]) -> tuple[PathChange, ...]:
    pairs = zip(fields[::2], fields[1::2], strict=True)
    return tuple(_change(entry.decode(), os.fsdecode(path)) for entry, path in pairs)


def _change(entry: str, path: str) -> PathChange:
    old_mode, new_mode, old_blob, new_blob, letter = entry.removeprefix(":").split(" ")
    old = None if letter == "A" else TreeEntry(old_mode, old_blob)
    new = None if letter == "D" else TreeEntry(new_mode, new_blob)
    return PathChange(path, kind_of(old, new), old, new)


def kind_of(old: TreeEntry | None, new: TreeEntry | None) -> What:
    """What happened to a path that was `old` and is `new`."""
    if old is None or new is None:
        return "added" if old is None else "deleted"
    if old.mode[:3] != new.mode[:3]:
        return "type"
    return "mode" if old.blob == new.blob else "changed"


def entries(repository: GitRepository, tree: str) -> dict[str, TreeEntry]:
    """Every path of a checkpoint. Raises `CheckpointFailed`."""
    with object_reader(repository) as git:
        listed = git("ls-tree", "-r", "-z", "--full-tree", tree).split(b"\0")[:-1]
    parted = (
        (os.fsdecode(path), head.decode().split(" ")) for head, _, path in (one.partition(b"\t") for one in listed)
    )
    return {path: TreeEntry(mode, blob) for path, (mode, _, blob) in parted}


def stat(repository: GitRepository, old: str, new: str) -> dict[str, Lines]:
    """How many lines were added and removed in every path that differs. Raises `CheckpointFailed`."""
    with object_reader(repository) as git:
        return _lines(git(*_DIFF, "--numstat", "-z", old, new).split(b"\0")[:-1])


def _lines(listed: Iterable[bytes]) -> dict[str, Lines]:
    parted = (one.split(b"\t", 2) for one in listed)
    return {os.fsdecode(path): Lines(_number(added), _number(removed)) for added, removed, path in parted}


def _number(text: bytes) -> int | None:
    return None if text == b"-" else int(text)


def has_tree(repository: GitRepository, tree: str) -> bool:
    """Whether the repository has that tree; files of it may be gone all the same. Raises `CheckpointFailed`."""
    with object_reader(repository) as git:
        try:
            git("cat-file", "-e", f"{tree}^{{tree}}")
        except GitFailed:
            return False
    return True


def texts(repository: GitRepository, old: str, new: str) -> Iterator[bytes]:
    """The unified diff of each path of `changes`, in the same order, for a reader: it cannot be applied.

    A file that is no text, or larger than a MiB, is only named. Raises `CheckpointFailed`.
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


def patch(repository: GitRepository, old: str, new: str) -> Iterator[bytes]:
    """The difference as `git apply` takes it, in pieces of no particular length. Raises `CheckpointFailed`."""
    with object_reader(repository) as git:
        shown = ("--patch", "--binary", "--src-prefix=a/", "--dst-prefix=b/", "--color=never")
        with git.printing(*_DIFF, *shown, old, new) as diff:
            while piece := diff.out.read(_PIECE):
                yield piece
            ended = diff.end()
        if ended.code:
            raise GitFailed(_DIFF[0], ended.err)
