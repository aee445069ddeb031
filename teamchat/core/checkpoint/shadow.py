"""A GIT_DIR of teamchat's own for a work tree, with an index and a configuration that nobody else writes.

The objects and the refs are the repository's, by their paths; its configuration, hooks and attributes are not read, so
that no list of dangerous settings has to be complete. Attributes of our own turn every conversion off, for bytes to
stay bytes. The index lives on from one checkpoint to the next: git then knows by `lstat` alone which files changed, and
by a folder's time which ones have no new files. It is split, so that git writes only what changed in it.

HEAD is a commit, in an object folder of our own, of the tree that the last checkpoint made. So `git status`, the one
command that looks at files with several threads and remembers folders, says in one process what changed since then.
The index may be behind HEAD by a few files (`edited.py`), which `git status` tells as well.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from teamchat.core.checkpoint.git import GitFailed, GitProgram, git_environment
from teamchat.core.checkpoint.loose import write_object
from teamchat.core.checkpoint.values import GitRepository
from teamchat.core.errors import CheckpointFailed
from teamchat.digests import sha256
from teamchat.patterns import regex
from teamchat.runners.regular_files import read_regular

_CONFIG = """[core]
	repositoryformatversion = 1
	bare = false
	fileMode = true
	symlinks = true
	autocrlf = false
	fsmonitor = false
	untrackedCache = true
	splitIndex = true
	hooksPath = /dev/null
	attributesFile = /dev/null
	logAllRefUpdates = false
[splitIndex]
	sharedIndexExpire = 1.day.ago
[gc]
	auto = 0
[maintenance]
	auto = false
[status]
	showUntrackedFiles = all
	renames = false
