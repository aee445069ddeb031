"""Puts files back as checkpoints had them, and destroys nothing that no checkpoint has.

Before a file is replaced or removed, its bytes at that moment are in a checkpoint that stays, or they are kept in a
place that the person is told. So no file is compared first and then replaced: the new file is written aside, both
exchange their names in one step, and the old file is compared. If it differs from the checkpoint, it goes back, and so
does all else. The old file stays aside until the end and is compared again: whoever has it open writes into it.

A journal has every path before the first step. A process that finds the journal of a killed one returns or keeps the
files that are aside. Folders are opened one below the other without following symbolic links, so that nothing outside
the work tree is written.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import secrets
import signal
import stat
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Self

from msgspec import Struct, field

from teamchat.core.checkpoint.compare import object_reader
from teamchat.core.checkpoint.paths import is_safe, readable
from teamchat.core.checkpoint.shadow import keep_file, open_shadow
from teamchat.core.checkpoint.values import EXECUTABLE, LINK, SUBMODULE, GitRepository, TreeEntry
from teamchat.core.errors import CheckpointFailed
from teamchat.core.files.exchange import BETWEEN, exchange, move
from teamchat.core.text.clean import printable
from teamchat.core.text.commands import command_of
from teamchat.runners.untrusted.regular_files import read_regular

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LOOK = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MOST_NAMED = 3
_MOST_TRIES = 100
_LONGEST_S = 900.0
_PIECE = 1 << 20
RESTORING, KEPT = "restoring", "kept"
_WRITTEN = "-new"  # ends the name of a file that may be incomplete
_STATE, _TOP, _BESIDE = range(3)  # places for what is put aside: the state folder, the work tree, the file's folder


class Restore(Struct, frozen=True):
    """The files to put back in one work tree."""

    repository: GitRepository
    known: Mapping[str, TreeEntry | None]
    """The entries that a checkpoint which stays has at these paths."""
    wanted: Mapping[str, TreeEntry | None]
    """The entry that each path becomes; None deletes it."""
    keep: Collection[str] = ()
    """The paths at which anything may be: it is kept."""


class KeptFile(Struct, frozen=True):
    """Something that no checkpoint has, or that somebody still writes to: it was at `path`, and is at `place` now."""

    top: Path
    path: str
    place: Path

    @property
    def command(self) -> str:
        """The command that brings it back."""
        return command_of("mv", str(self.place), str(self.top / self.path))


class FilesChanged(CheckpointFailed):
    """Somebody changed `paths` meanwhile: everything is in its former state, with their changes.

    `kept` is what could not go back.
    """

    def __init__(self, paths: Sequence[str], kept: Sequence[KeptFile] = ()) -> None:
        self.paths, self.kept = tuple(paths), tuple(kept)
        named = printable(", ".join(readable(path) for path in paths))
        super().__init__(f"nothing was done: {named} changed meanwhile, by somebody else", kept_commands(kept))


def kept_commands(kept: Sequence[KeptFile]) -> str | None:
    """List the commands that bring the kept files back; None where no name is fit for a terminal."""
    return "\n".join(file.command for file in kept if file.command.isprintable()) or None


def restore(state_folder: Path, parts: Sequence[Restore], *, force: bool = False) -> tuple[KeptFile, ...]:
    """Give every path its planned content: bytes, permissions, symbolic link. Returns what was kept.

    A folder that this leaves empty goes. A submodule stays as it is. Files neither known nor wanted are kept with
    `force`; without it nothing is done, and `FilesChanged` is raised.

    A path that cannot be written stays unchanged and is named in the `CheckpointFailed` that is raised at the end, when
    all else is done.
    """
    recovered = recover(state_folder)
    begun: list[_Work] = []
    with contextlib.ExitStack() as ends:
        try:
            for part in parts:
                with open_shadow(part.repository, state_folder, _LONGEST_S):
                    work = _Work.begin(state_folder, part, force=force)
                    ends.callback(work.close)
                    begun.append(work)
                    work.run()
            for work in begun:
                work.look_again()
        except _Changed as changed:
            paths = [changed.path, *(path for work in reversed(begun) for path in work.take_back())]
            kept_files = (*recovered, *(file for work in begun for file in work.end()))
            raise FilesChanged(list(dict.fromkeys(paths)), kept_files) from None
        kept_files = (*recovered, *(file for work in begun for file in work.end()))
    if failed := {path: why for work in begun for path, why in work.failed.items()}:
        opening = [command for work in begun for command in _opening(work.top, work.failed)]
        raise CheckpointFailed(_told(failed), "\n".join(filter(None, [*opening, kept_commands(kept_files)])) or None)
    return kept_files


def _opening(top: Path, failed: Iterable[str]) -> list[str]:
    """List the commands that let the owner of folders write there, after which failed paths can be tried again."""
    folders = [next(folder for folder in (top / path).parents if folder.is_dir()) for path in failed]
    closed = [folder for folder in dict.fromkeys(folders) if not os.access(folder, os.W_OK | os.X_OK)]
    own = [folder for folder in closed[:_MOST_NAMED] if folder.stat().st_uid == os.geteuid()]
    return [command for folder in own if (command := command_of("chmod", "u+rwx", str(folder))).isprintable()]


def _told(failed: Mapping[str, str]) -> str:
    named = ", ".join(f"{printable(path)} ({why})" for path, why in list(failed.items())[:_MOST_NAMED])
    more = len(failed) - _MOST_NAMED
    return f"not put back: {named}{f' and {more} more' if more > 0 else ''}; everything else is"


def recover(state_folder: Path) -> tuple[KeptFile, ...]:
    """Complete the work of killed processes: files aside that no checkpoint has go back to their places, or are kept.

    Raises `CheckpointFailed`.
    """
    try:
        names = sorted(os.listdir(state_folder / RESTORING))  # noqa: PTH208 (a list is quicker)
    except FileNotFoundError:
        return ()
    kept_files: list[KeptFile] = []
    for name in names:
        try:
            if work := _Work.left_behind(state_folder, name):
                with contextlib.closing(work):
                    kept_files += work.complete()
        except OSError as error:
            raise CheckpointFailed(f"{state_folder / RESTORING / name} cannot be completed: {error}") from error
    return tuple(kept_files)


def follow(state_folder: Path, moved: Callable[[str], str]) -> None:
    """Have `recover` work where the work trees are now. The caller knows that no process restores. Raises `OSError`."""
    for journal in (state_folder / RESTORING).glob("*/journal"):
        with contextlib.suppress(ValueError, TypeError, KeyError):  # `recover` says that it makes no sense
            fields = json.loads(read_regular(journal))
            keep_file(journal, json.dumps({**fields, "top": moved(fields["top"])}).encode())


class _Changed(Exception):
    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(path)


class _Step(Struct):
    """A path. `place` tells where something of it is aside; `moved` what was done: it was taken out, made, or both."""

    number: int
    path: str
    known: TreeEntry | None
    wanted: TreeEntry | None
    place: int | None = None
    moved: str = ""
    keep: bool = False


class _Work(Struct):
    """Puts files back in one work tree. `token` names all that it puts aside, `lock` is held until it ends."""

    state: Path
    top: Path
    form: str
    token: str
    lock: int
    steps: list[_Step]
    force: bool
    repository: GitRepository | None = None
    keep: Collection[str] = ()
    asides: dict[int, int] = field(default_factory=dict)
    made: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    first: int = _STATE

    @classmethod
    def begin(cls, state: Path, part: Restore, *, force: bool) -> Self:
        """Write the journal. Raises `CheckpointFailed`."""
        paths = sorted(path for path, entry in part.wanted.items() if not (entry and entry.mode == SUBMODULE))
        steps = [
            _Step(number, path, part.known.get(path), part.wanted[path], keep=path in part.keep)
            for number, path in enumerate(paths)
        ]
        token = time.strftime("%Y%m%d-%H%M%S-", time.gmtime()) + secrets.token_hex(4)
        folder = state / RESTORING / token
        fields = {
            "top": os.fspath(part.repository.top),
            "form": part.repository.object_format,
            "force": force,
            "steps": [[step.path, _fields(step.known), _fields(step.wanted), step.keep] for step in steps],
        }
        try:
            folder.mkdir(mode=0o700, parents=True)
            lock = os.open(folder / "journal.new", _NEW, 0o600)
            fcntl.flock(lock, fcntl.LOCK_EX)
            with os.fdopen(os.dup(lock), "wb") as file:
                file.write(json.dumps(fields).encode())
            os.fsync(lock)
            os.rename(folder / "journal.new", folder / "journal")  # noqa: PTH104 (beside the other calls of `os`)
            aside = os.open(folder, _FOLDER)
            os.fsync(aside)
        except OSError as error:
            raise CheckpointFailed(f"the folder {folder} cannot be written: {error.strerror}") from error
        top, form = part.repository.top, part.repository.object_format
        return cls(state, top, form, token, lock, steps, force, part.repository, asides={_STATE: aside})

    @classmethod
    def left_behind(cls, state: Path, name: str) -> Self | None:
        """Read the journal of a killed process; None while it lives. Without a journal it has done nothing yet."""
        folder = state / RESTORING / name
        try:
            lock = os.open(folder / "journal", _LOOK)
        except FileNotFoundError:
            with contextlib.suppress(OSError):
                if time.time() - folder.stat().st_mtime > _LONGEST_S:  # else it may be about to write it
                    (folder / "journal.new").unlink(missing_ok=True)
                    folder.rmdir()
            return None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fields = json.loads(read_regular(folder / "journal"))
            steps = [
                _Step(number, str(path), _entry(known), _entry(wanted), keep=bool(keep))
                for number, (path, known, wanted, keep) in enumerate(fields["steps"])
            ]
            top, form, force = Path(fields["top"]), str(fields["form"]), bool(fields["force"])
        except (BlockingIOError, FileNotFoundError):  # its process is alive, or another one has completed it
            os.close(lock)
            return None
        except (ValueError, TypeError, KeyError) as error:
            os.close(lock)
            raise OSError(errno.EINVAL, f"its journal makes no sense: {error}") from error
        return cls(state, top, form, name, lock, steps, force, asides={_STATE: os.open(folder, _FOLDER)})

    def close(self) -> None:
        for folder in self.asides.values():
            os.close(folder)
        os.close(self.lock)

    # doing it

    def run(self) -> None:
        """Do all steps. Raises `_Changed` at the first path that is not as known."""
        for step in self.steps:
            if not is_safe(step.path):
                self.failed[step.path] = "git keeps that name for itself"
        gone = [step for step in reversed(self.steps) if step.wanted is None and step.path not in self.failed]
        back = [step for step in self.steps if step.wanted is not None and step.path not in self.failed]
        with _Folders(self.top) as folders:
            for step in gone:
                with self._noting(step):
                    self._take_out(folders, step)
        with _Folders(self.top) as folders:
            assert self.repository
            for step, content in _contents(self.repository, back):
                if content is None:
                    self.failed[step.path] = "its content is no longer there"
                    continue
                with self._noting(step):
                    self._put(folders, step, content)

    @contextlib.contextmanager
    def _noting(self, step: _Step) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.failed[step.path] = error.strerror or str(error)

    def _take_out(self, folders: _Folders, step: _Step) -> None:
        """Put aside the file at the path; a folder in its place is another path's."""
        parent, _, name = step.path.rpartition("/")
        try:
            folder = folders.get(parent)
            if stat.S_ISDIR(os.lstat(name, dir_fd=folder).st_mode):
                return
        except (FileNotFoundError, NotADirectoryError):
            return
        for place in range(self.first, _BESIDE + 1):
            at, new = self._aside(place, step, folder)
            try:
                move(folder, name, at, new)
            except FileNotFoundError:
                return
            except OSError as error:
                if error.errno != errno.EXDEV or place == _BESIDE:
                    raise
                continue
            step.place, step.moved = place, "out"
            break
        if not self._may_go(at, new, step):
            raise _Changed(step.path)

    def _put(self, folders: _Folders, step: _Step, content: bytes) -> None:
        """Exchange the file at the path with a new one, or move the new file there if there is none."""
        parent, _, name = step.path.rpartition("/")
        folder = folders.get(parent, self.made)
        there = _status(folder, name)
        if there and _is(folder, name, step.wanted, self.form, exact=True):
            return
        if there and stat.S_ISDIR(there.st_mode) and not (self._lets(step) or _is_hollow(folder, name)):
            raise OSError(errno.ENOTEMPTY, "a folder with other files is in its place")
        for place in range(self.first, _BESIDE + 1):
            at, new = self._aside(place, step, folder)
            assert step.wanted
            _write(at, new, step.wanted, content, there)
            try:
                step.moved = _into_place(at, new, folder, name)
            except OSError as error:
                os.unlink(new, dir_fd=at)
                if error.errno != errno.EXDEV or place == _BESIDE:
                    raise
                continue
            step.place = place
            break
        if step.moved == "made":
            if step.known and not self._lets(step):  # somebody deleted it
                raise _Changed(step.path)
        elif not self._may_go(at, new, step):
            raise _Changed(step.path)

    def _may_go(self, folder: int, name: str, step: _Step) -> bool:
        """Whether what came out is known, or may be kept."""
        if _is(folder, name, step.known, self.form, exact=True) or self._lets(step):
            return True
        return (step.wanted is not None and step.known is None) and _is_hollow(folder, name)

    def _lets(self, step: _Step) -> bool:
        return self.force or step.keep

    def look_again(self) -> None:
        """Raise `_Changed` if somebody wrote into a file that is aside."""
        for step in self.steps:
            if step.moved in ("out", "both"):
                assert step.place is not None
                with self._at(step.place, step) as (at, name):
                    if not self._may_go(at, name, step):
                        raise _Changed(step.path)

    # taking it back

    def take_back(self) -> list[str]:
        """Put back all that was taken out. Returns the paths that somebody changed since: these stay."""
        changed = []
        for step in reversed(self.steps):
            if step.moved and step.place is not None:
                try:
                    changed += self._back(step)
                except OSError:  # then `end` keeps it
                    changed.append(step.path)
        for path in reversed(self.made):
            with _Folders(self.top) as folders:
                folders.remove_empty(path)
        return changed

    def _back(self, step: _Step) -> list[str]:
        name = step.path.rpartition("/")[2]
        assert step.place is not None
        with self._folder(step) as folder, self._at(step.place, step) as (at, new):
            if step.moved == "out":
                try:
                    move(at, new, folder, name)
                except FileExistsError:  # somebody made a new one
                    return [step.path]
            elif step.moved == "made":
                with contextlib.suppress(FileNotFoundError):
                    move(folder, name, at, new)
                    if not _is(at, new, step.wanted, self.form):
                        move(at, new, folder, name)
                        return [step.path]
            elif _into_place(at, new, folder, name) == "both" and not _is(at, new, step.wanted, self.form):
                exchange(at, new, folder, name)  # somebody changed what was put in place: that stays
                return [step.path]
        return []

    # ending

    def end(self) -> list[KeptFile]:
        """Remove files that are aside and in a checkpoint, keep the rest, and forget the journal."""
        kept_files: list[KeptFile] = []
        for step in self.steps:
            for place in self._places(step):
                kept_files += self._dispose(step, place)
        with _Folders(self.top) as folders:
            was_out = [step for step in self.steps if step.moved == "out" or self.repository is None]
            gone = [step.path for step in was_out if step.wanted is None]
            for parent in sorted({parent for path in gone for parent in _parents(path)}, reverse=True):
                folders.remove_empty(parent)
        with contextlib.suppress(OSError):
            os.rmdir(self.top / f".teamchat-{self.token}")  # noqa: PTH106
        folder = self.state / RESTORING / self.token
        (folder / "journal").unlink()
        with contextlib.suppress(OSError):
            folder.rmdir()
            folder.parent.rmdir()
        return kept_files

    def _places(self, step: _Step) -> Sequence[int]:
        """Return the places where something of the step may be aside: a killed process does not tell."""
        if self.repository is None:
            return range(_BESIDE + 1)
        return () if step.place is None else (step.place,)

    def complete(self) -> list[KeptFile]:
        """Return files that a killed process took out and no checkpoint has to their places, or keep them."""
        for step in self.steps:
            for place in self._places(step):
                with contextlib.suppress(OSError), self._at(place, step) as (at, new):
                    for aside in (f"{new}{BETWEEN}", new):  # the first by a process killed in the steps of an exchange
                        if _status(at, aside):
                            with self._folder(step) as folder:
                                self._settle(at, aside, folder, step)
        return self.end()

    def _settle(self, at: int, aside: str, folder: int, step: _Step) -> None:
        name = step.path.rpartition("/")[2]
        ours = _is(at, aside, step.wanted, self.form)
        known = _is(at, aside, step.known, self.form, exact=True)
        if ours or (known and (step.wanted is None or _status(folder, name))) or self._lets(step):
            return
        if _is_hollow(at, aside):
            return
        if _status(folder, name) is None:
            move(at, aside, folder, name)
        elif not known and _is(folder, name, step.wanted, self.form):
            exchange(at, aside, folder, name)
            if not _is(at, aside, step.wanted, self.form):
                exchange(at, aside, folder, name)

    def _dispose(self, step: _Step, place: int) -> Iterator[KeptFile]:
        try:
            with self._at(place, step) as (at, new):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(f"{new}{_WRITTEN}", dir_fd=at)
                for aside in (new, f"{new}{BETWEEN}"):
                    if _status(at, aside) is None:
                        continue
                    if is_spare(at, aside, (step.known, step.wanted), self.form):
                        os.unlink(aside, dir_fd=at)
                    elif _is_hollow(at, aside):
                        _remove_hollow(at, aside)
                    else:
                        yield self._keep(at, aside, step, place)
        except (FileNotFoundError, NotADirectoryError):
            return

    def _keep(self, at: int, aside: str, step: _Step, place: int) -> KeptFile:
        if place == _BESIDE:
            home = self.top / step.path.rpartition("/")[0]
        else:
            home = self.state / KEPT / self.token if place == _STATE else self.top / f".teamchat-kept-{self.token}"
        wanted = home / (f".teamchat-kept-{self.token}-{step.number}" if place == _BESIDE else step.path)
        wanted.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = os.open(wanted.parent, _FOLDER)
        try:
            for number in range(_MOST_TRIES):
                name = f"{wanted.name}-{number + 1}" if number else wanted.name
                with contextlib.suppress(FileExistsError):
                    move(at, aside, folder, name)
                    return KeptFile(self.top, step.path, wanted.parent / name)
        finally:
            os.close(folder)
        raise OSError(errno.EEXIST, "there is no free name to keep it")

    # what is aside

    def _aside(self, place: int, step: _Step, folder: int) -> tuple[int, str]:
        """Return the folder and the name under which something of the step is aside; `folder` is that of the path."""
        if place == _BESIDE:
            return folder, f".teamchat-{self.token}-{step.number}"
        if place == _TOP and _TOP not in self.asides:
            name = self.top / f".teamchat-{self.token}"
            with contextlib.suppress(FileExistsError):
                name.mkdir(mode=0o700)
            self.asides[_TOP] = os.open(name, _FOLDER)
            self.first = _TOP
        return self.asides[place], str(step.number)

    @contextlib.contextmanager
    def _at(self, place: int, step: _Step) -> Iterator[tuple[int, str]]:
        """Open the place where something is aside. Raises `OSError` where that folder is not there."""
        if place == _TOP and _TOP not in self.asides:
            self.asides[_TOP] = os.open(self.top / f".teamchat-{self.token}", _FOLDER)
        if place != _BESIDE:
            yield self._aside(place, step, -1)
            return
        with _Folders(self.top) as folders:
            yield self._aside(place, step, folders.get(step.path.rpartition("/")[0]))

    @contextlib.contextmanager
    def _folder(self, step: _Step) -> Iterator[int]:
        """Open the folder of a path, and make it if it is missing."""
        with _Folders(self.top) as folders:
            yield folders.get(step.path.rpartition("/")[0], [])


