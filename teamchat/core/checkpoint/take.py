"""Takes a checkpoint: git looks at the files of the work tree, and a ref of the store keeps what they are.

The current rules decide which files are ignored; at the end of a turn, the rules of its beginning do. So a file that a
turn makes is recorded even if the turn adds a rule for it, and an older file does not become work of the turn because
the turn removes a rule.
"""

from __future__ import annotations

import json
import os
import re
import stat
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from hashlib import sha256
from heapq import nlargest
from itertools import chain
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from teamchat.core.checkpoint.compare import tree_with
from teamchat.core.checkpoint.disk import own_output, status_at, tells_all_changes
from teamchat.core.checkpoint.git import GitFailed, GitProgram
from teamchat.core.checkpoint.ignored import RULES, all_rules, named, rules_in, rules_of
from teamchat.core.checkpoint.memory import NOTHING, Memory, Permissions, folders_of_files, recalled, stamp
from teamchat.core.checkpoint.notes import message_of, notes, notes_of, store_notes
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
from teamchat.core.checkpoint.walk import SOON_S, Walk, stamp_of, walk
from teamchat.core.errors import CheckpointFailed
from teamchat.patterns import regex
from teamchat.runners.child.command import run

_OTHERS = ("ls-files", "-z", "--others")
_DIFFER = ("diff-files", "-z", "--raw", "--no-renames", "--ignore-submodules=dirty")  # git would run itself in these
_ADD = ("update-index", "--add", "--remove", "--replace", "-z", "--stdin")
MOST_RULES = 1 << 20  # bytes of the rules of ignored files; reading them takes fifty times as much memory
_NOTED = "rules"  # the file of the rules as they were when a turn began
_OTHER_RULES = "info/exclude or the file of core.excludesFile"
_MOST_NAMED = 5
_MOST_TRIES = 3
_MANY = 500
_AT_ONCE = 10_000  # files for one pack: git (2.39) compares each with all that it has written into it
_MOST_AT_ONCE = 1000
_LONGEST_S = 30.0
_PLAIN = {"PATH": os.defpath, "LC_ALL": "C"}
_INODE = regex(rb"\tino: (\d+)\n")
_INODE_BITS = 0xFFFFFFFF  # the bits of an inode that an index stores
_FAILED = regex(rb"Unable to process path (.*)\n", re.DOTALL)
_CLOSED = regex(rb"^warning: could not open directory '(.*)/': Permission denied$", re.MULTILINE)


class Begun(Struct, frozen=True):
    """The checkpoint before a turn, and the note on it for the end of the turn."""

    checkpoint: Checkpoint
    noted: bytes = b""


class _Since(Struct, frozen=True):
    """The beginning of a turn, for its end: the time, the paths left out with the reasons, and the ref."""

    at: float
    left_out: dict[str, Why]
    began: str


def take(
    repository: GitRepository,
    state_folder: Path,
    ref: str,
    limits: CheckpointLimits | None = None,
    *,
    after: str | None = None,
    also: Iterable[str] = (),
) -> Checkpoint:
    """Record the files of the work tree as they are, and have `ref` (`refs/teamchat/...`) keep them.

    A file once in the index stays in later checkpoints as long as it exists, even if it is ignored later: a new line of
    `.gitignore` deletes no file. A pipe or a socket that was never recorded is not even listed. `after` is the
    checkpoint of the end of the last turn: what was ignored when that turn began is left out here, too, although the
    turn took the rule away or moved the file. Every file at the paths `also` is recorded, ignored or not: other
    checkpoints have them, and whoever puts them back has to know their current content.

    Raises `CheckpointFailed`, with the checkpoints before as they were, and `ValueError` for another `ref`.
    """
    with _opened(repository, state_folder, ref, limits) as shadow:
        return _taken(shadow, ref, limits, after=after, also=also)[0]


def begin_turn(
    repository: GitRepository, state_folder: Path, ref: str, limits: CheckpointLimits | None = None
) -> Begun:
    """Record the files as `take` does, and note the files ignored now, for `end_turn`."""
    at = time.time()
    with _opened(repository, state_folder, ref, limits) as shadow:
        begun = _begun(shadow, at, *_taken(shadow, ref, limits, begins=True))
        keep_file(noted_at(repository, ref), begun.noted)
        return begun


