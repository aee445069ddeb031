"""Takes a checkpoint: git looks at the files of the work tree, and a ref of the store keeps what they are.

What is ignored is decided by the rules as they are, and at the end of a turn by those of its beginning: a file that a
turn makes is recorded although it makes a rule for it, and one that was there before is no work of the turn although it
takes a rule away.
"""

from __future__ import annotations

import json
import os
import re
import stat
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from heapq import nlargest
from itertools import chain
from pathlib import Path

from msgspec import Struct, convert, field
from msgspec.structs import replace

from teamchat.core.checkpoint.compare import tree_with
from teamchat.core.checkpoint.disk import status_at
from teamchat.core.checkpoint.git import GitFailed, GitProgram
from teamchat.core.checkpoint.ignored import RULES, all_rules, named
from teamchat.core.checkpoint.notes import notes, notes_of, store_notes
from teamchat.core.checkpoint.paths import folders_of, is_safe, is_within, readable
from teamchat.core.checkpoint.private import is_private, umask
from teamchat.core.checkpoint.refs import check_ref, noted_at, set_ref
from teamchat.core.checkpoint.shadow import Shadow, keep_file, open_shadow
from teamchat.core.checkpoint.values import (
    SUBMODULE,
    Checkpoint,
    CheckpointLimits,
    GitRepository,
    LeftOut,
    TreeEntry,
    Why,
)
from teamchat.core.checkpoint.walk import Walk, stamp_of, walk
from teamchat.core.errors import CheckpointFailed
from teamchat.patterns import regex
from teamchat.runners.child.command import run

_OTHERS = ("ls-files", "-z", "--others")
_DIFFER = ("diff-files", "-z", "--raw", "--no-renames", "--ignore-submodules=dirty")  # git would run itself in these
_ADD = ("update-index", "--add", "--remove", "--replace", "-z", "--stdin")
MOST_RULES = 1 << 20  # bytes of what is ignored; reading them takes fifty times as much memory
_NOTED = "rules"  # the file of the rules as they were when a turn began
_OTHER_RULES = "info/exclude or the file of core.excludesFile"
_MOST_NAMED = 5
_MOST_TRIES = 3
_MANY = 500
_SOON_S = 10.0  # after a change of a file, in which another one may not be seen by its times
_MOST_AT_ONCE = 1000
_LONGEST_S = 30.0
_PLAIN = {"PATH": os.defpath, "LC_ALL": "C"}
_FAILED = regex(rb"Unable to process path (.*)\n", re.DOTALL)
_CLOSED = regex(rb"^warning: could not open directory '(.*)/': Permission denied$", re.MULTILINE)


class Begun(Struct, frozen=True):
    """The checkpoint before a turn. `inodes` are of the files that it has; None where nobody knows them any more.

    `noted` is what is noted of it for the end of the turn.
    """

    checkpoint: Checkpoint
    inodes: frozenset[int] | None = None
    noted: bytes = b""


class _Since(Struct, frozen=True):
    """What the end of a turn knows of its beginning: the time, and what was left out, why."""

    at: float
    left_out: dict[str, Why]
    inodes: frozenset[int] | None


def take(
    repository: GitRepository,
    state_folder: Path,
    ref: str,
    limits: CheckpointLimits | None = None,
    *,
    after: str | None = None,
) -> Checkpoint:
    """Record the files of the work tree as they are, and have `ref` (`refs/teamchat/...`) keep them.

    What the index of a checkpoint once held stays in the next ones as long as it is there, also when it is ignored by
    then: a new line of `.gitignore` deletes no file. A pipe or a socket that was never recorded is not even listed.
    `after` is the checkpoint of the end of the last turn: what was ignored when that turn began is left out here, too,
    although the turn took the rule away or moved the file.

    Raises `CheckpointFailed`, with the checkpoints before as they were, and `ValueError` for another `ref`.
    """
    with _opened(repository, state_folder, ref, limits) as shadow:
        return _taken(shadow, ref, limits, after=after)[0]


