"""A user edits files at random moments of undo, redo, retry and merge: each edit is in its file, or named and kept.

`make edits` makes 2,000 edits, `make test` a few. A failure names its seed.
"""

from __future__ import annotations

import os
import random
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from threading import Event, Thread

import pytest

from teamchat.cli.startup.workspace import store_file
from tests.cli.test_worktrees import commit
from tests.cli.test_worktrees import shell as team
from tests.core.checkpoint.worktree import WorkTree
from tests.program import Result, Started, argv, ended, run_here

pytestmark = pytest.mark.long

EDITS = int(os.environ.get("EDITS", "40"))
SEED = int(os.environ.get("SEED", "0"))
A_CASE = 20
LARGE = 51 * 1024**2
PATHS = ("c0.txt", "c1.txt", "c10.txt", "c11.txt", "n0.txt", "deep/er/d.txt", "large.bin", "c29.txt")
WORK = (
    "test -e ../ran && echo Done && exit; "
    "for n in 0 1 2 3 4 5 6 7 8 9; do echo turn >> c$n.txt; echo new > n$n.txt; rm c1$n.txt; done; "
    "mkdir -p deep/er; echo deep > deep/er/d.txt; echo turn > large.bin; touch ../ran"
)
BEFORE = {"redo": "undo --yes", "merge --undo": "merge max"}
COMMANDS = {
    "undo": "undo --yes",
    "undo --force": "undo --yes --force",
    "redo": "redo --yes",
    "redo --force": "redo --yes --force",
    "retry": "retry --yes",
    "merge": "merge max",
    "merge --undo": "merge --undo max",
}


@dataclass
class User:
    """Edits files while a command runs: `edits` has the path and the word of each that its user has not undone."""

    top: Path
    state: Path
    chance: random.Random
    over: Event = field(default_factory=Event)
    edits: list[tuple[str, str]] = field(default_factory=list)

    def work(self) -> None:
        if self.chance.random() < 0.7:  # most of the time when files are being put back
            while not (self.over.is_set() or list(self.state.glob("workspaces/*/restoring/*"))):
                time.sleep(0.001)
            time.sleep(self.chance.random() * 0.02)
        else:
            time.sleep(self.chance.random() * 1.5)
        while not self.over.is_set():
            self.edit(self.chance.choice(PATHS))
            time.sleep(self.chance.random() * 0.01)

    def edit(self, path: str) -> None:
        word = f"edit-{self.chance.getrandbits(64):016x}"
        way = self.chance.choice((self.in_place, self.slowly, self.by_rename))
        try:
            way(self.top / path, word)
        except (FileNotFoundError, NotADirectoryError):  # its folder is gone
            return
        if way == self.by_rename and path == "large.bin":  # without what it had
            self.edits = [one for one in self.edits if one[0] != path]
        self.edits.append((path, word))

    def in_place(self, file: Path, word: str) -> None:
        with file.open("a") as opened:
            opened.write(word)

    def slowly(self, file: Path, word: str) -> None:
        with file.open("a") as opened:
            time.sleep(self.chance.random() * 0.1)
            opened.write(word)

    def by_rename(self, file: Path, word: str) -> None:
        new = file.with_name(f".{file.name}.swp")
        if file.name == "large.bin":
            with new.open("wb") as opened:
                opened.write(word.encode())
                opened.truncate(LARGE)
        else:
            new.write_bytes((file.read_bytes() if file.exists() else b"") + word.encode())
        new.replace(file)


@dataclass
class Story:
    """Repositories below a folder, each for one command that runs while its user edits."""

    folder: Path
    chance: random.Random
    numbers: Iterator[int] = field(default_factory=count)
    edits: int = 0
    ends: dict[str, int] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)

    def round(self, name: str) -> None:
        top, state = self._prepare(name)
        user = User(top, state, self.chance)
        editing = Thread(target=user.work)
        words, pipe = argv(*COMMANDS[name].split()), subprocess.PIPE
        with Started(words, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe) as process:
            editing.start()
            ran = ended(process)
            user.over.set()
            editing.join()
        assert "Traceback" not in ran.err, ran.err
        assert not list(state.glob("workspaces/*/restoring/*")), ran
        self.edits += len(user.edits)
        self.ends[f"{name}: {ran.code}"] = self.ends.get(f"{name}: {ran.code}", 0) + 1
        places = list(told(ran))
        gone = {(path, word) for path, word in user.edits if not has([top / path, *places], word)}
        if gone:
            gone -= {one for one in gone if in_checkpoints(top, state, one[1])}
        self.lost += [f"{name}: {path}: {word}: {ran}" for path, word in gone]

    def _prepare(self, name: str) -> tuple[Path, Path]:
        """Everything as it is when the command can run."""
        top = self.folder / str(next(self.numbers)) / "work"
        tree = WorkTree.make(top, top, "-b", "main")
        for number in range(30):
            tree.write(f"c{number}.txt", b"first\n")
        tree.write("large.bin", b"small\n")
        tree.write(".gitignore", b"teamchat.toml\n")
        tree.git("add", "--all")
        commit(tree, "first")
        os.chdir(top)
        merges = name.startswith("merge")
        team(top, {"workspace": "worktree"} if merges else {}, max=WORK)
        kind = name.removesuffix(" --force")
        for words in ("send Go", *([BEFORE[kind]] if kind in BEFORE else [])):
            ran = run_here(*words.split())
            assert ran.code == 0, (words, ran)
        return top, store_file(top).parent.parent.parent


def told(ran: Result) -> Iterator[Path]:
    """The places that a command names."""
    for line in ran.err.splitlines():
        if line.startswith("· kept: "):
            yield Path(line.split(" is at ")[1])
        elif line.startswith("  try: mv "):
            yield Path(line.split()[2])


def has(files: list[Path], word: str) -> bool:
    there = [file for file in files if os.path.lexists(file)]
    return any(word.encode() in file.read_bytes() for file in there)


def in_checkpoints(top: Path, state: Path, word: str) -> bool:
    """Whether a checkpoint that is kept has the word: one was taken before the file was replaced."""
    for store in (top / ".git", *state.glob("workspaces/*/checkpoints/*")):
        git = ["git", f"--git-dir={store}"]
        refs = subprocess.run([*git, "for-each-ref", "--format=%(refname)", "refs/teamchat"], capture_output=True)  # noqa: PLW1510
        for ref in refs.stdout.decode().split():
            if subprocess.run([*git, "grep", "-qaF", word, ref], capture_output=True, check=False).returncode == 0:
                return True
    return False


@pytest.mark.parametrize("seed", range(SEED, SEED + max(1, EDITS // A_CASE)))
def test_no_edit_of_the_user_is_lost(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    story = Story(tmp_path, random.Random(seed))  # noqa: S311 (no secret)
    names = list(COMMANDS)
    story.chance.shuffle(names)
    for number in count():
        if story.edits >= A_CASE:
            break
        story.round(names[number % len(names)])
    print(f"seed {seed}: {story.edits} edits, {story.ends}")
    assert story.lost == [], f"seed {seed}"
