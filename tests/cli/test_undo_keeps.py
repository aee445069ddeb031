"""Undo, retry and `merge --undo` destroy nothing that no checkpoint has: it stays, or it is kept and told."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from tests.cli.helpers import objects
from tests.cli.test_worktrees import shell as with_worktree
from tests.cli.test_worktrees_removed import kept
from tests.core.checkpoint.worktree import WorkTree
from tests.program import run_here
from tests.shell_team import repository, shell

LARGE = 50 * 1024**2 + 1


@pytest.fixture
def tree(tmp_path: Path) -> WorkTree:
    return repository(tmp_path / "unused")


def make_large(file: Path, word: str) -> None:
    file.write_text(word)
    os.truncate(file, LARGE)


@pytest.mark.parametrize("made", [f"truncate -s {LARGE} app.py", "rm app.py; mkfifo app.py"], ids=["large", "pipe"])
def test_what_a_turn_made_of_its_own_file_is_taken_out(tree: WorkTree, made: str) -> None:
    before = (tree.top / "app.py").read_bytes()
    shell(max=f"echo 1 >> run.sh; {made}")
    assert run_here("send", "Go").code == 0
    ran = run_here("undo", "--yes")
    assert ran.code == 0, ran.err
    assert (tree.top / "app.py").read_bytes() == before
    assert (tree.top / "run.sh").read_bytes() == b"#!/bin/sh\n"
    assert os.path.lexists(kept(ran))


IGNORES_ITS_OWN = (
    "echo 1 >> run.sh; mkdir z; echo z/ > .gitignore; echo precious > z/new; chmod 600 z/new; echo t > .env"
)


def test_each_undo_and_redo_takes_and_brings_what_a_turn_made_and_had_git_ignore(tree: WorkTree) -> None:
    shell(max=IGNORES_ITS_OWN)
    assert run_here("send", "Go").code == 0
    made = {name: (tree.top / name).read_bytes() for name in ("run.sh", ".gitignore", "z/new", ".env")}
    for _ in range(3):
        ran = run_here("undo", "--yes")
        assert ran.code == 0, ran.err
        assert [(tree.top / name).exists() for name in made] == [True, True, False, False]
        ran = run_here("redo", "--yes")
        assert ran.code == 0, ran.err
        assert {name: (tree.top / name).read_bytes() for name in made} == made


def test_undo_in_two_steps_is_undo_in_one(tree: WorkTree) -> None:
    shell(max=IGNORES_ITS_OWN, sarah="echo two >> app.py")
    assert run_here("send", "--to", "max", "Go").code == 0
    assert run_here("send", "--to", "sarah", "Go").code == 0
    assert run_here("undo", "--yes").code == 0
    assert (tree.top / "z/new").exists()
    ran = run_here("undo", "--yes")
    assert (ran.code, (tree.top / "z/new").exists(), (tree.top / ".env").exists()) == (0, False, False), ran.err


@pytest.mark.parametrize("command", ["undo", "retry"])
def test_force_keeps_a_large_file_of_the_user(tree: WorkTree, command: str) -> None:
    shell(max="test -e ../ran || rm app.py; touch ../ran")
    assert run_here("send", "Go").code == 0
    make_large(tree.top / "app.py", "mine")
    ran = run_here(command, "--yes")
    assert (ran.code, ran.err.splitlines()[0]) == (
        1,
        "teamchat: nothing was done: app.py changed since, by somebody else",
    )
    assert (tree.top / "app.py").stat().st_size == LARGE
    ran = run_here(command, "--yes", "--force")
    assert ran.code == 0, ran.err
    assert (tree.top / "app.py").read_bytes() == b"a = 1\nb = 2\n"
    place = kept(ran)
    assert place.stat().st_size == LARGE
    assert place.read_bytes()[:4] == b"mine"
    assert f"· try: mv {place} {tree.top / 'app.py'}" in ran.err


def test_json_has_the_place(tree: WorkTree) -> None:
    shell(max="rm app.py")
    run_here("send", "Go")
    make_large(tree.top / "app.py", "mine")
    (line,) = objects(run_here("undo", "--yes", "--force", "--json"))
    assert isinstance(line["kept"], list)
    (one,) = line["kept"]
    assert (one["top"], one["path"]) == (str(tree.top), "app.py")
    assert Path(one["place"]).stat().st_size == LARGE


@pytest.mark.parametrize("what", ["large", "pipe"])
def test_an_undone_merge_leaves_what_no_checkpoint_has(tree: WorkTree, what: str) -> None:
    with_worktree(tree.top, max="echo more >> app.py; rm tests/one.py")
    assert run_here("send", "Go").code == 0
    assert run_here("merge", "max").code == 0
    for path in ("app.py", "tests/one.py"):
        (tree.top / path).unlink(missing_ok=True)
        if what == "large":
            make_large(tree.top / path, "mine")
        else:
            os.mkfifo(tree.top / path)
    ran = run_here("merge", "--undo", "max")
    assert ran.code == 1
    assert "nothing was changed" in ran.err
    for path in ("app.py", "tests/one.py"):
        place = tree.top / path
        assert place.is_fifo() if what == "pipe" else place.stat().st_size == LARGE
    assert "more" not in (tree.top / "run.sh").read_text()


def test_a_file_that_is_open_for_writing_is_kept(tree: WorkTree) -> None:
    shell(max="echo 1 >> app.py")
    run_here("send", "Go")
    with (tree.top / "app.py").open("a") as opened:
        place = kept(run_here("undo", "--yes"))
        opened.write("late\n")
    assert place.read_text().endswith("late\n")
    assert (tree.top / "app.py").read_bytes() == b"a = 1\nb = 2\n"


def test_without_an_exchange_in_one_step_nothing_is_lost(tree: WorkTree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("teamchat.core.files.exchange._function", lambda: (None, 0, 0))
    shell(max="test -e ../ran || { echo 1 >> app.py; rm run.sh; echo new > new.txt; touch ../ran; }")
    before = tree.files()
    assert run_here("send", "Go").code == 0
    after = tree.files()
    assert run_here("undo", "--yes").code == 0
    assert tree.files() == before
    assert run_here("redo", "--yes").code == 0
    assert tree.files() == after
    make_large(tree.top / "app.py", "mine")
    assert run_here("undo", "--yes").code == 1
    assert (tree.top / "app.py").stat().st_size == LARGE
    place = kept(run_here("undo", "--yes", "--force"))
    assert place.read_bytes()[:4] == b"mine"
    assert {path: found for path, found in tree.files().items() if b"kept" not in path} == before
    assert not list(tree.top.rglob(".teamchat-2*"))


def test_files_on_another_file_system_than_the_state(tree: WorkTree) -> None:
    folders = (folder for folder in map(Path, ("/dev/shm", "/var/tmp")) if os.access(folder, os.W_OK))
    other_one = next((folder for folder in folders if folder.stat().st_dev != tree.top.stat().st_dev), None)
    if other_one is None:
        pytest.skip("there is no other file system")
    with tempfile.TemporaryDirectory(dir=other_one) as name:
        top = Path(name).resolve() / "work"
        shutil.copytree(tree.top, top, symlinks=True)
        os.chdir(top)
        other = WorkTree(top, tree.state)
        shell(max="echo 1 >> app.py; rm run.sh")
        before = other.files()
        assert run_here("send", "Go").code == 0
        make_large(top / "app.py", "mine")
        assert run_here("undo", "--yes").code == 1
        assert (top / "app.py").stat().st_size == LARGE
        place = kept(run_here("undo", "--yes", "--force"))
        assert top in place.parents
        assert place.read_bytes()[:4] == b"mine"
        assert {path: found for path, found in other.files().items() if b"kept" not in path} == before
        os.chdir(tree.top)


@pytest.mark.parametrize("turn", ["rm app.py", "echo changed > app.py"])
@pytest.mark.parametrize("what", ["large", "pipe"])
def test_a_redo_deletes_nothing_that_was_kept_by_the_undo(tree: WorkTree, turn: str, what: str) -> None:
    """What was there before the undo is in no checkpoint, so the redo cannot bring it back."""
    file, before = tree.top / "app.py", (tree.top / "app.py").read_bytes()
    shell(max=f"{turn}; echo made > made.txt")
    assert run_here("send", "Go").code == 0
    file.unlink(missing_ok=True)
    make_large(file, "mine") if what == "large" else os.mkfifo(file)
    ran = run_here("undo", "--yes", "--force")
    assert ran.code == 0, ran.err
    assert os.path.lexists(kept(ran))
    assert file.read_bytes() == before
    ran = run_here("redo", "--yes")
    assert ran.code == 0, ran.err
    assert file.read_bytes() == before
    assert (tree.top / "made.txt").exists()
    assert "not in checkpoints: app.py\n" in ran.out + ran.err
