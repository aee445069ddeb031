"""What a look keeps for the next one changes nothing but the time that this one takes."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teamchat.core.checkpoint import take as taking
from teamchat.core.checkpoint import walk as walking
from teamchat.core.checkpoint.memory import Permissions, folders_of_files
from teamchat.core.checkpoint.notes import notes
from teamchat.core.checkpoint.values import CheckpointLimits
from tests.core.checkpoint.worktree import WorkTree

BITS = st.sampled_from([0o644, 0o755, 0o600, 0o640, None])
SMALL = CheckpointLimits(file_bytes=100)


@given(st.dictionaries(st.sampled_from("abcdefgh"), BITS), st.lists(st.tuples(st.sampled_from("abcdefgh"), BITS)))
def test_permissions_that_change_are_noted_as_if_they_had_been_so_from_the_start(
    found: dict[str, int | None], steps: list[tuple[str, int | None]]
) -> None:
    kept = Permissions.of(found)
    for path, bits in steps:
        if path in found:
            kept.remove(path)
            del found[path]
        else:
            kept.put(path, bits)
            found[path] = bits
        if kept.most not in kept.usual().values():
            kept = Permissions.of(found)
        assert notes(kept, {}, ()) == notes(Permissions.of(found), {}, ())


def test_the_folders_of_files_are_all_above_them() -> None:
    assert folders_of_files(["a", "b/c/d/e", "b/f", "g/h"]) == ["b", "b/c", "b/c/d", "g"]


@pytest.mark.skipif(not os.path.ismount("/dev/shm"), reason="nothing is mounted there")
def test_a_folder_of_another_device_is_listed_with_each_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walking, "SOON_S", -1e9)  # else every folder is as young as a new machine
    found = walking.walk(Path("/dev"), {name.name for name in Path("/dev").iterdir()} - {"shm"}, {})
    assert (bool(found.folders[""].state), found.folders["shm"].state) == (True, ())


def steps(tree: WorkTree) -> list[Callable[[], object]]:
    """What people and members do to a work tree, each once."""
    top, notes = tree.top, tree.top / "notes.txt"

    def saved_by_rename() -> None:
        tree.write("src/app.py.new", b"again\n")
        (top / "src/app.py.new").rename(top / "src/app.py")

    def linked() -> None:
        (top / "src/link").symlink_to("app.py")

    def nested() -> None:
        tree.write("inner/file", b"x")
        subprocess.run(("git", "init", "-q"), cwd=top / "inner", check=True)

    return [
        lambda: None,
        lambda: notes.write_bytes(b"other\n"),
        saved_by_rename,
        lambda: notes.chmod(0o600),
        lambda: tree.write("new/deep/file", b"new\n", 0o640),
        lambda: (top / "new").chmod(0o700),
        lambda: tree.write(".gitignore", b"*.log\nbuild/\n"),
        lambda: tree.write("a.log", b"x"),
        lambda: tree.write("build/out", b"x"),
        lambda: tree.write("build/deep/out", b"x"),
        lambda: tree.git("add", "--force", "build/out", fails=True),
        lambda: tree.write("new/.gitignore", b"file\n"),
        lambda: tree.write("new/file", b"x"),
        (top / "new/.gitignore").unlink,
        lambda: (top / ".gitignore").write_bytes(b"*.log\n"),
        lambda: tree.write("large", b"x" * 101),
        lambda: tree.write("large", b"small"),
        lambda: tree.write(".env", b"KEY=1", 0o600),
        lambda: tree.git("add", "--force", ".env", fails=True),
        linked,
        lambda: os.mkfifo(top / "pipe"),
        nested,
        lambda: shutil.rmtree(top / "inner/.git"),
        lambda: shutil.rmtree(top / "new"),
        notes.unlink,
        lambda: tree.git("checkout", "-q", ".", fails=True),
        lambda: tree.git("add", "--all", fails=True),
        lambda: (top / "src").rename(top / "moved"),
        lambda: tree.write("moved", b"x") if not (top / "moved").exists() else shutil.rmtree(top / "moved"),
        lambda: (tree.repository.git_dir / "info/exclude").write_text("*.tmp\n"),
        lambda: tree.write("a.tmp", b"x"),
        lambda: tree.write("b", b"x"),
        lambda: subprocess.run(("git", "init", "-q"), cwd=top / "src", check=False),
        lambda: tree.write("src/deep/file", b"x"),
        lambda: tree.write("src/deep/.gitignore", b"*.out\n"),
        lambda: tree.write("src/deep/a.out", b"x"),
        lambda: tree.write("src/deep/other", b"x"),
        lambda: shutil.rmtree(top / "src/.git/objects"),
        lambda: tree.write("src/deep/third", b"x"),
        lambda: tree.write("inner/deep/file", b"x"),
        lambda: tree.git("add", "--force", "inner/deep/file", fails=True),
        lambda: tree.write("inner/deep/other", b"x"),
    ]


@pytest.mark.parametrize("seed", [0, pytest.param(34, marks=pytest.mark.long)])
def test_a_look_that_remembers_the_last_one_sees_what_one_sees_that_does_not(
    tree: WorkTree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(walking, "SOON_S", 0.02)
    todo, unchanged = steps(tree), set[bool]()
    if seed:
        random.Random(seed).shuffle(todo)  # noqa: S311 (the same order each time)
    others = taking._Look._others

    def listed(look: taking._Look) -> list[str]:
        unchanged.add(look.unchanged)
        return others(look)

    monkeypatch.setattr(taking._Look, "_others", listed)
    for number, step in enumerate(todo):
        with suppress(OSError):  # what it changes is not there in this order
            step()
        time.sleep(0.03)
        for begins in (False, True):
            forgets = WorkTree(tree.top, tmp_path / f"{number}-{begins}")
            if tree.state.exists():
                shutil.copytree(tree.state, forgets.state)
            for memory in forgets.state.rglob("*.memory"):
                memory.unlink()
            sees, remembers = (one.begin() if begins else one.take("now", SMALL) for one in (forgets, tree))
            assert (remembers.tree, remembers.left_out) == (sees.tree, sees.left_out), (number, begins)
    assert unchanged == {True, False}
