"""A git repository of teamchat's own in the state folder, which holds the checkpoints of one repository of the user.

It is complete in itself: objects, refs and configuration are its own, so nothing of it is in the user's repository, and
nothing that happens there takes a checkpoint away. Of the configuration of the user and the repository, only the
comparison of names and the ignored files are read: no list of dangerous settings has to be complete. Attributes of our
own turn every conversion off, for bytes to stay bytes.

The work trees of one repository share it, each with an index of its own. The index lives on from one checkpoint to the
next: git then knows by `lstat` alone which files changed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from hashlib import sha256
from pathlib import Path
from threading import Lock

from msgspec import Struct
from msgspec.structs import replace

from teamchat.core.checkpoint.git import GitFailed, GitProgram, git_environment
from teamchat.core.checkpoint.values import GitRepository
from teamchat.core.errors import CheckpointFailed
from teamchat.runners.untrusted.regular_files import read_regular

_CONFIG = f"""\
[core]
	repositoryFormatVersion = {{version}}
	bare = false
	logAllRefUpdates = false
	sharedRepository = 0600
	fileMode = true
	symlinks = true
	autocrlf = false
	fsmonitor = false
	hooksPath = {os.devnull}
	attributesFile = {os.devnull}
	excludesFile = {os.devnull}
	preloadIndex = true
[gc]
	auto = 0
[maintenance]
	auto = false
"""
_ATTRIBUTES = "* -text !eol !crlf !ident !filter !working-tree-encoding !diff !merge\n"
_NAMES = r"^core\.(excludesfile|ignorecase|precomposeunicode)$"
_POLL_S = 0.01
_LONGEST_LOCK_S = 300.0
_HERE: defaultdict[Path, Lock] = defaultdict(Lock)
"""A lock for each store: turns of this process take turns at once, and need not look whether its file is free."""


class Shadow(Struct, frozen=True):
    """The store as one work tree uses it, held under its lock. `excluded` has the rules that are in no `.gitignore`."""

    repository: GitRepository
    git: GitProgram
    index: Path
    excluded: Path

    def users_index(self, *arguments: str) -> bytes:
        """Return what `ls-files` prints for the user's index. The shared part of a split one is in its folder."""
        own = {"GIT_DIR": str(self.repository.git_dir), "GIT_COMMON_DIR": str(self.repository.store)}
        env = {name: value for name, value in self.git.env.items() if name != "GIT_INDEX_FILE"}
        return replace(self.git, env={**env, **own})("ls-files", "-z", *arguments)

    def file(self, name: str) -> Path:
        """Return a file beside the index."""
        return self.index.with_name(f"{self.index.name}.{name}")