def _into_place(at: int, new: str, folder: int, name: str) -> str:
    """Bring `new` to its name: "made" where nothing was there, "both" where something came out."""
    for _ in range(_MOST_TRIES):
        with contextlib.suppress(FileExistsError):
            move(at, new, folder, name)
            return "made"
        with contextlib.suppress(FileNotFoundError):
            exchange(at, new, folder, name)
            return "both"
    raise OSError(errno.EBUSY, "it comes and goes")


def _fields(entry: TreeEntry | None) -> list[object] | None:
    return [getattr(entry, name) for name in TreeEntry.__struct_fields__] if entry else None


def _entry(fields: Sequence[Any] | None) -> TreeEntry | None:
    return TreeEntry(*fields) if fields else None


class _Folders:
    """Folders of the work tree, opened without following symbolic links. The last one stays open with its parents."""

    def __init__(self, top: Path) -> None:
        self._open: list[tuple[str, int]] = [("", os.open(top, _FOLDER & ~os.O_NOFOLLOW))]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        while self._open:
            os.close(self._open.pop()[1])

    def get(self, path: str, made: list[str] | None = None) -> int:
        """Open the folder `path`, "" for the top; with `made` missing ones are made and noted there.

        Raises `OSError`, also where it is reached through a symbolic link.
        """
        parts = path.split("/") if path else []
        same = 0
        while same < len(parts) and same + 1 < len(self._open) and self._open[same + 1][0] == parts[same]:
            same += 1
        while len(self._open) > same + 1:
            os.close(self._open.pop()[1])
        for number, part in enumerate(parts[same:], same):
            noted = None if made is None else (made, "/".join(parts[: number + 1]))
            self._open.append((part, _enter(part, self._open[-1][1], noted)))
        return self._open[-1][1]

    def remove_empty(self, path: str) -> None:
        """Remove the folder if nothing is in it."""
        parent, _, name = path.rpartition("/")
        with contextlib.suppress(OSError):
            os.rmdir(name, dir_fd=self.get(parent))