def begin_turn(
    repository: GitRepository, state_folder: Path, ref: str, limits: CheckpointLimits | None = None
) -> Begun:
    """The same, and note what is ignored now, for `end_turn`."""
    at = time.time()
    with _opened(repository, state_folder, ref, limits) as shadow:
        begun = _begun(shadow, at, *_taken(shadow, ref, limits, begins=True))
        keep_file(noted_at(repository, ref), begun.noted)
        return begun


def _begun(shadow: Shadow, at: float, checkpoint: Checkpoint, look: _Look) -> Begun:
    """The beginning of a turn with that checkpoint: what is ignored now is noted for its end."""
    left_out = {omitted.path: omitted.why for omitted in checkpoint.left_out}
    rules = look.rules()
    keep_file(shadow.file(_NOTED), rules)
    noted = {"at": at, "left_out": left_out, "rules": os.fsdecode(rules)}
    inodes = frozenset(inode for path, inode in look.found.files.items() if path in look.known)
    return Begun(checkpoint, inodes, json.dumps(noted).encode())


def end_and_begin(
    repository: GitRepository,
    state_folder: Path,
    ref: str,
    began: str,
    inodes: frozenset[int] | None = None,
    limits: CheckpointLimits | None = None,
) -> Begun:
    """The same as `end_turn`, with what is ignored now: other turns may begin with this checkpoint.

    `begin_with` has them do so. One look at the files is the end of one and the beginning of the others.
    """
    at = time.time()
    with _opened(repository, state_folder, ref, limits) as shadow:
        since, file = _since(shadow, began, inodes)
        checkpoint, look = _taken(shadow, ref, limits, begins=True, since=since)
        file.unlink(missing_ok=True)
        return _begun(shadow, at, checkpoint, look)


def begin_with(repository: GitRepository, state_folder: Path, begun: Begun, ref: str) -> None:
    """Have a turn begin with a checkpoint that was taken for another one.

    Nothing of the files is looked at. Raises `CheckpointFailed`.
    """
    check_ref(ref)
    with open_shadow(repository, state_folder, _LONGEST_S, files=False) as shadow:
        keep_file(noted_at(repository, ref), begun.noted)
        set_ref(shadow, ref, begun.checkpoint.tree)


def end_turn(
    repository: GitRepository,
    state_folder: Path,
    ref: str,
    began: str,
    inodes: frozenset[int] | None = None,
    limits: CheckpointLimits | None = None,
) -> Checkpoint:
    """The checkpoint after the turn that began with the one of the ref `began`.

    What was there by then and not recorded is no part of it: git ignored it, or it was elsewhere.
    """
    with _opened(repository, state_folder, ref, limits) as shadow:
        since, file = _since(shadow, began, inodes)
        checkpoint, _ = _taken(shadow, ref, limits, since=since)
        file.unlink(missing_ok=True)
        return checkpoint


def _since(shadow: Shadow, began: str, inodes: frozenset[int] | None) -> tuple[_Since, Path]:
    """What was noted when the turn of the ref `began` began, and the file that has it. Raises `CheckpointFailed`."""
    file = noted_at(shadow.repository, began)
    try:
        noted = json.loads(file.read_bytes())
    except (OSError, ValueError):
        raise CheckpointFailed(f"what was ignored before the turn in {shadow.repository.top} is not known") from None
    keep_file(shadow.file(_NOTED), os.fsencode(noted["rules"]))
    return _Since(noted["at"], noted["left_out"], inodes), file


def take_restored(
    repository: GitRepository, state_folder: Path, ref: str, base: str, paths: Mapping[str, TreeEntry | None]
) -> str:
    """The checkpoint `base` with `paths` as `restore` has just made them; `ref` keeps it.

    No file is read, so what somebody else changes at the same time is their change, and no part of it. Raises
    `CheckpointFailed`.
    """
    with _opened(repository, state_folder, ref, None) as shadow:
        tree = tree_with(repository, base, paths)
        set_ref(shadow, ref, tree)
        return tree