def _begun(shadow: Shadow, at: float, checkpoint: Checkpoint, look: _Look) -> Begun:
    """Begin a turn with that checkpoint: the ignored files are noted for its end."""
    left_out = {omitted.path: omitted.why for omitted in checkpoint.left_out}
    rules = look.rules()
    keep_file(shadow.file(_NOTED), rules)
    noted = {"at": at, "left_out": left_out, "rules": os.fsdecode(rules)}
    return Begun(checkpoint, json.dumps(noted).encode())


def end_and_begin(
    repository: GitRepository, state_folder: Path, ref: str, began: str, limits: CheckpointLimits | None = None
) -> Begun:
    """Take the checkpoint that ends a turn, as `end_turn` does, and note the ignored files: others may begin with it.

    `begin_with` has other turns do so. One look at the files ends one turn and begins the others.
    """
    at = time.time()
    with _opened(repository, state_folder, ref, limits) as shadow:
        since, file = _since(shadow, began)
        checkpoint, look = _taken(shadow, ref, limits, begins=True, since=since)
        file.unlink(missing_ok=True)
        return _begun(shadow, at, checkpoint, look)


def begin_with(repository: GitRepository, state_folder: Path, begun: Begun, ref: str) -> None:
    """Have a turn begin with a checkpoint that was taken for another one.

    No file is looked at. Raises `CheckpointFailed`.
    """
    check_ref(ref)
    with open_shadow(repository, state_folder, _LONGEST_S, files=False) as shadow:
        keep_file(noted_at(repository, ref), begun.noted)
        set_ref(shadow, ref, begun.checkpoint.tree)


def end_turn(
    repository: GitRepository, state_folder: Path, ref: str, began: str, limits: CheckpointLimits | None = None
) -> Checkpoint:
    """Take the checkpoint after a turn, whose first checkpoint has the ref `began`.

    A file that was unrecorded before the turn is not part of it: git ignored the file, or it was elsewhere.
    """
    with _opened(repository, state_folder, ref, limits) as shadow:
        since, file = _since(shadow, began)
        checkpoint, _ = _taken(shadow, ref, limits, since=since)
        file.unlink(missing_ok=True)
        return checkpoint


def _since(shadow: Shadow, began: str) -> tuple[_Since, Path]:
    """Read the note from the beginning of the turn with the ref `began`, and its file. Raises `CheckpointFailed`."""
    file = noted_at(shadow.repository, began)
    try:
        noted = json.loads(file.read_bytes())
    except (OSError, ValueError):
        raise CheckpointFailed(f"what was ignored before the turn in {shadow.repository.top} is not known") from None
    keep_file(shadow.file(_NOTED), os.fsencode(noted["rules"]))
    return _Since(noted["at"], noted["left_out"], began), file