def _enter(name: str, folder: int, noted: tuple[list[str], str] | None) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    except FileNotFoundError:
        if noted is None:
            raise
        os.mkdir(name, dir_fd=folder)
        noted[0].append(noted[1])
        return os.open(name, _FOLDER, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise OSError(errno.ENOTDIR, "a file or a symbolic link is where its folder was") from error
        raise


def _parents(path: str) -> Iterator[str]:
    while path := path.rpartition("/")[0]:
        yield path


def _status(folder: int, name: str) -> os.stat_result | None:
    try:
        return os.lstat(name, dir_fd=folder)
    except FileNotFoundError:
        return None


def _is(folder: int, name: str, entry: TreeEntry | None, form: str, *, exact: bool = False) -> bool:
    """Whether the entry is at a name, by its bytes; with `exact` also by its permissions."""
    status = _status(folder, name)
    if entry is None or status is None:
        return False
    if stat.S_ISLNK(status.st_mode):
        link = os.fsencode(os.readlink(name, dir_fd=folder))
        return entry.mode == LINK and _blob(link, form) == entry.blob
    if not stat.S_ISREG(status.st_mode) or entry.mode == LINK or (exact and not _has_mode(status.st_mode, entry)):
        return False
    try:
        file = os.open(name, _LOOK, dir_fd=folder)
    except OSError:
        return False
    with os.fdopen(file, "rb") as opened:
        return _blob_of(opened, form) == entry.blob


def _has_mode(mode: int, entry: TreeEntry) -> bool:
    bits = entry.bits
    return bool(mode & stat.S_IXUSR) == (entry.mode == EXECUTABLE) and bits in (None, stat.S_IMODE(mode))


def _blob(content: bytes, form: str) -> str:
    return hashlib.new(form, b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _blob_of(file: IO[bytes], form: str) -> str | None:
    """Return git's name for the content; None where it changes while it is read."""
    size = os.fstat(file.fileno()).st_size
    digest, read = hashlib.new(form, b"blob %d\0" % size, usedforsecurity=False), 0
    while read <= size and (piece := file.read(_PIECE)):
        digest.update(piece)
        read += len(piece)
    return digest.hexdigest() if read == size else None


def is_spare(folder: int, name: str, entries: Sequence[TreeEntry | None], form: str) -> bool:
    """Whether a checkpoint has the file at that name, and nobody can still write to it."""
    status = _status(folder, name)
    if status is None or not stat.S_ISREG(status.st_mode):
        return any(_is(folder, name, entry, form) for entry in entries)
    try:
        file = os.open(name, _LOOK, dir_fd=folder)
    except OSError:
        return False
    try:
        return not _is_written(file) and any(_is(folder, name, entry, form) for entry in entries)
    finally:
        os.close(file)


def _is_written(file: int) -> bool:
    """Whether anybody has the file open for writing: then Linux grants no read lease. False where nobody knows."""
    if not hasattr(fcntl, "F_SETLEASE"):
        return False
    with contextlib.suppress(OSError):
        fcntl.fcntl(file, fcntl.F_SETSIG, signal.SIGURG)  # the signal does nothing; SIGIO would end us
        try:
            fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        except BlockingIOError:
            return True
    return False  # the lease ends with the descriptor


def _is_hollow(folder: int, name: str) -> bool:
    """Whether the name is a folder that holds no file: git knows of no folders."""
    try:
        inner = os.open(name, _FOLDER, dir_fd=folder)
    except OSError:
        return False
    try:
        return all(_is_hollow(inner, child) for child in os.listdir(inner))  # noqa: PTH208 (no descriptor there)
    finally:
        os.close(inner)


def _remove_hollow(folder: int, name: str) -> None:
    inner = os.open(name, _FOLDER, dir_fd=folder)
    try:
        for child in os.listdir(inner):  # noqa: PTH208
            _remove_hollow(inner, child)
    finally:
        os.close(inner)
    os.rmdir(name, dir_fd=folder)


def _write(folder: int, name: str, entry: TreeEntry, content: bytes, there: os.stat_result | None) -> None:
    """Write a new file, with the permission bits of the one that it replaces unless the checkpoint has its own."""
    written = f"{name}{_WRITTEN}"
    if entry.mode == LINK:
        os.symlink(content, os.fsencode(name), dir_fd=folder)
        return
    executable = entry.mode == EXECUTABLE
    bits = entry.bits
    if bits is None and there and stat.S_ISREG(there.st_mode) and there.st_mode & stat.S_IRUSR:
        readers = stat.S_IMODE(there.st_mode) & 0o666
        bits = readers | (readers & 0o444) >> 2 if executable else readers
    file = os.open(written, _NEW, 0o777 if executable else 0o666, dir_fd=folder)
    try:
        with os.fdopen(file, "wb") as opened:
            opened.write(content)
            if bits is not None:
                os.fchmod(file, bits & 0o7777)
    except OSError:
        os.unlink(written, dir_fd=folder)
        raise
    os.rename(written, name, src_dir_fd=folder, dst_dir_fd=folder)


def _contents(repository: GitRepository, steps: Sequence[_Step]) -> Iterator[tuple[_Step, bytes | None]]:
    """Yield every step with the content for its path; None where no checkpoint has it any more, or it is damaged."""
    if not steps:
        return
    wanted = b"".join(f"{step.wanted.blob}\n".encode() for step in steps if step.wanted)
    with object_reader(repository) as git, git.printing("cat-file", "--batch", "--buffer", given=wanted) as program:
        for step in steps:
            yield step, _content(program.out, step.wanted, repository.object_format)


def _content(printed: IO[bytes], entry: TreeEntry | None, form: str) -> bytes | None:
    head = printed.readline().split(b" ")
    if len(head) != 3:
        return None
    content = printed.read(int(head[2]))
    printed.read(1)
    return content if entry and _blob(content, form) == entry.blob else None