def _opened(
    repository: GitRepository, state_folder: Path, ref: str, limits: CheckpointLimits | None
) -> AbstractContextManager[Shadow]:
    check_ref(ref)
    limits = limits or CheckpointLimits()
    return open_shadow(repository, state_folder, limits.seconds, limits.idle_s, limits.stopped)


def _taken(
    shadow: Shadow,
    ref: str,
    limits: CheckpointLimits | None,
    *,
    begins: bool = False,
    since: _Since | None = None,
    after: str | None = None,
) -> tuple[Checkpoint, _Look]:
    began = time.monotonic()
    look = _Look(shadow, limits or CheckpointLimits(), begins, since, after)
    try:
        tree = look.take()
    except GitFailed:  # such as: the index names what is no longer there
        for left in (shadow.index, shadow.index.with_name(f"{shadow.index.name}.lock")):
            left.unlink(missing_ok=True)
        look = _Look(shadow, limits or CheckpointLimits(), begins, since, after, extra=look.known)
        tree = look.take()
    set_ref(shadow, ref, tree)
    largest = nlargest(_MOST_NAMED, ((size, path) for path, size in look.read.items()))
    left_out = tuple(sorted(look.left_out.values(), key=lambda one: one.path))
    seconds = time.monotonic() - began
    return Checkpoint(tree, left_out, seconds, tuple((path, size) for size, path in largest)), look


class _Permissions(Struct):
    """Those of the files of the last checkpoint, and the files at which the next one has to look again."""

    bits: dict[str, int] = {}
    again: list[str] = []


