"""Whoever is killed in the middle does all again, and it ends as if nobody had been."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from itertools import count
from pathlib import Path

import pytest

from teamchat.core.checkpoint.refs import trees_of
from teamchat.core.errors import CheckpointFailed
from teamchat.runners.child.command import tied
from tests.core.checkpoint.worktree import WorkTree
from tests.runners.processes import eventually, lives

EVERY = 1 if "DEATHS" in os.environ else 3  # `make crash` kills it at all of them
MORTAL = Path(__file__).with_name("mortal.py")


def run(number: int, *arguments: str) -> int:
    argv = [sys.executable, str(MORTAL), str(number), *arguments]
    done = subprocess.run(argv, capture_output=True, check=False)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode


def taking(tree: WorkTree, name: str) -> list[str]:
    return ["take", str(tree.top), str(tree.state), f"refs/teamchat/s/{name}"]


def test_a_checkpoint_killed_before_any_of_its_writes_is_taken_by_the_next_run(tree: WorkTree, tmp_path: Path) -> None:
    tree.write("new", b"new\n")
    standing, expected = tree.standing(), WorkTree(tree.top, tmp_path / "other").take("expected").tree
    for number in count(1, EVERY):
        tree.write("new", b"new %d\n" % number)
        code = run(number, *taking(tree, "killed"))
        tree.write("new", b"new\n")
        assert tree.take().tree == expected
        assert tree.standing() == standing
        if code == 0:
            break
    assert number > 5
    assert tree.git("fsck", "--full", "--no-dangling") == ""


def test_a_checkpoint_of_a_killed_process_is_in_its_place_among_the_others(tree: WorkTree) -> None:
    tree.take()
    for number in count(1, EVERY):
        ref = f"refs/teamchat/s/{number}/before"
        code = run(number, *taking(tree, f"{number}/before"))
        kept = ["before"] if tree.stored("for-each-ref", ref) else []
        tree.take(f"{number}/after")
        taken = [ref.split("/") for ref in trees_of(tree.repository, tree.state, "s")]
        assert [ref[4] for ref in taken if ref[3] == str(number)] == [*kept, "after"]
        if code == 0:
            break
    assert number > 5


def test_files_put_back_by_a_process_that_is_killed_at_every_write(tree: WorkTree) -> None:
    tree.write("deep/er/one", b"1", 0o755)
    tree.write("folder/two", b"2")
    (tree.top / "link").symlink_to("deep")
    before, files = tree.take(), tree.files()
    shutil.rmtree(tree.top / "deep")
    shutil.rmtree(tree.top / "folder")
    tree.write("folder", b"a file now")
    (tree.top / "link").unlink()
    tree.write("link/three", b"3")
    tree.write("more/four", b"4")
    after = tree.take("1/after")
    back = {change.path: change.new for change in tree.changes(after, before)}
    for number in count(1, EVERY):
        tree.undo_to(after)
        code = run(number, "restore", str(tree.top), str(tree.state), before.tree, after.tree)
        if code == 0:
            break
        tree.restore(tree.take("again"), back)
        assert tree.files() == files
        assert not (tree.top / "more").exists()
    assert number > 20


@pytest.fixture
def shim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What runs in place of git; the test writes it."""
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    return program


def real_git(shim: Path) -> str:
    found = shutil.which("git", path=os.environ["PATH"].replace(str(shim.parent), ""))
    assert found
    return found


@pytest.mark.parametrize("command", ["diff-files", "update-index", "write-tree", "update-ref"])
def test_a_lock_that_a_killed_git_left_is_removed(command: str, tree: WorkTree, shim: Path) -> None:
    first = tree.take()
    folder = tree.repository.store
    (index,) = (file for file in folder.glob("index-*") if "." not in file.name)
    shim.write_text(
        f'#!/bin/sh\n[ "$1" = {command} ] || exec {real_git(shim)} "$@"\n'
        f"touch {index}.lock {folder}/refs/teamchat/s/1/before.lock\nkill -9 $$\n"
    )
    shim.chmod(0o755)
    tree.write("new", b"new\n")
    with pytest.raises(CheckpointFailed, match=f"git {command}"):
        tree.take()
    shim.unlink()
    (tree.top / "new").unlink()
    assert tree.take().tree == first.tree
    assert not (folder / "refs/teamchat/s/1/before.lock").exists()


def test_a_git_ends_with_its_teamchat_and_holds_no_lock(tree: WorkTree, shim: Path, tmp_path: Path) -> None:
    tree.take()
    os.mkfifo(tmp_path / "begun")
    shim.write_text(
        f'#!/bin/sh\n[ "$1" = diff-files ] && {{ echo $$ > {tmp_path}/begun; exec sleep 600; }}\n'
        f'exec {real_git(shim)} "$@"\n'
    )
    shim.chmod(0o755)
    argv = [sys.executable, str(MORTAL), "0", "take", str(tree.top), str(tree.state), "refs/teamchat/s/killed"]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as teamchat:
        git = int((tmp_path / "begun").read_text())
        teamchat.kill()
    shim.unlink()
    if tied():
        assert eventually(lambda: not lives(git))
    assert tree.take().tree


def test_several_processes_at_once_take_the_same_tree(tree: WorkTree) -> None:
    for number in range(200):
        tree.write(f"new/{number}", b"%d" % number)
    argv = [sys.executable, str(MORTAL), "0", "take", str(tree.top), str(tree.state)]
    running = [
        subprocess.Popen([*argv, f"refs/teamchat/s/at-{number}"], stdout=subprocess.PIPE, text=True)
        for number in range(4)
    ]
    trees = {process.communicate()[0] for process in running}
    assert trees == {f"{tree.take().tree}\n"}
    assert [process.returncode for process in running] == [0] * 4