def take_restored(
    repository: GitRepository, state_folder: Path, ref: str, base: str, paths: Mapping[str, TreeEntry | None]
) -> str:
    """Make the checkpoint `base` with `paths` as `restore` has just made them; `ref` keeps it.

    No file is read, so a simultaneous change by somebody else stays their change, and is not part of it. Raises
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
    also: Iterable[str] = (),
) -> tuple[Checkpoint, _Look]:
    also = frozenset(also)
    began, lost = time.monotonic(), not shadow.index.exists()
    recorded = _in_checkpoint(shadow, since.began) if since and lost else set[str]()
    look = _Look(shadow, limits or CheckpointLimits(), begins, since, after, recorded | also, also)
    try:
        tree = look.take()
        set_ref(shadow, ref, tree)
    except GitFailed:  # such as: the index names what is no longer there
        extra = _in_index(shadow) | (_in_checkpoint(shadow, since.began) if since else set())
        for left in (shadow.index, shadow.index.with_name(f"{shadow.index.name}.lock")):
            left.unlink(missing_ok=True)
        look = _Look(shadow, limits or CheckpointLimits(), begins, since, after, extra | also, also)
        tree = look.take()
        set_ref(shadow, ref, tree)
    largest = nlargest(_MOST_NAMED, ((size, path) for path, size in look.read.items()))
    left_out = tuple(sorted(look.left_out.values(), key=lambda one: one.path))
    seconds = time.monotonic() - began
    return Checkpoint(tree, left_out, seconds, tuple((path, size) for size, path in largest)), look


def _in_index(shadow: Shadow) -> set[str]:
    """List the paths of our index, as far as git can read it."""
    with suppress(GitFailed):
        return set(_paths(shadow.git("ls-files", "-z")))
    return set()


def _in_checkpoint(shadow: Shadow, ref: str) -> set[str]:
    """List the paths of the checkpoint of a ref, as far as git can read it."""
    with suppress(GitFailed):
        return set(_paths(shadow.git("ls-tree", "-r", "-z", "--name-only", ref)))
    return set()


class _Look(Struct):
    """One look at the files."""

    shadow: Shadow
    limits: CheckpointLimits
    begins: bool = False
    since: _Since | None = None
    after: str | None = None
    extra: set[str] = field(default_factory=set)
    """Paths for the index, although git may ignore them."""
    also: frozenset[str] = frozenset()
    """Paths among them that other checkpoints have, and that are therefore not secret."""
    earlier: set[str] = field(default_factory=set)
    memory: Memory = field(default_factory=Memory)
    """The memory of the last look, and in the end of this one."""
    forgotten: bool = False
    """Whether the last look kept nothing that still holds."""
    found: Walk = field(default_factory=Walk)
    unchanged: bool = False
    """Whether no folder has another file than at the last look."""
    lines: bytes | None = None
    """The lines of all files of rules, None if they exceed `MOST_RULES` bytes."""
    left_out: dict[str, LeftOut] = field(default_factory=dict)
    read: dict[str, int] = field(default_factory=dict)
    umask: int = field(default_factory=umask)
    submodules: set[str] = field(default_factory=set)
    users: set[str] | None = None

    def take(self) -> str:
        """Take the checkpoint, and return its id."""
        git, kept = self.shadow.git, self.shadow.file("memory")
        top = self.shadow.repository.top
        device = top.stat().st_dev
        memory = recalled(kept, self.shadow.index, device)
        self.forgotten = memory is None
        self.memory = memory or Memory(device=device, local=tells_all_changes(top))
        if self.after:
            self.earlier = {path for path, why, _ in notes_of(git, self.after).left_out if why == "earlier"}
        lacking = self._lacking()
        self._walk()
        output = own_output(top)
        for path in output:
            self._leave_out(path, "output")
        changed, gone = _differing(git(*_DIFFER))
        self.submodules = {path for path in self.memory.submodules if self._is_folder(path)}
        new = {*self._others(), *lacking} - self.extra
        new = {path for path in new if path.rstrip("/") not in self.submodules}
        if self.since:
            new = {path for path in new if self._look_at(path.rstrip("/"))}  # what is gone is no work of the turn
            new = {path for path in new if not self._was_there(path)}
            new -= self._older(new)
        nested = {path for path in new if path.endswith("/")}
        for path in nested - _around(nested, lacking):
            self._leave_out(path.rstrip("/"), "repository")
        unheld = (path for path in self.submodules if not self.memory.submodules[path])
        wanted = chain(changed, new - nested, unheld, self.extra, self._left_before())
        untracked = {*new, *changed, *self.extra} - self.also
        add = [
            path
            for path in dict.fromkeys(wanted)
            if self._can_be_read(path, is_submodule=path in self.submodules, untracked=path in untracked)
        ]
        held = {*changed, *(_paths(git("ls-files", "-z", "--", *output)) if output else ())}
        remove = [*gone, *(path for path in self.left_out if path in held)]
        self._write(add, remove)
        if add or remove or not self.memory.tree:
            self.memory.tree = git("write-tree").decode().strip()
        self._remember(add, remove, held)
        if remove or lacking.difference(add, self.left_out):
            self.memory.users = NOTHING  # restored files may be ignored, and only the user's index names them
        checkpoint = self._named(self.memory.tree)
        self.memory.index = stamp(self.shadow.index)
        self.memory.keep(kept)
        return checkpoint

    def _lacking(self) -> set[str]:
        """Find files that the user's git tracks and our index lacks. It asks nothing while the user's index stays."""
        state = stamp(self.shadow.repository.git_dir / "index")
        if state == self.memory.users and not self.forgotten:
            return set()
        self.memory.users, self.memory.ignored_by = state, ""
        ours = _in_index(self.shadow)
        entries = _paths(self.shadow.users_index("--stage"))
        links = sorted({entry.partition("\t")[2] for entry in entries if entry.startswith(SUBMODULE)})
        self.memory.submodules = {path: path in ours for path in links}
        lacking = {entry.partition("\t")[2] for entry in entries} - ours
        if around := _around(self.memory.others, lacking):
            self.memory.others = [path for path in self.memory.others if path not in around]
            self.memory.others_by = ""
        return lacking

    def _is_folder(self, path: str) -> bool:
        return bool((status := self._look_at(path)) and stat.S_ISDIR(status.st_mode))

    def rules(self) -> bytes:
        """Return the current rules for ignored files. Raises `CheckpointFailed` if they exceed `MOST_RULES` bytes."""
        if self.lines is None:
            sizes = self._rule_sizes()
            largest = max(sizes, key=lambda path: sizes[path])
            raise CheckpointFailed(
                f"the rules of what is ignored have {sum(sizes.values()):,} bytes, over {MOST_RULES:,}; "
                f"shorten {readable(largest)}"
            )
        return all_rules(self.lines, self.memory.ignored)

    def _rule_sizes(self) -> dict[str, int]:
        """Return the bytes of each file of rules that git reads."""
        ignored = {path.rstrip("/") for path in self.memory.ignored}  # the first walk of all was in these, too
        files = [path for path in self.found.rules if not is_within(path, ignored)]
        sizes = {_OTHER_RULES: self.shadow.excluded.stat().st_size}
        return sizes | {path: status.st_size for path in files if (status := self._look_at(path))}

    def _read_rules(self) -> bytes | None:
        """Read the files of rules; None if they have more than `MOST_RULES` bytes."""
        sizes = self._rule_sizes()
        if sum(sizes.values()) > MOST_RULES:
            return None
        others = self.shadow.excluded.read_bytes()
        return rules_of(self.shadow.repository.top, (path for path in sizes if path != _OTHER_RULES), others)

    def _walk(self) -> None:
        """Look at all folders except the ones that git ignored when a turn began last."""
        memory, before = self.memory, self.memory.walked
        self._walk_without(memory.ignored)
        special = [path for path in self.found.special if not (self.since and path.endswith(RULES))]
        if special:
            raise CheckpointFailed(f"{readable(special[0])} is no file, and git would wait for what it has; remove it")
        if self.begins and (self._rules_now() != memory.ignored_by or not self.found.folders.keys() <= before.keys()):
            self._look_for_ignored()
        told = bool(before) and all(folder.state for folder in before.values())
        told = told and not any(path.endswith("/") for path in memory.others)  # no folder tells if one is none any more
        self.unchanged = told and before == self.found.folders

    def _look_for_ignored(self) -> None:
        memory = self.memory
        listed = _paths(self.shadow.git(*_OTHERS, "--ignored", "--exclude-standard", "--directory"))
        ignored = self._matching([path for path in listed if path.endswith("/")])
        again = not set(memory.ignored) <= set(ignored)
        memory.ignored = ignored
        if again:
            self._walk_without(ignored)
        else:
            self.lines = self._read_rules()
        memory.ignored_by = self._rules_now()

    def _rules_now(self) -> str:
        """Return a digest that changes with any rule."""
        settings = sorted((name, value) for name, value in self.shadow.git.env.items() if name.startswith("GIT_CONFIG"))
        return sha256(repr((self.lines, settings)).encode()).hexdigest()

    def _walk_without(self, ignored: list[str]) -> None:
        memory = self.memory
        without = {path.rstrip("/") for path in ignored}
        repositories = {*memory.submodules, *(path.rstrip("/") for path in memory.others if path.endswith("/"))}
        last = memory.walked if memory.local else {}
        self.found = walk(self.shadow.repository.top, without, last, repositories)
        memory.walked = self.found.folders if memory.local else {}
        self.lines = self._read_rules()

    def _matching(self, folders: list[str]) -> list[str]:
        """Return the folders that a rule names, except where it only names all files in them."""
        return named(self.shadow.git, folders) if folders else []

    def _others(self) -> list[str]:
        """List the paths that are neither in the index nor ignored; a nested repository ends with a slash.

        Where no folder has changed since the last look, there is nothing new.
        """
        noted = self.shadow.file(_NOTED)
        same = not (self.since or self.after) or not noted.exists() or rules_in(noted.read_bytes()) == self.lines
        by_noted, memory = f"--exclude-from={noted}", self.memory
        if not same or not self.unchanged or memory.others_by != self._rules_now():
            ended = self.shadow.git.run(*_OTHERS, by_noted if self.since else "--exclude-standard")
            memory.closed = [os.fsdecode(name) for name in _CLOSED.findall(ended.err)]
            memory.others = _paths(ended.out)
            memory.others_by = self._rules_now() if same else ""
        for path in memory.closed:
            self._leave_out(path, "unreadable")
        if not self.after or not noted.exists():
            return memory.others
        wanted = memory.others if same else set(_paths(self.shadow.git(*_OTHERS, by_noted)))
        return [path for path in memory.others if path in wanted and not self._is_earlier(path)]

    def _is_earlier(self, path: str) -> bool:
        """Whether the turn before moved a file to this path; so it is left out again."""
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
        """Return the new files that existed when the turn began, ignored or elsewhere, unless it moved them."""
        assert self.since
        files = sorted(path for path in new if not path.endswith("/"))
        inodes = {path: inode for path, (inode, born) in _births(self.shadow, files).items() if born < self.since.at}
        recorded = _inodes(self.shadow) if inodes else ()
        older = {path for path, inode in inodes.items() if inode & _INODE_BITS not in recorded}
        for path in older:
            self._leave_out(path, "earlier")
        return older

    def _left_before(self) -> list[str]:
        """List the paths that the last look left out, and paths that may be neither in the index nor listed."""
        try:
            return _paths(self.shadow.file("left").read_bytes())
        except OSError:
            return []

    def _look_at(self, path: str) -> os.stat_result | None:
        """Return the status of the file at a path that no symbolic link leads to; None without one."""
        top, folder = self.shadow.repository.top, path.rpartition("/")[0]
        if folder and not self.found.has(folder):
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
        """Whether the path goes into the tree; a path that exists and does not is listed with its reason."""
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
        return "private" if private and not self._is_tracked(path) else None

    def _is_tracked(self, path: str) -> bool:
        """Whether the user's git has the path. A tracked file is not secret."""
        if self.users is None:
            self.users = set(_paths(self.shadow.users_index()))
        return path in self.users

    def _write(self, add: list[str], remove: list[str]) -> None:
        keep_file(self.shadow.file("left"), _listed(self.left_out))
        if remove:
            self.shadow.git("update-index", "--force-remove", "-z", "--stdin", given=_listed(remove))
        for _ in range(_MOST_TRIES):
            if not add:
                return
            try:
                self._add(add)
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
        self._add(add)

    def _add(self, paths: list[str]) -> None:
        """Update the index to the files as they are."""
        git = self._packing() if len(paths) >= _MANY else self.shadow.git
        for at in range(0, len(paths), _AT_ONCE):
            git(*_ADD, given=_listed(paths[at : at + _AT_ONCE]))

    def _packing(self) -> GitProgram:
        """Return a git that writes new files into one pack, which takes less time and a tenth of the disk."""
        git = self.shadow.git
        number = int(git.env["GIT_CONFIG_COUNT"])
        setting = {
            "GIT_CONFIG_COUNT": str(number + 1),
            f"GIT_CONFIG_KEY_{number}": "core.bigFileThreshold",
            f"GIT_CONFIG_VALUE_{number}": "1",
        }
        return replace(git, env={**git.env, **setting})

    def _named(self, tree: str) -> str:
        top = self.shadow.repository.top
        modes = {path: bits for path in self.memory.folders if (bits := self._bits_of_folder(path)) is not None}
        inside = (LeftOut(path, None, "submodule", stamp_of(f"{top}/{path}")) for path in sorted(self.submodules))
        left_out = (*self.left_out.values(), *(submodule for submodule in inside if submodule.stamp))
        message = message_of(notes(self.memory.permissions, modes, left_out))
        digest = sha256(tree.encode() + message).hexdigest()
        if digest != self.memory.noted:
            self.memory.checkpoint, self.memory.noted = store_notes(self.shadow.git, tree, message), digest
        return self.memory.checkpoint

    def _remember(self, add: list[str], remove: list[str], held: set[str]) -> None:
        """Update the memory of the index's files to its current ones; `held` are files that it had before.

        A change of permissions changes the ctime that the index has, so they hold where git finds no difference. They
        are read after the index was written, and again for a while: two changes may have one ctime.
        """
        memory, gone, new = self.memory, set(remove), {path for path in add if path not in held}
        fresh, memory.again = {*add, *memory.again} - gone, []
        files = _paths(self.shadow.git("ls-files", "-z")) if self.forgotten or gone or new else []
        if files or gone:
            memory.folders = folders_of_files(files)
        permissions = memory.permissions
        if not self.forgotten:
            for path in (fresh - new) | gone:
                permissions.remove(path)
            for path in sorted(fresh):
                permissions.put(path, self._bits_of(path))
        if permissions.most not in permissions.usual().values():
            files = files or _paths(self.shadow.git("ls-files", "-z"))
            memory.again = []
            memory.permissions = Permissions.of({path: self._bits_of(path) for path in files})
        memory.submodules |= {path: path in fresh for path in gone.union(add) & memory.submodules.keys()}
        around = _around(memory.others, new)
        memory.others = [path for path in memory.others if path not in fresh and path not in around]
        if gone or around:
            memory.others_by = ""
        ignored = {path.rstrip("/") for path in memory.ignored}
        if any(is_within(path, ignored) for path in new):
            memory.ignored_by = ""  # git ignores no folder with files of its index

    def _bits_of_folder(self, path: str) -> int | None:
        if walked := self.found.folders.get(path):
            return walked.bits if self.found.has(path) else None
        status = self._look_at(path)  # git ignores it, and has files of it
        return stat.S_IMODE(status.st_mode) if status and stat.S_ISDIR(status.st_mode) else None

    def _bits_of(self, path: str) -> int | None:
        """Return the permissions of a file; None if it is not a regular file."""
        status = self._look_at(path)
        if status is None or not stat.S_ISREG(status.st_mode):
            return None
        if status.st_ctime > time.time() - SOON_S:
            self.memory.again.append(path)
        return stat.S_IMODE(status.st_mode)


