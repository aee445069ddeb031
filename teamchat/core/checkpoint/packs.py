"""Checkpoints on their way between two machines: a pack of git objects, made over a tree that both have.

The pack is thin: objects that the receiver has are left out, and changed ones are written as differences. For git to do
that, both sides make the same commit of the tree that they have in common, without parents, author and time.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from teamchat.core.checkpoint.git import GitFailed, GitProgram
from teamchat.core.checkpoint.notes import NOBODY
from teamchat.core.checkpoint.paths import readable
from teamchat.core.checkpoint.refs import check_ref, set_ref
from teamchat.core.checkpoint.shadow import keep_file, open_shadow
from teamchat.core.checkpoint.values import CheckpointLimits, GitRepository
from teamchat.core.errors import CheckpointFailed
from teamchat.core.text.clean import printable

LARGEST = 8 << 20  # bytes of a pack
_LARGEST_OBJECTS = 64 * LARGEST  # unpacked
_LONGEST_S = 120.0
_MOST_NAMED = 3
_MADE = b"What both machines have.\n"


class CheckpointPack(Struct, frozen=True, forbid_unknown_fields=True):
    """A checkpoint, and its objects that the tree `base` lacks (None: all of them)."""

    checkpoint: str
    base: str | None
    pack: bytes


class TooLarge(CheckpointFailed):
    """A checkpoint has too many bytes of new files to send. The message says how many, and which files are large."""


class LacksBase(CheckpointFailed):
    """The tree that a pack is made over is not on this machine."""


def pack(
    repository: GitRepository, state_folder: Path, checkpoint: str, known: Sequence[str], beside: Path | None = None
) -> CheckpointPack:
    """Pack the checkpoint over the first of the commits or trees `known` that is here.

    `beside` is a folder of objects of another repository, where these may be. Raises `TooLarge` and
    `CheckpointFailed`.
    """
    with open_shadow(repository, state_folder, _LONGEST_S, files=False) as shadow:
        others = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": str(beside)} if beside else {}
        git = replace(shadow.git, env={**shadow.git.env, **others})
        base = next(filter(None, (_tree(git, name) for name in known)), None)
        if base == _tree(git, checkpoint) and base:
            return CheckpointPack(checkpoint, base, _of_one(git, checkpoint))
        revisions = f"{checkpoint}\n"
        if base:
            parent = _commit(git, base)
            revisions += f"{_commit(git, f'{checkpoint}^{{tree}}', '-p', parent)}\n^{parent}\n"
        objects = _sizes(git, revisions)
        if sum(size for size, _ in objects) > _LARGEST_OBJECTS:
            raise TooLarge(_too_large(sum(size for size, _ in objects), objects))
        packed = git("pack-objects", "--revs", "--thin", "--stdout", "-q", given=revisions.encode())
        if len(packed) > LARGEST:
            raise TooLarge(_too_large(len(packed), objects))
        return CheckpointPack(checkpoint, base, packed)


def unpack(repository: GitRepository, state_folder: Path, packed: CheckpointPack, ref: str) -> None:
    """Take over the objects of a checkpoint, and have `ref` keep it. No file of the work tree is written.

    git checks all objects before it stores one. Raises `LacksBase` and `CheckpointFailed`.
    """
    check_ref(ref)
    with open_shadow(repository, state_folder, _LONGEST_S, files=False) as shadow:
        git = shadow.git
        if packed.base:
            if _tree(git, packed.base) != packed.base:
                raise LacksBase(f"the files that were sent before are no longer here ({packed.base[:12]})")
            _commit(git, packed.base)  # the pack names it as the tree that both have
        if len(packed.pack) > LARGEST:
            raise TooLarge(f"{len(packed.pack):,} bytes of files, over {LARGEST:,}")
        git("index-pack", "--strict", "--fix-thin", "--stdin", given=packed.pack)
        if _tree(git, packed.checkpoint) is None:
            raise CheckpointFailed(f"the checkpoint {packed.checkpoint[:12]} did not come")
        listed = git("ls-tree", "-r", "-l", "-z", "--full-tree", packed.checkpoint).split(b"\0")[:-1]
        sizes = (entry.partition(b"\t")[0].split()[3] for entry in listed)
        if any(int(size) > CheckpointLimits().file_bytes for size in sizes if size != b"-"):
            raise CheckpointFailed(f"the checkpoint {packed.checkpoint[:12]} has a file that is too large")
        set_ref(shadow, ref, packed.checkpoint)


def borrow(repository: GitRepository, state_folder: Path) -> None:
    """Let the store use the objects of the repository itself, so that common objects need not be sent."""
    with open_shadow(repository, state_folder, _LONGEST_S, files=False):
        place = repository.store / "objects" / "info" / "alternates"
        place.parent.mkdir(exist_ok=True)
        keep_file(place, os.fsencode(repository.common_dir / "objects") + b"\n")


def _tree(git: GitProgram, name: str) -> str | None:
    """Find the tree of a commit, or a tree itself; None where it is not here."""
    try:
        return git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{tree}}").decode().strip() or None
    except GitFailed:
        return None


def _commit(git: GitProgram, tree: str, *parents: str) -> str:
    """Make the commit of a tree that both machines make in the same way."""
    return replace(git, env={**git.env, **NOBODY})("commit-tree", tree, *parents, given=_MADE).decode().strip()


def _of_one(git: GitProgram, checkpoint: str) -> bytes:
    """Pack the commit alone: nothing of its files is new."""
    return git("pack-objects", "--stdout", "-q", given=f"{checkpoint}\n".encode())


def _sizes(git: GitProgram, revisions: str) -> list[tuple[int, bytes]]:
    """List the objects of a pack: their sizes and paths, the largest first."""
    listed = git("rev-list", "--objects", "--stdin", given=revisions.encode())
    told = git("cat-file", "--batch-check=%(objectsize) %(rest)", given=listed).splitlines()
    pairs = (line.partition(b" ")[::2] for line in told)
    return sorted(((int(size), path) for size, path in pairs), reverse=True)


def _too_large(size: int, objects: Sequence[tuple[int, bytes]]) -> str:
    files = [(number, readable(os.fsdecode(path))) for number, path in objects if path]
    named = printable(", ".join(f"{path} ({number / (1 << 20):.1f} MB)" for number, path in files[:_MOST_NAMED]))
    return f"its new files are {size / (1 << 20):.1f} MB, over {LARGEST >> 20} MB; the largest: {named}"
