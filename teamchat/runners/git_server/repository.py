"""A git repository that may be hostile, read so that nothing it names is run and nothing in it is written.

What makes git run a program of the repository's choice stands in its configuration: hooks, a file system monitor,
external diffs, text conversions, filters, pagers, signature checks, remotes that missing objects are fetched from. git
is not given that configuration at all. What `GIT_COMMON_DIR` names is a folder of teamchat's own: its `config` has a
few plain settings of the repository, and its other entries are links to the repository's. So nothing depends on a list
of dangerous settings, and one that is written later has no effect (observed with git 2.39).
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from teamchat.digests import sha256
from teamchat.patterns import regex
from teamchat.runners.git_server.output import LONGEST_S, GitError, Page, read_from_line, read_whole
from teamchat.runners.regular_files import open_regular

_SMALL = 4096  # bytes of a file that only says where something is
_LINKS = ("objects", "refs", "packed-refs", "logs", "info", "shallow", "reftable")
_SETTINGS = frozenset(
    {
        "core.autocrlf",
        "core.eol",
        "core.filemode",
        "core.ignorecase",
        "core.precomposeunicode",
        "core.repositoryformatversion",
        "core.symlinks",
        "extensions.objectformat",
        "extensions.refstorage",
    }
)
"""The settings copied from the user's and the repository's configuration: how files and objects are read."""
_PLAIN = regex(r"[A-Za-z0-9]{1,20}")
_FIXED = "[core]\n\tfsmonitor = false\n\thooksPath = /dev/null\n\tbigFileThreshold = 16m\n"
_PASSED = ("HOME", "XDG_CONFIG_HOME", "TMPDIR")  # the variables by which git finds the user's list of ignored files
_QUIET = ("--no-pager", "--no-optional-locks", "--literal-pathspecs", "--no-replace-objects")


class Repository(Struct, frozen=True):
    """`top` is the folder of the working tree, `own` has what belongs to it alone (HEAD, index), `common` the rest."""

    top: Path
    own: Path
    common: Path

    @classmethod
    def around(cls, folder: Path) -> Repository:
        """The repository that `folder` is in. Raises `GitError`, and errors that `serve.answer` turns into one."""
        for top in (folder, *folder.parents):
            marked = top / ".git"
            if marked.is_dir():
                return cls(top, marked.resolve(), marked.resolve())
            if marked.is_file():  # a linked worktree, or a submodule
                own = (top / _pointed(marked).removeprefix("gitdir:").strip()).resolve()
                common = own / "commondir"
                return cls(top, own, (own / _pointed(common)).resolve() if common.is_file() else own)
        raise GitError(f"{folder} is not in a git repository")


class Git:
    """The git at `program`, for a member who works in `cwd`.

    What stands for a repository's own folder is made below `folder`.

    Each call, and making one, raises `GitError`, and for what the system refuses what `serve.answer` makes one of.
    """

    def __init__(self, cwd: Path, folder: Path, program: str = "git") -> None:
        self._cwd = cwd
        self._program = program
        repository = Repository.around(cwd)
        config = repository.common / "config"
        self._env = _environment() | {
            "GIT_DIR": str(repository.own),
            "GIT_COMMON_DIR": str(_stand_in(repository.common, folder, _FIXED + "".join(self._settings(config)))),
            "GIT_WORK_TREE": str(repository.top),
        }

    def __call__(self, *arguments: str, first: int = 1) -> Page:
        """What git prints from line `first` on."""
        return read_from_line((self._program, *_QUIET, *arguments), self._cwd, self._env, first)

    def commit(self, revision: str) -> str:
        """The full name of the commit that `revision` names."""
        if revision.startswith("-") or not revision.isprintable():
            raise GitError(f"{revision!r} is not a revision")
        try:
            return self("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}").text.strip()
        except GitError:
            raise GitError(f"there is no commit {revision!r}") from None

    def commits(self, revisions: str) -> str:
        """`A`, `A..B` or `A...B` in full names; HEAD where a side is left out."""
        dots = next((dots for dots in ("...", "..") if dots in revisions), None)
        if dots is None:
            return self.commit(revisions)
        first, _, last = revisions.partition(dots)
        return f"{self.commit(first or 'HEAD')}{dots}{self.commit(last or 'HEAD')}"

    def path(self, path: str) -> str:
        """A path as git takes it, relative to the member's folder."""
        if not path or "\0" in path:
            raise GitError(f"{path!r} is not a path")
        return os.path.relpath(self._cwd / path, self._cwd)

    def _settings(self, config: Path) -> Iterator[str]:
        """Those of the user, and after them those of the repository, which rule."""
        yield from self._lines("--global", users_own=True)
        if config.is_file():
            yield from self._lines("--file", str(config))

    def _lines(self, *where: str, users_own: bool = False) -> Iterator[str]:
        argv = [self._program, "config", *where, "--no-includes", "--list", "--null"]
        try:
            printed = read_whole(argv, Path("/"), _environment(users_own=users_own), LONGEST_S)
        except GitError:
            raise GitError("the repository's configuration cannot be read") from None
        for entry in os.fsdecode(printed).split("\0"):
            name, _, value = entry.partition("\n")
            section, _, key = name.lower().partition(".")
            if name.lower() in _SETTINGS and _PLAIN.fullmatch(value):
                yield f"[{section}]\n\t{key} = {value}\n"


def _stand_in(common: Path, folder: Path, config: str) -> Path:
    """The folder with that configuration and the rest of `common`; several servers at a time may make the same one."""
    made = folder / sha256(os.fsencode(common)).hexdigest()[:16]
    made.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in _LINKS:
        with contextlib.suppress(FileExistsError):
            (made / name).symlink_to(common / name)
    new = made / f"config.{os.getpid()}.{threading.get_ident()}"
    new.write_text(config)
    return new.replace(made / "config").parent


def _pointed(file: Path) -> str:
    """What a file of one line says."""
    with open_regular(file) as opened:
        return os.fsdecode(opened.read(_SMALL)).strip()


def _environment(*, users_own: bool = False) -> dict[str, str]:
    """The whole environment of git: no variable of its own is passed on; the user's settings only with `users_own`."""
    passed = {name: os.environ[name] for name in _PASSED if name in os.environ}
    mute = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_ATTR_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1"}
    hidden = {} if users_own else {"GIT_CONFIG_GLOBAL": os.devnull}
    return {"PATH": os.defpath, "LC_ALL": "C.UTF-8", "GIT_ALLOW_PROTOCOL": "none", **mute, **hidden, **passed}