class _Look(Struct):
    """One look at the files. `known` is what the index has, and at the end the checkpoint.

    `extra` are paths that the index is to have, although git may ignore them.
    """

    shadow: Shadow
    limits: CheckpointLimits
    begins: bool = False
    since: _Since | None = None
    after: str | None = None
    extra: set[str] = field(default_factory=set)
    earlier: set[str] = field(default_factory=set)
    known: set[str] = field(default_factory=set)
    found: Walk = field(default_factory=Walk)
    ignored: list[str] = field(default_factory=list)
    left_out: dict[str, LeftOut] = field(default_factory=dict)
    read: dict[str, int] = field(default_factory=dict)
    umask: int = field(default_factory=umask)
    submodules: set[str] = field(default_factory=set)
    written: set[str] = field(default_factory=set)

    def take(self) -> str:
        """The id of the checkpoint."""
        git = self.shadow.git
        self.known = set(_paths(git("ls-files", "-z"))) | self.extra
        if self.after:
            self.earlier = {path for path, why, _ in notes_of(git, self.after).left_out if why == "earlier"}
        tracked = set(_paths(self.shadow.users_index()))
        self._walk()
        for path in self._own_output():
            self._leave_out(path, "output")
        changed, gone = _differing(git(*_DIFFER))
        self.submodules = self._submodules(path for path in tracked if path not in self.found.files)
        new = {*self._others(), *tracked.difference(self.known)}
        new = {path for path in new if path.rstrip("/") not in self.submodules}
        if self.since:
            new = {path for path in new if not self._was_there(path)}
            new -= self._older(new)
        nested = {path for path in new if path.endswith("/")}
        submodules = self.submodules.intersection(changed) | self.submodules.difference(self.known)
        for path in nested:
            self._leave_out(path.rstrip("/"), "repository")
        untracked = {path for path in chain(new - nested, changed, self.extra) if path not in tracked}
        wanted = chain(changed, new - nested, submodules, self.extra, self._left_before())
        add = [
            path
            for path in dict.fromkeys(wanted)
            if self._can_be_read(path, is_submodule=path in self.submodules, untracked=path in untracked)
        ]
        remove = [*gone, *(path for path in self.left_out if path in self.known)]
        self.written = self._noted(add)
        self._write(add, remove)
        self.known = (self.known - set(remove)) | set(add)
        return self._named(git("write-tree").decode().strip())

    def _own_output(self) -> list[str]:
        """The files that this program's standard output and standard error are redirected to."""
        own = set(_redirected())
        numbers = {inode for _, inode in own}
        paths = [path for path, inode in self.found.files.items() if inode in numbers] if own else []
        return [path for path in paths if (status := self._look_at(path)) and (status.st_dev, status.st_ino) in own]

    def _submodules(self, paths: Iterable[str]) -> set[str]:
        """Those of the paths that the user's git has as submodules, among the folders."""
        folders = [path for path in paths if (status := self._look_at(path)) and stat.S_ISDIR(status.st_mode)]
        if not folders:
            return set()
        entries = self.shadow.users_index("--stage", "--", *folders).split(b"\0")[:-1]
        return {os.fsdecode(entry.partition(b"\t")[2]) for entry in entries if entry.startswith(SUBMODULE.encode())}

    def rules(self) -> bytes:
        """What is ignored now. Raises `CheckpointFailed` for more than `MOST_RULES` bytes of rules."""
        top, excluded = self.shadow.repository.top, self.shadow.excluded
        ignored = {path.rstrip("/") for path in self.ignored}  # the first walk of all was in these, too
        named = (path for path in self.found.files if path.rpartition("/")[2] == RULES)
        files = [path for path in named if not is_within(path, ignored)]
        sizes = {_OTHER_RULES: excluded.stat().st_size}
        sizes |= {path: status.st_size for path in files if (status := self._look_at(path))}
        if (size := sum(sizes.values())) > MOST_RULES:
            largest = max(sizes, key=lambda path: sizes[path])
            raise CheckpointFailed(
                f"the rules of what is ignored have {size:,} bytes, over {MOST_RULES:,}; shorten {readable(largest)}"
            )
        return all_rules(top, files, self.ignored, excluded.read_bytes())

    def _walk(self) -> None:
        """Look at everything but what git ignored when a turn began last."""
        top, file = self.shadow.repository.top, self.shadow.file("ignored")
        try:
            before = set(_paths(file.read_bytes()))
        except OSError:
            before = set()
        self.found = walk(top, {path.rstrip("/") for path in before})
        opened = [path for path in self.found.rules if not (self.since and path.rpartition("/")[2] == RULES)]
        if opened:
            raise CheckpointFailed(f"{readable(opened[0])} is no file, and git would wait for what it has; remove it")
        if self.begins:
            listed = _paths(self.shadow.git(*_OTHERS, "--ignored", "--exclude-standard", "--directory"))
            self.ignored = self._matching([path for path in listed if path.endswith("/")])
            if not before <= set(self.ignored):
                self.found = walk(top, {path.rstrip("/") for path in self.ignored})
            keep_file(file, _listed(self.ignored))

    def _matching(self, folders: list[str]) -> list[str]:
        """Those of the folders that a rule names, without those in which it only names all files."""
        return named(self.shadow.git, folders) if folders else []

    def _others(self) -> list[str]:
        """What is not in the index and not ignored; a nested repository ends with a slash."""
        noted = self.shadow.file(_NOTED)
        by_noted = f"--exclude-from={noted}"
        ended = self.shadow.git.run(*_OTHERS, by_noted if self.since else "--exclude-standard")
        for name in _CLOSED.findall(ended.err):
            self._leave_out(os.fsdecode(name), "unreadable")
        paths = _paths(ended.out)
        if self.after and noted.exists():
            wanted = set(_paths(self.shadow.git(*_OTHERS, by_noted)))
            return [path for path in paths if path in wanted and not self._is_earlier(path)]
        return paths

    def _is_earlier(self, path: str) -> bool:
        """Whether the turn before moved a path to where it is; so it is left out again."""
        if path in self.earlier:
            self._leave_out(path, "earlier")
        return path in self.earlier

    def _was_there(self, path: str) -> bool:
        """Whether the checkpoint before the turn left a path out; so does this one."""
        assert self.since
        for place in (*folders_of(path), path.rstrip("/")):
            if why := self.since.left_out.get(place):
                self._leave_out(place, why)
                return True
        return False

    def _older(self, new: set[str]) -> set[str]:
        """Those of the new files that were there when the turn began, ignored or elsewhere, unless it moved them."""
        assert self.since
        files = sorted(path for path in new if not path.endswith("/"))
        moved = self.since.inodes or frozenset[int]()
        older = set()
        for path, (inode, born) in _births(self.shadow, files).items():
            if born < self.since.at and inode not in moved:
                self._leave_out(path, "earlier")
                older.add(path)
        return older

    def _left_before(self) -> list[str]:
        """What the last look left out, and may be neither in the index nor listed."""
        try:
            return _paths(self.shadow.file("left").read_bytes())
        except OSError:
            return []

    def _look_at(self, path: str) -> os.stat_result | None:
        """What is at a path that no symbolic link leads to; None where nothing is."""
        top, folder = self.shadow.repository.top, path.rpartition("/")[0]
        if folder and folder not in self.found.folders:
            return status_at(top, path)
        try:
            return os.lstat(f"{top}/{path}")
        except OSError:
            return None

    def _leave_out(self, path: str, why: Why) -> None:
        size, stamp, status = None, "", self._look_at(path)
        if why != "output" and status and not stat.S_ISDIR(status.st_mode):
            stamp = f"{status.st_size}.{status.st_mtime_ns}.{status.st_mode:o}.{status.st_ino}"
            size = status.st_size if stat.S_ISREG(status.st_mode) else None
        self.left_out[path] = LeftOut(path, size, why, stamp)

    def _can_be_read(self, path: str, *, is_submodule: bool, untracked: bool) -> bool:
        """Whether the path goes into the tree; what is there and does not is listed with its reason."""
        if path in self.left_out:
            return False
        status = self._look_at(path)
        if status is None:
            return False
        place = f"{self.shadow.repository.top}/{path}"
        if stat.S_ISDIR(status.st_mode):
            return is_submodule and os.path.lexists(f"{place}/.git")  # else git takes it for none
        if why := self._reason(path, place, status, untracked=untracked):
            self._leave_out(path, why)
            return False
        self.read[path] = status.st_size
        return True

    def _reason(self, path: str, place: str, status: os.stat_result, *, untracked: bool) -> Why | None:
        if not is_safe(path):
            return "name"
        if stat.S_ISLNK(status.st_mode):
            return None
        if not stat.S_ISREG(status.st_mode):
            return "special"
        if status.st_size > self.limits.file_bytes:
            return "large"
        if not os.access(place, os.R_OK):
            return "unreadable"
        private = untracked and not self.since and is_private(path, stat.S_IMODE(status.st_mode), self.umask)
        return "private" if private else None

    def _noted(self, add: list[str]) -> set[str]:
        """What the index is about to have anew, with what a look that was killed has noted and not read since."""
        file = self.shadow.file("written")
        try:
            noted = {*add, *_paths(file.read_bytes())}
        except OSError:
            noted = set(add)
        if noted:
            keep_file(file, _listed(sorted(noted)))
        return noted

    def _write(self, add: list[str], remove: list[str]) -> None:
        keep_file(self.shadow.file("left"), _listed(self.left_out))
        if remove:
            self.shadow.git("update-index", "--force-remove", "-z", "--stdin", given=_listed(remove))
        for _ in range(_MOST_TRIES):
            if not add:
                return
            try:
                self._packing(add)(*_ADD, given=_listed(add))
            except GitFailed as failed:
                changed = _FAILED.search(failed.told)
                if changed is None:
                    raise
                for path in [path for path in add if _as_told(path) == changed[1]]:  # while git read it
                    self._leave_out(path, "changing")
                    self.read.pop(path, None)
                    add.remove(path)
            else:
                return
        self._packing(add)(*_ADD, given=_listed(add))

    def _packing(self, add: list[str]) -> GitProgram:
        """A git that writes many new files into one pack, which takes a tenth of the time of a file for each."""
        git = self.shadow.git
        if len(add) < _MANY:
            return git
        number = int(git.env["GIT_CONFIG_COUNT"])
        setting = {
            "GIT_CONFIG_COUNT": str(number + 1),
            f"GIT_CONFIG_KEY_{number}": "core.bigFileThreshold",
            f"GIT_CONFIG_VALUE_{number}": "1",
        }
        return replace(git, env={**git.env, **setting})

    def _named(self, tree: str) -> str:
        top, files = self.shadow.repository.top, self._permissions()
        folders = {folder for path in {path.rpartition("/")[0] for path in files} for folder in folders_of(f"{path}/")}
        modes = {folder: self.found.folders[folder] for folder in folders if folder in self.found.folders}
        inside = (LeftOut(path, None, "submodule", stamp_of(f"{top}/{path}")) for path in sorted(self.submodules))
        left_out = (*self.left_out.values(), *(submodule for submodule in inside if submodule.stamp))
        return store_notes(self.shadow.git, tree, notes(files, modes, left_out))

    def _permissions(self) -> dict[str, int]:
        """The permissions of all files of the checkpoint.

        A change of them changes the ctime that the index has, so those of the last look hold where git finds no
        difference. They are read after the index was written, and again for a while: two changes may have one ctime.
        """
        file = self.shadow.file("permissions")
        try:
            last = convert(json.loads(file.read_bytes()), _Permissions)
        except (OSError, ValueError):
            last = _Permissions()
        bits, again = last.bits, set(last.again)
        gone = bits.keys() - self.known
        for path in gone:
            del bits[path]
        fresh = (self.known - bits.keys()) | ((self.written | again) & self.known)
        soon, now = set[str](), time.time()
        for path in fresh:
            status = self._look_at(path)
            if status is None or not stat.S_ISREG(status.st_mode):
                bits.pop(path, None)
                continue
            bits[path] = stat.S_IMODE(status.st_mode)
            if status.st_ctime > now - _SOON_S:
                soon.add(path)
        if fresh or gone or soon != again:
            keep_file(file, json.dumps({"bits": bits, "again": sorted(soon)}).encode())
        self.shadow.file("written").unlink(missing_ok=True)
        return bits