def _around(repositories: Iterable[str], files: Iterable[str]) -> set[str]:
    """Return the repositories (with a slash at the end) whose files belong in our index: git looks into these."""
    prefixes = tuple(path for path in repositories if path.endswith("/"))
    inside = [path for path in files if path.startswith(prefixes)] if prefixes else []
    return {prefix for prefix in prefixes if any(path.startswith(prefix) for path in inside)}


def _differing(printed: bytes) -> tuple[list[str], list[str]]:
    """List the paths that differ from the index, and the paths that are gone."""
    fields = _paths(printed)
    pairs = [(entry[-1:], path) for entry, path in zip(fields[::2], fields[1::2], strict=True)]
    return [path for sign, path in pairs if sign != "D"], [path for sign, path in pairs if sign == "D"]


def _births(shadow: Shadow, paths: list[str]) -> dict[str, tuple[int, float]]:
    """Return the inode of each file, and when it was made, or written where the file system does not tell."""
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


def _inodes(shadow: Shadow) -> set[int]:
    """Return the inodes of the files of our index, as far as git tells them: `ls-files --debug` (2.39) has them."""
    return {int(inode) for inode in _INODE.findall(shadow.git("ls-files", "-z", "--debug"))}


def _paths(printed: bytes) -> list[str]:
    return os.fsdecode(printed).split("\0")[:-1]


def _listed(paths: Iterable[str]) -> bytes:
    return b"".join(os.fsencode(path) + b"\0" for path in paths)


def _as_told(path: str) -> bytes:
    """Encode a path as git writes it in an error."""
    return bytes(byte if byte in b"\t\n" or (byte >= 32 and byte != 127) else ord("?") for byte in os.fsencode(path))
