"""Takes a checkpoint: one `git status` where nothing changed since the last, and a ref to the tree."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from heapq import nlargest
from itertools import chain
from pathlib import Path

from msgspec import Struct, field

from teamchat.core.checkpoint.edited import Unfit, edited, entry_of
from teamchat.core.checkpoint.git import GitFailed, GitProgram
from teamchat.core.checkpoint.paths import is_safe
from teamchat.core.checkpoint.refs import check_ref, has_ended_since, mark_of, set_ref
from teamchat.core.checkpoint.shadow import Shadow, keep_file, open_shadow, stamp_of_index
from teamchat.core.checkpoint.values import Checkpoint, CheckpointLimits, GitRepository, Latest, LeftOut, TreeEntry
from teamchat.patterns import regex

_STATUS = (
    "status",
    "--porcelain=v2",
    "-z",
    "--untracked-files=all",
    "--no-renames",
    "--ignore-submodules=dirty",  # git would run itself in a submodule, by that repository's configuration
)
_ADD = ("update-index", "--add", "--remove", "--replace", "-z", "--stdin")
_FEW = 20  # files by which HEAD may differ from the index, which are read at each look
_MOST_NAMED = 5
_MOST_TRIES = 3
_FAILED = regex(rb"Unable to process path (.*)\n", re.DOTALL)
_CLOSED = regex(rb"^warning: could not open directory '(.*)/': Permission denied$", re.MULTILINE)


def take(repository: GitRepository, state_folder: Path, ref: str, limits: CheckpointLimits | None = None) -> Checkpoint:
    """Record the files of the work tree, and have `ref` (`refs/teamchat/...`) keep them.

    What the index of a checkpoint once held stays in the next ones as long as it is there, also when it is ignored by
    then: a new line of `.gitignore` deletes no file. A pipe or a socket that nobody tracks is not even listed.

    Raises `CheckpointFailed`, with the checkpoints before as they were, and `ValueError` for another `ref`.
    """
    return take_latest(repository, state_folder, ref, limits).checkpoint


def take_latest(
    repository: GitRepository,
    state_folder: Path,
    ref: str | None,
    limits: CheckpointLimits | None = None,
    *,
    waits: bool = False,
) -> Latest:
    """The same, and what tells how long it is the latest. Without a `ref` no ref keeps it yet.

    `waits`: a turn does, so that a few changed files take as little time as they can.
    """
    if ref is not None:
        check_ref(ref)
    limits = limits or CheckpointLimits()
    began = time.monotonic()
    with open_shadow(repository, state_folder, limits.seconds) as shadow:
        found = _Snapshot(shadow, limits, _Places(repository.top), waits=waits)
        try:
            tree = _kept(found, ref)
        except GitFailed:  # such as: `git gc` took objects that only our index knew
            found = _Snapshot(shadow, limits, _Places(repository.top), shadow.forget())
            tree = _kept(found, ref)
        mark = mark_of(shadow.folder)
    largest = nlargest(_MOST_NAMED, ((size, path) for path, size in found.read.items()))
    left_out = tuple(sorted(found.left_out.values(), key=lambda one: one.path))
    now = time.monotonic()
    return Latest(Checkpoint(tree, left_out, now - began, tuple((path, size) for size, path in largest)), mark, now)


def keep_latest(repository: GitRepository, state_folder: Path, ref: str, latest: Latest, seconds: float) -> bool:
    """Have `ref` keep a checkpoint that is at most that old. No file is looked at again.

    False if it is older, if a turn or an undo has ended in the work tree since, or if its tree is gone. Raises
    `CheckpointFailed`.
    """
    check_ref(ref)
    with open_shadow(repository, state_folder, CheckpointLimits().seconds) as shadow:
        if time.monotonic() - latest.at > seconds or has_ended_since(shadow.folder, latest.mark):
            return False
        return _names(shadow, ref, latest)


def keep(repository: GitRepository, state_folder: Path, ref: str, latest: Latest) -> bool:
    """Have `ref` keep that checkpoint, too. False if its tree is gone. Raises `CheckpointFailed`."""
    check_ref(ref)
    with open_shadow(repository, state_folder, CheckpointLimits().seconds) as shadow:
        return _names(shadow, ref, latest)


def _names(shadow: Shadow, ref: str, latest: Latest) -> bool:
    try:
        set_ref(shadow, ref, latest.checkpoint.tree)
    except GitFailed:
        return False
    return True


def _kept(found: _Snapshot, ref: str | None) -> str:
    tree = found.take()
    if ref is not None:
        set_ref(found.shadow, ref, tree)
    return tree


def take_restored(
    repository: GitRepository, state_folder: Path, ref: str, base: str, paths: Mapping[str, TreeEntry | None]
) -> str:
    """The tree of the checkpoint `base` with `paths` as `restore` has just made them; `ref` keeps it.

    No file is read, so what somebody else changes at the same time is their change, and no part of it. Raises
    `CheckpointFailed`.
    """
    check_ref(ref)
    with open_shadow(repository, state_folder, CheckpointLimits().seconds) as shadow:
        if shadow.head == base and not shadow.is_behind:  # so the index is the same
            with contextlib.suppress(GitFailed):
                tree = _with_entries(shadow, paths)
                set_ref(shadow, ref, tree)
                return tree
            shadow.forget()
    return take(repository, state_folder, ref).tree


def _with_entries(shadow: Shadow, paths: Mapping[str, TreeEntry | None]) -> str:
    nothing = "0" * (64 if shadow.repository.object_format == "sha256" else 40)
    gone = (f"0 {nothing}\t{path}" for path, entry in paths.items() if entry is None)
    there = (f"{entry.mode} {entry.blob}\t{path}" for path, entry in paths.items() if entry)
    shadow.git("update-index", "--add", "--replace", "-z", "--index-info", given=_listed((*gone, *there)))
    return _tree_of_index(shadow)


def _tree_of_index(shadow: Shadow) -> str:
    tree = shadow.git("write-tree").decode().strip()
    shadow.set_head(tree)
    shadow.mark_behind(is_behind=False)
    return tree


class _Snapshot(Struct):
    """One look at the files. `extra` are paths that the index is to have, although git may ignore them."""

    shadow: Shadow
    limits: CheckpointLimits
    places: _Places
    extra: list[str] = field(default_factory=list)
    left_out: dict[str, LeftOut] = field(default_factory=dict)
    read: dict[str, int] = field(default_factory=dict)
    waits: bool = False

    def take(self) -> str:
        """The tree."""
        stamp = stamp_of_index(self.shadow.repository)
        users_own = self._ignored_but_tracked(stamp)
        writes = not (self.waits and self.shadow.has_noted)
        scan = _scan(self.shadow.looking if writes else self.shadow.only_looking)
        if writes:
            self.shadow.note_index()
        for path in scan.closed:
            self.left_out[path] = LeftOut(path, None, "unreadable")
        submodules = self._submodules(scan.nested)
        wanted = dict.fromkeys(chain(scan.changed, scan.staged, scan.untracked, submodules, users_own, self.extra))
        add = [path for path in wanted if self._can_be_read(path, is_submodule=path in submodules)]
        # a path that cannot be read now has to go from the index, in which it may be
        remove = [*scan.gone, *(path for path in scan.changed if path in self.left_out)]
        tree = self._without_index(scan, add) if self.waits and not submodules else None
        if tree is None:
            tree = self._with_index(add, remove, differs=bool(scan.staged))
        keep_file(self.shadow.folder / "index.of.user", stamp.encode())
        return tree

    def _without_index(self, scan: _Scan, add: list[str]) -> str | None:
        """The tree if only a few files differ from HEAD; the index stays behind. None if that cannot be."""
        head, known = self.shadow.head, {*scan.changed, *scan.staged, *scan.gone}
        if not (known or add):
            return head
        if head is None or len(known.union(add)) > _FEW:
            return None
        try:
            entries = {path: entry_of(self.shadow, path) for path in add}
            tree = edited(self.shadow, head, {**dict.fromkeys(known), **entries})
        except (Unfit, OSError):
            return None
        if tree != head:
            self.shadow.mark_behind()
            self.shadow.set_head(tree)
        return tree

    def _with_index(self, add: list[str], remove: list[str], *, differs: bool) -> str:
        head = self.shadow.head
        if head and not (add or remove or differs or self.shadow.is_behind):
            return head
        self._write(add, remove)
        return _tree_of_index(self.shadow)

    def _ignored_but_tracked(self, stamp: str) -> list[str]:
        """What git tracks although it is told to ignore it; nothing new where the user's index is the same."""
        with contextlib.suppress(OSError):
            if (self.shadow.folder / "index.of.user").read_text() == stamp:
                return []
        listed = self.shadow.users_index("--cached", "--ignored", "--exclude-standard")
        return [os.fsdecode(path) for path in listed]

    def _submodules(self, nested: Iterable[str]) -> set[str]:
        """Those of the nested repositories that the user's index has as submodules; the others are left out."""
        paths = list(nested)
        found = set()
        for some in _batches(paths):
            entries = self.shadow.users_index("--stage", "--", *some)
            found |= {os.fsdecode(entry.partition(b"\t")[2]) for entry in entries if entry.startswith(b"160000 ")}
        for path in paths:
            if path not in found:
                self.left_out[path] = LeftOut(path, None, "repository")
        return found

    def _can_be_read(self, path: str, *, is_submodule: bool) -> bool:
        """Whether the path goes into the tree; what is there and does not is listed with its reason."""
        status = self.places.look(path)
        if status is None:
            return False
        place = f"{self.shadow.repository.top}/{path}"
        if stat.S_ISDIR(status.st_mode):
            return is_submodule or Path(place, ".git").exists()
        if not is_safe(path):
            self.left_out[path] = LeftOut(path, status.st_size, "name")
        elif not (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)):
            self.left_out[path] = LeftOut(path, None, "special")
        elif status.st_size > self.limits.file_bytes:
            self.left_out[path] = LeftOut(path, status.st_size, "large")
        elif stat.S_ISREG(status.st_mode) and not os.access(place, os.R_OK):
            self.left_out[path] = LeftOut(path, status.st_size, "unreadable")
        else:
            self.read[path] = status.st_size
        return path not in self.left_out

    def _write(self, add: list[str], remove: list[str]) -> None:
        if remove:
            self.shadow.git("update-index", "--force-remove", "-z", "--stdin", given=_listed(remove))
        for _ in range(_MOST_TRIES):
            if not add:
                return
            try:
                self.shadow.git(*_ADD, given=_listed(add))
            except GitFailed as failed:
                self._leave_out(failed, add)
            else:
                return
        self.shadow.git(*_ADD, given=_listed(add))

    def _leave_out(self, failed: GitFailed, add: list[str]) -> None:
        """Take the path that changed while git read it out of `add`."""
        found = _FAILED.search(failed.told)
        if found is None:
            raise failed
        for path in [path for path in add if _as_told(path) == found[1]]:
            status = self.places.look(path)
            self.left_out[path] = LeftOut(path, status.st_size if status else None, "changing")
            self.read.pop(path, None)
            add.remove(path)


