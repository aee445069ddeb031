"""Three-way merge of trees: what two sides have made of a base, path by path and line by line.

`git merge-tree` takes no plain trees before git 2.45, so paths are compared here and `git merge-file` merges lines. A
file that one side has moved is deleted and added: changes that the other side made to it are a conflict.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct

from teamchat.core.checkpoint.compare import changes, entries, object_reader
from teamchat.core.checkpoint.git import GitFailed, GitProgram
from teamchat.core.checkpoint.values import EXECUTABLE, FILE, LINK, SUBMODULE, GitRepository, TreeEntry

Favour = Literal["ours", "theirs"]
_NO_TEXT = 255  # the exit code of `git merge-file` for a file that is no text


class Clash(Struct, frozen=True):
    """A path that both sides changed in ways that exclude each other; `why` says how.

    `final`: it cannot be decided by favouring a side.
    """

    path: str
    why: str
    final: bool = False


class Merged(Struct, frozen=True):
    """`paths` are the paths to change in `ours`; None deletes. `clashes` are not in it, unless a side is favoured."""

    paths: Mapping[str, TreeEntry | None]
    clashes: tuple[Clash, ...]


def merge(repository: GitRepository, base: str, ours: str, theirs: str, favour: Favour | None = None) -> Merged:
    """Bring into the tree `ours` what `theirs` has changed since `base`. No file and no ref is written.

    `favour` decides what clashes: for lines of a text line by line, else for the whole file. Submodules stay as
    they are. Raises `CheckpointFailed`.
    """
    own = entries(repository, ours)
    paths: dict[str, TreeEntry | None] = {}
    clashes: list[Clash] = []
    with object_reader(repository) as git:
        for change in changes(repository, base, theirs):
            path, mine = change.path, own.get(change.path)
            sides = (change.old, mine, change.new)
            if mine == change.new or any(side and side.mode == SUBMODULE for side in sides):
                continue
            if mine == change.old:
                paths[path] = change.new
                continue
            outcome = _both_changed(git, *sides, favour)
            if isinstance(outcome, str):
                clashes.append(Clash(path, outcome))
                if favour == "theirs":
                    paths[path] = change.new
            else:
                paths[path] = outcome
    clashes += _in_each_others_way(own, paths)
    return Merged(paths, tuple(sorted(clashes, key=lambda clash: clash.path)))


def _both_changed(
    git: GitProgram, base: TreeEntry | None, ours: TreeEntry | None, theirs: TreeEntry | None, favour: Favour | None
) -> TreeEntry | str:
    """Decide what becomes of a file that both changed, or say why that is not known."""
    if ours is None or theirs is None:
        return "deleted by one, changed by the other"
    if base is None:
        return "added by both"
    if not all(entry.mode in (FILE, EXECUTABLE) for entry in (base, ours, theirs)):
        return "a link of one, changed by the other" if LINK in (ours.mode, theirs.mode) else "changed by both"
    mode = theirs.mode if ours.mode == base.mode else ours.mode
    if theirs.blob in (ours.blob, base.blob):
        return TreeEntry(mode, ours.blob)
    if ours.blob == base.blob:
        return TreeEntry(mode, theirs.blob)
    blob = _merged_lines(git, (ours.blob, base.blob, theirs.blob), favour)
    return "no text, changed by both" if blob is None else TreeEntry(mode, blob) if blob else "the same lines"


def _merged_lines(git: GitProgram, blobs: Iterable[str], favour: Favour | None) -> str | None:
    """Merge a text and return its blob; "" where both changed the same lines, None for a binary file."""
    with tempfile.TemporaryDirectory(prefix="teamchat-merge-") as name:
        files = [Path(name, side) for side in ("ours", "base", "theirs")]
        for file, blob in zip(files, blobs, strict=True):
            file.write_bytes(git("cat-file", "blob", blob))
        sides = (f"--{favour}",) if favour else ()
        try:
            git("merge-file", "--quiet", *sides, *(str(file) for file in files))
        except GitFailed as failed:
            return None if failed.code == _NO_TEXT else ""
        return git("hash-object", "-w", "--no-filters", str(files[0])).decode().strip()


def _in_each_others_way(own: Mapping[str, TreeEntry], paths: Mapping[str, TreeEntry | None]) -> list[Clash]:
    """Find the paths that would have to be a file and a folder at once."""
    after = {path for path in own if paths.get(path, True)} | {path for path, entry in paths.items() if entry}
    folders = {path[:at] for path in after for at, letter in enumerate(path) if letter == "/"}
    return [Clash(path, "a file of one, a folder of the other", final=True) for path in after & folders]