def _redirected() -> Iterator[tuple[int, int]]:
    """The device and the inode of what standard output and standard error are, where that is a file."""
    for number in (1, 2):
        with suppress(OSError):  # it is closed
            status = os.fstat(number)
            if stat.S_ISREG(status.st_mode):
                yield status.st_dev, status.st_ino


def _differing(printed: bytes) -> tuple[list[str], list[str]]:
    """The paths that are not as the index has them, and those that are gone."""
    fields = printed.split(b"\0")[:-1]
    pairs = [(entry[-1:], os.fsdecode(path)) for entry, path in zip(fields[::2], fields[1::2], strict=True)]
    return [path for sign, path in pairs if sign != b"D"], [path for sign, path in pairs if sign == b"D"]


def _births(shadow: Shadow, paths: list[str]) -> dict[str, tuple[int, float]]:
    """The inode of each file, and when it was made; where the file system does not tell, when it was written."""
    births: dict[str, tuple[int, float]] = {}
    top = shadow.repository.top
    for path in paths:
        if status := status_at(top, path):
            births[path] = status.st_ino, getattr(status, "st_birthtime", status.st_mtime)
    if sys.platform != "linux":
        return births
    there = list(births)
    for at in range(0, len(there), _MOST_AT_ONCE):
        some = there[at : at + _MOST_AT_ONCE]
        try:
            stats = run(("stat", "--printf=%.9W\\n", "--", *some), top, _PLAIN, _LONGEST_S)
        except OSError:
            return births
        times = stats.out.split(b"\n")[:-1]
        if stats.code or len(times) != len(some):
            continue  # one is gone, or this is another `stat`
        for path, born in zip(some, times, strict=True):
            if float(born) > 0:
                births[path] = births[path][0], float(born)
    return births


def _paths(printed: bytes) -> list[str]:
    return os.fsdecode(printed).split("\0")[:-1]


def _listed(paths: Iterable[str]) -> bytes:
    return b"".join(os.fsencode(path) + b"\0" for path in paths)


def _as_told(path: str) -> bytes:
    """A path as git writes it in an error."""
    return bytes(byte if byte in b"\t\n" or (byte >= 32 and byte != 127) else ord("?") for byte in os.fsencode(path))
