"""Random turns, edits of the user, undos and redos: every file is what a simple model says, and git sees nothing.

`SEQUENCES=100` tries more.
"""

from __future__ import annotations

import os
import random
import shlex
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from shutil import copytree

import pytest

from tests.core.checkpoint.worktree import WorkTree
from tests.program import Result, run_here
from tests.shell_team import repository, shell

SEQUENCES = int(os.environ.get("SEQUENCES", "6"))
STEPS = 8
NAMES = (
    "app.py",
    "run.sh",
    "tests/one.py",
    "tests/two.py",
    "new",
    "d/e/f",
    "d/g",
    "odd 'name\n",
    "-x",
    "build/ignored",
)
EDITS = (
    "printf '%s\\n' {number} >> {name}",
    "rm -f {name}",
    "printf '\\000%s' {number} > {name}",
    "rm -f {name}; ln -s target{number} {name}",
    "test ! -f {name} || test -L {name} || chmod +x {name}",
)
Files = Mapping[bytes, tuple[str, bytes]]
Change = tuple[Files, Files]


def paths(changes: Sequence[Change]) -> set[bytes]:
    return {path for old, new in changes for path in {*old, *new} if old.get(path) != new.get(path)}


def taken_back(changes: Sequence[Change], now: Files, *, force: bool) -> Files | None:
    """The files after these changes are taken back; None where somebody else changed one of them."""
    files = dict(now)
    for path in paths(changes):
        touched = [(old.get(path), new.get(path)) for old, new in changes if old.get(path) != new.get(path)]
        target, left = touched[0][0], touched[-1][1]
        foreign = any(first[1] != second[0] for first, second in pairwise(touched))
        if now.get(path) != target and (foreign or now.get(path) != left) and not force:
            return None
        if target is None:
            files.pop(path, None)
        else:
            files[path] = target
    return files


@dataclass
class Story:
    """What happened. `turns` has the files before and after each turn that stands, `undone` what may be redone."""

    tree: WorkTree
    chance: random.Random
    turns: dict[int, Change] = field(default_factory=dict)
    undone: list[tuple[dict[int, Change], Change]] = field(default_factory=list)
    last: int = 0

    def seen(self) -> Files:
        """What checkpoints have: all but what git ignores."""
        return {path: file for path, file in self.tree.files().items() if not path.startswith(b"build/")}

    def script(self) -> str:
        names = self.chance.choices(NAMES, k=self.chance.randint(1, 4))
        return "; ".join(
            f"mkdir -p {shlex.quote(os.path.dirname(name) or '.')}; "  # noqa: PTH120 (a word of a shell)
            + self.chance.choice(EDITS).format(name=shlex.quote(f"./{name}"), number=self.chance.randint(1, 3))
            for name in names
        )

    def turn(self) -> None:
        shell(max=f"{self.script()}; :")
        before = self.seen()
        assert run_here("send", "Go", "--to", "max", "--trust").code == 0
        self.last += 1
        self.turns[self.last] = before, self.seen()
        self.undone.clear()  # nobody may redo what was undone before a turn

    def edit(self) -> None:
        subprocess.run(["sh", "-c", self.script()], cwd=self.tree.top, stderr=subprocess.DEVNULL, check=False)

    def undo(self) -> None:
        if not self.turns:
            return
        first = self.chance.choice(sorted(self.turns)[-2:])
        back = {number: change for number, change in self.turns.items() if number >= first}
        before = self.seen()
        if self._does(list(back.values()), "undo", str(first)):
            self.undone.append((back, (before, self.seen())))
            for number in back:
                del self.turns[number]

    def redo(self) -> None:
        if not self.undone:
            assert run_here("redo", "--yes").code == 2
            return
        back, change = self.undone[-1]
        if self._does([change], "redo"):
            self.undone.pop()
            self.turns.update(back)

    def _does(self, changes: Sequence[Change], *command: str) -> bool:
        force = self.chance.random() < 0.2
        before, ignored = self.seen(), self.tree.files()
        expected = taken_back(changes, before, force=force)
        ran: Result = run_here(*command, "--yes", *(["--force"] if force else []))
        assert ran.code == (1 if expected is None else 0), (command, ran)
        assert self.seen() == (before if expected is None else expected), (command, ran)
        assert {path: file for path, file in self.tree.files().items() if path.startswith(b"build/")} == {
            path: file for path, file in ignored.items() if path.startswith(b"build/")
        }
        return expected is not None


def kept(tree: WorkTree) -> tuple[object, ...]:
    """What belongs to the user alone."""
    looks = ("rev-parse HEAD", "stash list", "reflog", "log --all --format=%H", "for-each-ref refs/heads refs/stash")
    index, config = ((tree.top / ".git" / name).read_bytes() for name in ("index", "config"))
    return index, config, *(tree.git(*look.split()) for look in looks)


def status(tree: WorkTree, git_dir: Path) -> str:
    """What `git status` says of the work tree by that repository."""
    where = (f"--git-dir={git_dir}", f"--work-tree={tree.top}")
    return tree.git(
        *where, "status", "--porcelain=v2", "--branch", "--show-stash", "--ignored", "--untracked-files=all"
    )


@pytest.mark.parametrize("seed", range(SEQUENCES))
def test_files_are_as_the_model_says(tmp_path: Path, seed: int) -> None:
    tree = repository(tmp_path / "unused")
    tree.write("app.py", b"stashed\n")
    tree.git("-c", "user.name=kai", "-c", "user.email=kai@example.invalid", "stash", "-q")
    shell(max=":")
    story = Story(tree, random.Random(seed))  # noqa: S311 (no secret)
    users = kept(tree)
    untouched = copytree(tree.top / ".git", tmp_path / "untouched")
    steps: tuple[Callable[[], None], ...] = (story.turn, story.edit, story.undo, story.redo)
    story.turn()
    for _ in range(STEPS):
        story.chance.choices(steps, weights=(3, 2, 4, 3))[0]()
        assert kept(tree) == users
        assert status(tree, tree.top / ".git") == status(tree, untouched)
    assert tree.git("fsck", "--strict", "--no-dangling") == ""