"""
_ATTRIBUTES = "* -text !eol !crlf !ident !filter !working-tree-encoding !diff !merge\n"
_UNBORN = "ref: refs/heads/none\n"
_BEHIND = "index.behind"
_NOTED = "index.noted"
_LINKS = ("refs", "packed-refs", "reftable")
_TAKEN_OVER = {"core.ignorecase", "core.precomposeunicode", "extensions.refstorage"}
_PLAIN = regex(r"[A-Za-z0-9]{1,20}")
_TREE = regex(rb"tree ([0-9a-f]{40,64})\n")
_POLL_S = 0.01
_FRESH_S = 60.0
_LONGEST_LOCK_S = 900.0
_LONGEST_LOOK_S = 240.0  # an agent may have put a pipe in the place of a `.gitignore`


class Shadow(Struct, frozen=True):
    """The folder, held under its lock."""

    repository: GitRepository
    folder: Path
    git: GitProgram

    @property
    def looking(self) -> GitProgram:
        """For what reads no content of a file, only the rules of what is ignored."""
        return replace(self.git, seconds=min(self.git.seconds, _LONGEST_LOOK_S))

    @property
    def only_looking(self) -> GitProgram:
        """The same without writing the index, which takes a tenth of the time.

        A file whose time is new and whose content is not is read, and read again at the next look.
        """
        return replace(self.looking, env={**self.git.env, "GIT_OPTIONAL_LOCKS": "0"})

    @property
    def has_noted(self) -> bool:
        """Whether a look wrote the index, less than a minute ago, and nobody has since."""
        index = self.folder / "index"
        try:
            noted = (self.folder / _NOTED).read_text() == _stamp(index)
            return noted and time.time() - index.stat().st_mtime < _FRESH_S
        except OSError:
            return False

    def note_index(self) -> None:
        """After a look that writes the index where there is something to note."""
        keep_file(self.folder / _NOTED, _stamp(self.folder / "index").encode())

    @property
    def head(self) -> str | None:
        """The tree of HEAD; None before the first checkpoint, and where nobody can tell any more."""
        try:
            name = (self.folder / "HEAD").read_text().strip()
            commit = zlib.decompress(self._object(name).read_bytes())
        except (OSError, zlib.error):
            return None
        found = _TREE.search(commit)
        return found[1].decode() if found else None

    def set_head(self, tree: str) -> None:
        """Make HEAD a commit of `tree`, and forget the one before."""
        body = f"tree {tree}\nauthor teamchat <> 0 +0000\ncommitter teamchat <> 0 +0000\n\n".encode()
        name = write_object(self.folder / "objects", self.repository.object_format, "commit", body)
        before = (self.folder / "HEAD").read_text().strip()
        _replace(self.folder / "HEAD", f"{name}\n".encode())
        if before != name and not before.startswith("ref:"):
            self._object(before).unlink(missing_ok=True)

    @property
    def is_behind(self) -> bool:
        """Whether the index may lack what HEAD has."""
        return (self.folder / _BEHIND).exists()

    def mark_behind(self, *, is_behind: bool = True) -> None:
        """Note it, before HEAD is set or after the index is written."""
        if is_behind:
            (self.folder / _BEHIND).touch()
        else:
            (self.folder / _BEHIND).unlink(missing_ok=True)

    def forget(self) -> list[str]:
        """Begin anew without index and HEAD. Returns the paths that they had."""
        known: set[bytes] = set()
        for listing in (("ls-files", "-z"), ("ls-tree", "-r", "-z", "--name-only", "HEAD")):
            with contextlib.suppress(GitFailed):
                known.update(self.git(*listing).split(b"\0")[:-1])
        for file in (*self.folder.glob("index*"), *self.folder.glob("sharedindex.*")):
            file.unlink(missing_ok=True)
        _replace(self.folder / "HEAD", _UNBORN.encode())
        return [os.fsdecode(name) for name in known]

    def users_index(self, *arguments: str) -> list[bytes]:
        """What `ls-files` prints for the user's index. The shared part of a split one is in the repository's folder."""
        own = {"GIT_DIR": str(self.repository.git_dir), "GIT_COMMON_DIR": str(self.folder)}
        git = replace(self.looking, env={**self.git.env, **own})
        return [entry for entry in git("ls-files", "-z", *arguments).split(b"\0") if entry]

    def _object(self, name: str) -> Path:
        return self.folder / "objects" / name[:2] / name[2:]


def shadow_folder(repository: GitRepository, state_folder: Path) -> Path:
    return state_folder / "checkpoints" / sha256(os.fsencode(repository.top)).hexdigest()[:16]


@contextlib.contextmanager
def open_shadow(repository: GitRepository, state_folder: Path, seconds: float) -> Iterator[Shadow]:
    """The shadow of a work tree, created if it is missing, until the end of the block.

    One process at a time has it. Raises `CheckpointFailed`.
    """
    folder = shadow_folder(repository, state_folder)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise CheckpointFailed(f"the folder {folder} cannot be written: {error.strerror}") from error
    try:
        _wait_for(lock, repository)
        yield _ready(repository, folder, seconds, lock, state_folder)
    except OSError as error:
        raise CheckpointFailed(f"the checkpoint of {repository.top} failed: {error}") from error
    except GitFailed as error:
        raise CheckpointFailed(f"the checkpoint of {repository.top} failed: {error}") from error
    finally:
        os.close(lock)


def _wait_for(lock: int, repository: GitRepository) -> None:
    asked = time.monotonic()
    while True:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > asked + _LONGEST_LOCK_S:
                raise CheckpointFailed(f"another process is at work on the files of {repository.top}") from None
        time.sleep(_POLL_S)


def _ready(repository: GitRepository, folder: Path, seconds: float, lock: int, state_folder: Path) -> Shadow:
    for part in ("info", "objects"):
        (folder / part).mkdir(exist_ok=True)
    for name in _LINKS:
        _link(folder / name, repository.common_dir / name)
    for left in ("index.lock", "HEAD.lock"):  # left by a killed process: we hold the lock
        (folder / left).unlink(missing_ok=True)
    if not (folder / "HEAD").exists():
        _replace(folder / "HEAD", _UNBORN.encode())
    keep_file(folder / "info" / "attributes", _ATTRIBUTES.encode())
    keep_file(folder / "info" / "exclude", _excluded(repository, state_folder))
    _configure(repository, folder)
    env = git_environment() | {
        "GIT_DIR": str(folder),
        "GIT_WORK_TREE": str(repository.top),
        "GIT_OBJECT_DIRECTORY": str(repository.objects),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": _quoted(folder / "objects"),
    }
    return Shadow(repository, folder, GitProgram(repository.top, env, seconds, (lock,)))


def _link(link: Path, to: Path) -> None:
    if not (link.is_symlink() and link.readlink() == to):
        shutil.rmtree(link, ignore_errors=True)
        link.unlink(missing_ok=True)
        link.symlink_to(to)


def _excluded(repository: GitRepository, state_folder: Path) -> bytes:
    """The ignore patterns that are not in `.gitignore` files, and our own folder if it lies in the work tree."""
    try:
        content = read_regular(repository.common_dir / "info" / "exclude") + b"\n"
    except (OSError, ValueError):
        content = b""
    state = state_folder.resolve()
    if state == repository.top or not state.is_relative_to(repository.top):
        return content
    ours = re.sub(rb"([\\*?\[\] ])", rb"\\\1", os.fsencode(state.relative_to(repository.top)))
    return content + b"/" + ours + b"/\n"


def _configure(repository: GitRepository, folder: Path) -> None:
    """Write `config` where the configuration that it takes something of has changed since."""
    stamp = "# " + "".join(f"{_stamp(file)} " for file in _sources(repository)) + "\n"
    config = folder / "config"
    with contextlib.suppress(OSError):
        if config.read_text(errors="surrogateescape").startswith(stamp):
            return
    _replace(config, os.fsencode(stamp + _CONFIG + _extensions(repository) + "".join(_settings(repository))))


def _sources(repository: GitRepository) -> tuple[Path, ...]:
    home = Path(os.environ.get("HOME", "/"))
    users = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "git" / "config"
    named = os.environ.get("GIT_CONFIG_GLOBAL", os.devnull)
    return repository.common_dir / "config", home / ".gitconfig", users, Path("/etc/gitconfig"), Path(named)


def _extensions(repository: GitRepository) -> str:
    return f"[extensions]\n\tobjectFormat = {repository.object_format}\n"


def _settings(repository: GitRepository) -> Iterator[str]:
    """What says how names are to be read, and where the user's list of ignored files is."""
    excludes = None
    for name, value in _entries(repository):
        section, _, key = name.partition(".")
        if name in _TAKEN_OVER and _PLAIN.fullmatch(value):
            yield f"[{section}]\n\t{key} = {value}\n"
        elif name == "core.excludesfile":
            excludes = repository.top / Path(value).expanduser()
    if excludes is not None and excludes.is_file():
        quoted = str(excludes).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        yield f'[core]\n\texcludesFile = "{quoted}"\n'


