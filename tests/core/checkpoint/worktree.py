"""A repository of a test's own, and everything of it that a checkpoint must leave as it is."""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

from teamchat.core.checkpoint.compare import changes, entries
from teamchat.core.checkpoint.find import find_repository
from teamchat.core.checkpoint.plan import plan_restore
from teamchat.core.checkpoint.restore import Restore, restore
from teamchat.core.checkpoint.take import Begun, begin_turn, end_turn, take
from teamchat.core.checkpoint.values import (
    Checkpoint,
    CheckpointLimits,
    GitRepository,
    PathChange,
    TreeEntry,
    TurnChanges,
)

Files = Mapping[bytes, tuple[str, bytes]]
_TEMPLATES = Path(tempfile.mkdtemp(prefix="repositories-"))
atexit.register(shutil.rmtree, _TEMPLATES)


@dataclass
class WorkTree:
    top: Path
    state: Path
    begun: Begun | None = None

    @classmethod
    def make(cls, top: Path, state: Path, *options: str) -> WorkTree:
        top.mkdir(parents=True)
        made = cls(top, state)
        made.git("init", "-q", *options)
        return made

    @classmethod
    def committed(cls, top: Path, state: Path, files: Mapping[str, bytes]) -> WorkTree:
        """A repository with these files in one commit on `main`, which is made once and copied."""
        kept = _TEMPLATES / sha256(repr(files).encode()).hexdigest()[:16]
        if not kept.is_dir():
            made = cls.make(kept.with_suffix(f".{os.getpid()}"), state, "-b", "main")
            for path, content in files.items():
                made.write(path, content)
            made.git("add", "--all")
            made.git("-c", "user.name=kai", "-c", "user.email=kai@example.invalid", "commit", "-q", "-m", "first")
            made.top.rename(kept)
        # with new times: git compares them by the second, and a file that is as old as its index is not read again
        shutil.copytree(kept, top, symlinks=True, dirs_exist_ok=True, copy_function=shutil.copy)
        return cls(top, state)

    @property
    def repository(self) -> GitRepository:
        found = find_repository(self.top, self.state)
        assert isinstance(found, GitRepository), found
        return found

    def git(self, *arguments: str, fails: bool = False) -> str:
        """What git prints, with the configuration of the test; it leaves the index as it is where it only looks."""
        argv = ("git", "--no-optional-locks", *arguments)
        done = subprocess.run(argv, cwd=self.top, capture_output=True, check=False, stdin=subprocess.DEVNULL)
        assert fails or done.returncode == 0, done.stderr
        return os.fsdecode(done.stdout)

    def stored(self, *arguments: str) -> str:
        """What git prints of the checkpoints."""
        return _git(self.repository.store, *arguments)

    def write(self, path: str, content: bytes, mode: int = 0o644) -> None:
        file = self.top / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        file.chmod(mode)

    def take(self, name: str = "1/before", limits: CheckpointLimits | None = None) -> Checkpoint:
        ref = f"refs/teamchat/s/{name}"
        return take(self.repository, self.state, ref, limits)

    def begin(self, turn: int = 1) -> Checkpoint:
        """The checkpoint before a turn."""
        self.begun = begin_turn(self.repository, self.state, f"refs/teamchat/s/{turn}/before")
        return self.begun.checkpoint

    def end(self, turn: int = 1) -> Checkpoint:
        """The checkpoint after it."""
        ref = f"refs/teamchat/s/{turn}"
        return end_turn(self.repository, self.state, f"{ref}/after", f"{ref}/before")

    def changes(self, old: Checkpoint, new: Checkpoint) -> tuple[PathChange, ...]:
        return changes(self.repository, old.tree, new.tree)

    def undo(self, *trees: Checkpoint) -> None:
        """Put back what was before the first of these, each of which was taken after a turn but the first."""
        steps = [TurnChanges(self.changes(old, new)) for old, new in pairwise(trees)]
        plan = plan_restore(steps, entries(self.repository, trees[-1].tree))
        assert plan.conflicts == ()
        self.restore(trees[-1], plan.restore)

    def undo_to(self, wanted: Checkpoint) -> None:
        """Make the files those of a checkpoint, whatever they are."""
        now = self.take("now")
        self.restore(now, {change.path: change.new for change in self.changes(now, wanted)})

    def restore(self, known: Checkpoint, paths: Mapping[str, TreeEntry | None], *, force: bool = False) -> None:
        """Put back these paths, of which that checkpoint has what is there."""
        restore(self.state, [Restore(self.repository, entries(self.repository, known.tree), paths)], force=force)

    def files(self) -> Files:
        """Everything on disk but the repositories, by its bytes: what it is and what it holds."""
        found: dict[bytes, tuple[str, bytes]] = {}
        for folder, folders, names in os.walk(os.fsencode(self.top)):
            if b".git" in folders:
                folders.remove(b".git")
            links = [name for name in folders if os.path.islink(os.path.join(folder, name))]  # noqa: PTH114, PTH118
            for name in (*names, *links):
                path = os.path.join(folder, name)  # noqa: PTH118 (names of any bytes)
                if name != b".git":
                    found[os.path.relpath(path, os.fsencode(self.top))] = _content(path)
        return found

    def standing(self) -> dict[str, object]:
        """What no checkpoint may change."""
        own = self.repository.git_dir
        common = self.repository.common_dir
        logs = {path: path.read_bytes() for path in (common / "logs").rglob("*") if path.is_file()}
        index = own / "index"
        return {
            "status": self.git("status", "--porcelain=v2", "--untracked-files=all", fails=True),
            "HEAD": (own / "HEAD").read_bytes(),
            "index": index.read_bytes() if index.exists() else None,
            "stash": self.git("stash", "list", fails=True),
            "logs": logs,
            "config": self.git("config", "--list"),
            "refs": self.git("show-ref", fails=True).splitlines(),
            "objects": sorted((common / "objects").rglob("*")),
            "in .git": sorted(path.name for path in own.iterdir()),
        }


def all_refs(world: Path) -> dict[Path, list[str]]:
    """The refs of the checkpoints that the program has made in a world, by their store."""
    stores = [head.parent for head in (world / "state").glob("workspaces/*/checkpoints/*/HEAD")]
    return {store: _git(store, "for-each-ref", "--format=%(refname)", "refs/teamchat").split() for store in stores}


def remove_checkpoints(world: Path) -> None:
    """Take all of them away."""
    for store, refs in all_refs(world).items():
        for ref in refs:
            _git(store, "update-ref", "-d", ref)
        _git(store, "prune", "--expire=now")


def _git(store: Path, *arguments: str) -> str:
    argv = ("git", f"--git-dir={store}", *arguments)
    return os.fsdecode(subprocess.run(argv, capture_output=True, check=True, stdin=subprocess.DEVNULL).stdout)


def _content(path: bytes) -> tuple[str, bytes]:
    status = os.lstat(path)
    if stat.S_ISLNK(status.st_mode):
        return "link", os.readlink(path)  # noqa: PTH115
    if not stat.S_ISREG(status.st_mode):
        return "other", b""
    with open(path, "rb") as file:  # noqa: PTH123
        return ("executable" if status.st_mode & 0o100 else "file"), file.read()
