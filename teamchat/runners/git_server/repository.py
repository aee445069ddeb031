"""A git repository that may be hostile, read so that nothing it names is run, and no other repository is read.

The configuration of a repository can make git run a program of its choice: hooks, a file system monitor, external
diffs, text conversions, filters, pagers, signature checks, remotes that missing objects are fetched from. git is not
given that configuration at all. `GIT_COMMON_DIR` names a folder of teamchat's own: its `config` has a few plain
settings of the repository, and its other entries are links to the repository's. So nothing depends on a list of
dangerous settings, and a setting that is added later has no effect (observed with git 2.39).

A folder can also name another repository of the user as its own, by a file, a link or borrowed objects. git reads only
what lies in the working tree, or in a repository that names this folder as its working tree.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from teamchat.patterns import regex
from teamchat.runners.git_server.output import LONGEST_S, GitError, Page, read_from_line, read_whole
from teamchat.runners.untrusted.regular_files import open_regular

_SMALL = 4096  # bytes of a file that only says where something is
_LINKS = ("objects", "refs", "packed-refs", "logs", "info", "shallow", "reftable")
_SETTINGS = frozenset(
    {
        *("core.autocrlf", "core.eol", "core.filemode", "core.ignorecase", "core.precomposeunicode"),
        *("core.repositoryformatversion", "core.symlinks", "extensions.objectformat", "extensions.refstorage"),
    }
)
"""The settings copied from the user's and the repository's configuration: how files and objects are read."""
_PLAIN = regex(r"[A-Za-z0-9]{1,20}")
_FIXED = "[core]\n\tfsmonitor = false\n\thooksPath = /dev/null\n\tbigFileThreshold = 16m\n"
_PASSED = ("HOME", "XDG_CONFIG_HOME", "TMPDIR")  # the variables by which git finds the user's list of ignored files
_QUIET = ("--no-pager", "--no-optional-locks", "--literal-pathspecs", "--no-replace-objects")


class Repository(Struct, frozen=True):
    """A repository: `top` is the folder of the working tree, `own` its own part (HEAD, index), `common` the rest."""

    top: Path
    own: Path
    common: Path

    @classmethod
    def around(cls, folder: Path) -> Repository:
        """Find the repository that `folder` is in. Raises `GitError`, and errors that `serve.answer` turns into one."""
        top = next((top for top in (folder, *folder.parents) if os.path.lexists(top / ".git")), None)
        if top is None:
            raise GitError(f"{folder} is not in a git repository")
        own = (top / ".git").resolve()
        if own.is_file():  # a linked worktree or a submodule
            own = (top / _pointed(top / ".git").removeprefix("gitdir:").strip()).resolve()
        common = (own / _pointed(own / "commondir")).resolve() if os.path.lexists(own / "commondir") else own
        return cls(Path(os.path.realpath(top)), own, common)

    def check(self, worktree: str | None) -> None:
        """Raise `GitError` where git would read what lies neither in the working tree nor in its own repository.

        `worktree` is the setting `core.worktree`. A folder may name any repository as its own. It counts where the
        repository names the folder, too: as one of its linked worktrees, or as the working tree of a submodule.
        """
        named = worktree is not None and self.common == self.own and (self.own / worktree).resolve() == self.top
        inside = all(folder.is_relative_to(self.top) for folder in (self.own, self.common))
        if not (named or (inside and worktree is None) or registered(self.top, self.own, self.common)):
            raise GitError(f"{self.top} names a repository outside of it, which does not know it; git cannot be asked")
        for link in (
            *_links(self.own, ""),
            *(link for name in ("config", *_LINKS) for link in _links(self.common, name)),
        ):
            if not link.resolve().is_relative_to(self.common):
                raise GitError(f"{link} leads out of the repository; git cannot be asked")
        for name in ("alternates", "http-alternates"):
            if os.path.lexists(file := self.common / "objects" / "info" / name):
                raise GitError(f"{file} names objects of another repository; try: git repack -a -d && rm {file}")


def registered(top: Path, own: Path, common: Path) -> bool:
    """Whether the repository at `common` knows `top` as its linked worktree, whose own folder is `own`."""
    with contextlib.suppress(OSError, ValueError, RuntimeError):
        if own.parent == (common / "worktrees").resolve():
            named = own / _pointed(own / "gitdir")
            return named.name == ".git" and named.parent.resolve() == top
    return False


def _links(folder: Path, name: str) -> Iterator[Path]:
    """List the symbolic links at and below that entry; of the folder itself only its own entries."""
    if name and (folder / name).is_symlink():
        yield folder / name
        return
    with contextlib.suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder / name) as entries:
        for entry in entries:
            if entry.is_symlink():
                yield Path(entry.path)
            elif name and entry.is_dir():
                yield from _links(folder, f"{name}/{entry.name}")


class Git:
    """The git at `program`, for a member who works in `cwd`. Each call and the constructor raise `GitError`.

    The stand-in for a repository's own folder is made below `folder`. A refusal of the system is raised as the error
    that `serve.answer` turns into `GitError`.
    """

    def __init__(self, cwd: Path, folder: Path, program: str = "git") -> None:
        self._cwd = cwd
        self._program = program
        repository = Repository.around(cwd)
        self._top = repository.top
        users = self._read("--global", users_own=True)
        config = repository.common / "config"
        own = self._read("--file", str(config)) if config.is_file() else []
        repository.check(dict(own).get("core.worktree"))
        self._env = _environment() | {
            "GIT_DIR": str(repository.own),
            "GIT_COMMON_DIR": str(_stand_in(repository.common, folder, _FIXED + "".join(_copied([*users, *own])))),
            "GIT_WORK_TREE": str(repository.top),
        }

    def __call__(self, *arguments: str, first: int = 1) -> Page:
        """Return git's output from line `first` on."""
        return read_from_line((self._program, *_QUIET, *arguments), self._cwd, self._env, first)

    def commit(self, revision: str) -> str:
        """Find the full name of the commit that `revision` names."""
        if revision.startswith("-") or not revision.isprintable():
            raise GitError(f"{revision!r} is not a revision")
        try:
            return self("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}").text.strip()
        except GitError:
            raise GitError(f"there is no commit {revision!r}") from None

    def commits(self, revisions: str) -> str:
        """Write `A`, `A..B` or `A...B` in full names; HEAD where a side is left out."""
        dots = next((dots for dots in ("...", "..") if dots in revisions), None)
        if dots is None:
            return self.commit(revisions)
        first, _, last = revisions.partition(dots)
        return f"{self.commit(first or 'HEAD')}{dots}{self.commit(last or 'HEAD')}"

    def path(self, path: str) -> str:
        """Write a path as git takes it, relative to the member's folder."""
        if not path or "\0" in path:
            raise GitError(f"{path!r} is not a path")
        return os.path.relpath(self._cwd / path, self._cwd)

    def file(self, path: str) -> str:
        """Write the path of a file that git opens, as `path` does; no link on the way may lead out of the work tree."""
        named = self.path(path)
        if not (self._cwd / path).parent.resolve().is_relative_to(self._top):
            raise GitError(f"{path!r} is not in the working tree")
        return named

    def _read(self, *where: str, users_own: bool = False) -> list[tuple[str, str]]:
        """Read the settings of a file of git, by their names in lower case."""
        argv = [self._program, "config", *where, "--no-includes", "--list", "--null"]
        try:
            printed = read_whole(argv, Path("/"), _environment(users_own=users_own), LONGEST_S)
        except GitError:
            raise GitError("the repository's configuration cannot be read") from None
        settings = (entry.partition("\n") for entry in os.fsdecode(printed).split("\0"))
        return [(name.lower(), value) for name, _, value in settings]


