"""The notes of a checkpoint beside its tree: permissions and omitted paths. They are the message of its commit.

The commit has no parents, no author and no time, so that the same files have the same id.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from teamchat.core.checkpoint.git import GitProgram
from teamchat.core.checkpoint.memory import Permissions
from teamchat.core.checkpoint.values import LeftOut, TreeEntry

NOBODY = {
    "GIT_AUTHOR_NAME": "teamchat",
    "GIT_AUTHOR_EMAIL": "teamchat",
    "GIT_AUTHOR_DATE": "@0 +0000",
    "GIT_COMMITTER_NAME": "teamchat",
    "GIT_COMMITTER_EMAIL": "teamchat",
    "GIT_COMMITTER_DATE": "@0 +0000",
}


class Notes(Struct, frozen=True):
    """`usual` has the permissions of most files by their modes in git, `bits` the permissions of the others by their
    paths. `folders` has the permissions of folders that are not `usual_folder`. `left_out`: paths, why, and a stamp of
    each.
    """

    usual: dict[str, int] = {}
    bits: dict[str, int] = {}
    usual_folder: int | None = None
    folders: dict[str, int] = {}
    left_out: tuple[tuple[str, str, str], ...] = ()

    def bits_of(self, path: str, mode: str) -> int | None:
        """Return the permissions of a file; None for a link or a submodule, and where nobody knows them."""
        return self.bits.get(path, self.usual.get(mode))

    def with_entries(self, paths: Mapping[str, TreeEntry | None]) -> Notes:
        """Return the notes with those paths changed."""
        bits = {path: some for path, some in self.bits.items() if path not in paths}
        for path, entry in paths.items():
            if entry and entry.bits is not None and entry.bits != self.usual.get(entry.mode):
                bits[path] = entry.bits
        return replace(self, bits=dict(sorted(bits.items())))


def notes(files: Permissions, folders: Mapping[str, int], left_out: Iterable[LeftOut]) -> Notes:
    """Make the notes of files and of folders, given by their paths with their permissions."""
    usual = files.usual()
    as_usual = set(usual.values())
    others = {path: some for path, some in sorted(files.others.items()) if some is not None and some not in as_usual}
    modes = Counter(folders.values())
    usual_folder = min(modes, key=lambda bits: (-modes[bits], bits)) if modes else None
    unusual = {path: folders[path] for path in sorted(folders) if folders[path] != usual_folder}
    named = tuple(sorted((omitted.path, omitted.why, omitted.stamp) for omitted in left_out))
    return Notes(usual, others, usual_folder, unusual, named)


def message_of(found: Notes) -> bytes:
    """Encode the notes as the message of a commit."""
    fields = {name: getattr(found, name) for name in Notes.__struct_fields__}
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"


def store_notes(git: GitProgram, tree: str, message: bytes) -> str:
    """Store the checkpoint with the tree and the notes of the message, and return its id."""
    return replace(git, env={**git.env, **NOBODY})("commit-tree", tree, given=message).decode().strip()


def notes_of(git: GitProgram, name: str) -> Notes:
    """Read the notes of a checkpoint; none of a plain tree."""
    head, _, content = git("cat-file", "--batch", given=f"{name}\n".encode()).partition(b"\n")
    if b" commit " not in head:
        return Notes()
    try:
        fields = json.loads(content.partition(b"\n\n")[2])
        return Notes(**{**fields, "left_out": tuple(map(tuple, fields["left_out"]))})
    except (ValueError, TypeError, KeyError):
        return Notes()