def _entries(repository: GitRepository) -> Iterator[tuple[str, str]]:
    """The user's settings, and after them the repository's, which rule."""
    root = GitProgram(Path("/"), git_environment(users_own=True) | {"GIT_DIR": os.devnull}, 30.0)
    own = ("config", "--file", str(repository.common_dir / "config"), "--no-includes", "--list", "-z")
    for arguments in (("config", "--global", "--includes", "--list", "-z"), own):
        with contextlib.suppress(GitFailed):  # such as: there is no file
            for entry in os.fsdecode(root(*arguments)).split("\0"):
                name, _, value = entry.partition("\n")
                yield name.lower(), value


def _stamp(file: Path) -> str:
    try:
        status = file.stat()
    except OSError:
        return "-"
    return f"{status.st_ino}.{status.st_size}.{status.st_mtime_ns}"


def stamp_of_index(repository: GitRepository) -> str:
    """What changes whenever the user's index is written."""
    return _stamp(repository.git_dir / "index")


def keep_file(file: Path, content: bytes) -> None:
    """Make `content` what the file has, and leave its time as it is where it has that."""
    with contextlib.suppress(OSError):
        if file.read_bytes() == content:
            return
    _replace(file, content)


def _replace(file: Path, content: bytes) -> None:
    new = file.with_name(f"{file.name}.new")
    new.write_bytes(content)
    new.replace(file)


def _quoted(path: Path) -> str:
    """A path in a list of paths, which git takes in quotes where it has a `:` or a line break."""
    text = str(path)
    if not any(mark in text for mark in ':"\n'):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