def _copied(settings: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Write the settings that git gets. The last one of a name rules."""
    for name, value in settings:
        section, _, key = name.partition(".")
        if name in _SETTINGS and _PLAIN.fullmatch(value):
            yield f"[{section}]\n\t{key} = {value}\n"


def _stand_in(common: Path, folder: Path, config: str) -> Path:
    """Make the folder with that configuration and the rest of `common`; several servers may make one at a time."""
    made = folder / sha256(os.fsencode(common)).hexdigest()[:16]
    made.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in _LINKS:
        with contextlib.suppress(FileExistsError):
            (made / name).symlink_to(common / name)
    new = made / f"config.{os.getpid()}.{threading.get_ident()}"
    new.write_text(config)
    return new.replace(made / "config").parent


def _pointed(file: Path) -> str:
    """Read a file of one line."""
    with open_regular(file) as opened:
        return os.fsdecode(opened.read(_SMALL)).strip()


def _environment(*, users_own: bool = False) -> dict[str, str]:
    """Build the whole environment of git: without its own variables; with the user's settings only by `users_own`."""
    passed = {name: os.environ[name] for name in _PASSED if name in os.environ}
    mute = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_ATTR_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1"}
    hidden = {} if users_own else {"GIT_CONFIG_GLOBAL": os.devnull}
    return {"PATH": os.defpath, "LC_ALL": "C.UTF-8", "GIT_ALLOW_PROTOCOL": "none", **mute, **hidden, **passed}