@contextlib.contextmanager
def open_shadow(
    repository: GitRepository,
    state_folder: Path,
    seconds: float = 240.0,
    idle_s: float = 10.0,
    stopped: Callable[[], bool] | None = None,
    *,
    files: bool = True,
) -> Iterator[Shadow]:
    """Open the store of a repository, made if it is missing, until the end of the block.

    Without `files` it is not for a look at the files of the work tree, so nothing of the user's settings is read. One
    process at a time has it. Raises `CheckpointFailed`.
    """
    folder = repository.store
    users = _users_settings(repository, stopped) if files else None
    try:
        for parent in (folder.parent.parent, folder.parent):
            parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(
            folder.with_name(f"{folder.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
        )
    except OSError as error:
        raise CheckpointFailed(f"the folder {folder.parent} cannot be written: {error.strerror}") from error
    here = _HERE[folder]
    try:
        _wait_for(partial(here.acquire, timeout=_POLL_S), repository, stopped)
    except CheckpointFailed:
        os.close(lock)
        raise
    try:
        _wait_for(partial(_locked, lock), repository, stopped)
        if not (folder / "HEAD").exists():
            new = folder.with_name(f"{folder.name}.new")
            for left in (new, folder):  # left by a killed process
                shutil.rmtree(left, ignore_errors=True)
            git = GitProgram(new.parent, git_environment())
            git("init", "--quiet", "--bare", "--template=", f"--object-format={repository.object_format}", str(new))
            new.rename(folder)
        _configure(repository)
        yield _opened(repository, state_folder, users, GitProgram(repository.top, {}, seconds, idle_s, stopped))
    except (OSError, GitFailed) as error:
        raise CheckpointFailed(f"the checkpoint of {repository.top} failed: {error}") from error
    finally:
        os.close(lock)
        here.release()


def _wait_for(locked: Callable[[], bool], repository: GitRepository, stopped: Callable[[], bool] | None) -> None:
    """Try until it is locked; each try takes at most `_POLL_S`."""
    asked = time.monotonic()
    while not locked():
        if time.monotonic() > asked + _LONGEST_LOCK_S:
            raise CheckpointFailed(f"another process is at work on the files of {repository.top}")
        if stopped and stopped():
            raise CheckpointFailed(f"waiting for the files of {repository.top} was stopped")


def _locked(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        time.sleep(_POLL_S)
        return False
    return True


def _configure(repository: GitRepository) -> None:
    """Give the store the settings of this version, whoever has changed them: git runs what a configuration names."""
    reftable = (repository.store / "reftable").exists()
    extensions = {"objectFormat": "sha256"} if repository.object_format == "sha256" else {}
    extensions |= {"refStorage": "reftable"} if reftable else {}
    listed = "".join(f"\t{name} = {value}\n" for name, value in extensions.items())
    config = _CONFIG.format(version=int(bool(extensions))) + (f"[extensions]\n{listed}" if listed else "")
    (repository.store / "info").mkdir(mode=0o700, exist_ok=True)
    keep_file(repository.store / "config", config.encode())
    keep_file(repository.store / "info" / "attributes", _ATTRIBUTES.encode())


def _opened(
    repository: GitRepository, state_folder: Path, users: tuple[Mapping[str, str], Path] | None, git: GitProgram
) -> Shadow:
    index = repository.store / f"index-{sha256(os.fsencode(repository.top)).hexdigest()[:16]}"
    index.with_name(f"{index.name}.lock").unlink(missing_ok=True)  # left by a killed process: we hold the lock
    excluded = index.with_name(f"{index.name}.exclude")
    settings: dict[str, str] = {}
    if users:
        settings, excludes = {**users[0]}, users[1]
        keep_file(excluded, _excluded(repository, state_folder, excludes))
        settings["core.excludesFile"] = str(excluded)
    named = {f"GIT_CONFIG_KEY_{number}": name for number, name in enumerate(settings)}
    valued = {f"GIT_CONFIG_VALUE_{number}": value for number, value in enumerate(settings.values())}
    env = git_environment() | {
        "GIT_DIR": str(repository.store),
        "GIT_WORK_TREE": str(repository.top),
        "GIT_INDEX_FILE": str(index),
        "GIT_CONFIG_COUNT": str(len(settings)),
        **named,
        **valued,
    }
    return Shadow(repository, replace(git, env=env), index, excluded)


def _users_settings(repository: GitRepository, stopped: Callable[[], bool] | None) -> tuple[dict[str, str], Path]:
    """Read how the user's git compares names, and where the user's list of ignored files is."""
    settings: dict[str, str] = {}
    config = Path(os.environ.get("XDG_CONFIG_HOME") or Path(os.environ.get("HOME", "/")) / ".config")
    excludes = config / "git" / "ignore"
    users = GitProgram(repository.top, git_environment(users_own=True), 30.0, stopped=stopped)
    with contextlib.suppress(GitFailed):  # such as: nothing is set, or what is there is no configuration
        for entry in os.fsdecode(users("config", "-z", "--type=path", "--get-regexp", _NAMES)).split("\0")[:-1]:
            name, _, value = entry.partition("\n")
            if name == "core.excludesfile":
                excludes = repository.top / value
            else:
                settings[name] = value or "true"
    return settings, excludes


def _excluded(repository: GitRepository, state_folder: Path, excludes: Path) -> bytes:
    """Collect the rules that are not in `.gitignore` files, and our own folder in the work tree; the last one rules."""
    parts = []
    for file in (excludes, repository.common_dir / "info" / "exclude"):
        with contextlib.suppress(OSError, ValueError):
            parts.append(read_regular(file))
    state = state_folder.resolve()
    if state != repository.top and state.is_relative_to(repository.top):
        ours = re.sub(rb"([\\*?\[\] ])", rb"\\\1", os.fsencode(state.relative_to(repository.top)))
        parts.append(b"/" + ours + b"/")
    return b"".join(part + b"\n" for part in parts)


def keep_file(file: Path, content: bytes) -> None:
    """Write `content` to the file, unless it has that already: then its time stays."""
    with contextlib.suppress(OSError):
        if file.read_bytes() == content:
            return
    new = file.with_name(f"{file.name}.new")
    place = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(place, "wb") as opened:
        opened.write(content)
    new.replace(file)