class _Scan(Struct):
    """What is not as the index has it. `staged`: what the index has otherwise than HEAD."""

    changed: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    untracked: list[str] = field(default_factory=list)
    nested: list[str] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)
    staged: list[str] = field(default_factory=list)


def _scan(git: GitProgram) -> _Scan:
    scan = _Scan()
    ended = git.run(*_STATUS)
    for entry in ended.out.split(b"\0"):
        kind, _, rest = entry.partition(b" ")
        if kind == b"?":
            path = os.fsdecode(rest)
            (scan.nested if path.endswith("/") else scan.untracked).append(path.rstrip("/"))
        elif kind == b"1":
            where, path = rest[:2], os.fsdecode(rest.split(b" ", 7)[7])
            if where[:1] != b".":
                scan.staged.append(path)
            if where[1:] == b"D":
                scan.gone.append(path)
            elif where[1:] != b".":
                scan.changed.append(path)
    scan.closed = [os.fsdecode(name) for name in _CLOSED.findall(ended.err)]
    return scan


class _Places:
    """What is at the paths of a work tree, where no symbolic link leads to them."""

    def __init__(self, top: Path) -> None:
        self._top = os.fspath(top)
        self._folders = {"": True}

    def look(self, path: str) -> os.stat_result | None:
        """None where nothing is."""
        if not self._is_folder(path.rpartition("/")[0]):
            return None
        try:
            return os.lstat(f"{self._top}/{path}")
        except OSError:
            return None

    def _is_folder(self, path: str) -> bool:
        if path not in self._folders:
            status = self.look(path)
            self._folders[path] = status is not None and stat.S_ISDIR(status.st_mode)
        return self._folders[path]


def _listed(paths: Iterable[str]) -> bytes:
    return b"".join(os.fsencode(path) + b"\0" for path in paths)


def _as_told(path: str) -> bytes:
    """A path as git writes it in an error."""
    return bytes(byte if byte in b"\t\n" or (byte >= 32 and byte != 127) else ord("?") for byte in os.fsencode(path))


def _batches(paths: list[str], most: int = 500) -> Iterator[list[str]]:
    """Lists that fit on a command line."""
    for at in range(0, len(paths), most):
        yield paths[at : at + most]
