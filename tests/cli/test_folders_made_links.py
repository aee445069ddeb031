"""A folder that a turn moves and replaces by a link to it, and a link that it replaces by a folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.test_worktrees import own_files
from tests.cli.test_worktrees import shell as own_worktree
from tests.core.checkpoint.worktree import WorkTree
from tests.program import run_here
from tests.shell_team import repository, shell

LINKED = "mv tests shared; ln -s shared tests"
TURNS = {
    "a folder becomes a link to what it had": ("", LINKED),
    "a folder becomes a link to its copy": ("", "cp -r tests other; rm -r tests; ln -s other tests"),
    "a folder becomes a link to nothing": ("", "rm -r tests; ln -s nowhere tests"),
    "a folder becomes a link out of the tree": ("", "mkdir ../out; mv tests/* ../out; rmdir tests; ln -s ../out tests"),
    "a folder in a folder becomes a link": (
        "mkdir -p tests/deep/er; echo 3 > tests/deep/er/x", "mv tests/deep up; ln -s ../up tests/deep",
    ),
    "a folder becomes a file": ("", "rm -r tests; echo one > tests"),
    "a link becomes the folder that it led to": (LINKED, "rm tests; mv shared tests"),
    "a link becomes a folder beside what it led to": (LINKED, "rm tests; cp -r shared tests; echo 9 > tests/one.py"),
    "a link in a folder becomes a folder": (
        "mkdir up; echo 3 > up/x; ln -s ../up tests/deep", "rm tests/deep; mkdir tests/deep; echo 4 > tests/deep/x",
    ),
    "a file becomes a folder with its name in it": ("", "rm app.py; mkdir app.py; echo 1 > app.py/app.py"),
}  # fmt: skip


def before_the_turn(tree: WorkTree, commands: str) -> None:
    assert os.system(f"cd {tree.top} && {commands or 'true'}") == 0  # noqa: S605 (our own words)
    tree.git("add", "--all")
    tree.git("-c", "user.name=kai", "-c", "user.email=kai@example.invalid", "commit", "-q", "--allow-empty", "-m", "2")


@pytest.fixture
def tree(world: Path, tmp_path: Path) -> WorkTree:
    del world
    return repository(tmp_path / "unused")


@pytest.mark.parametrize("turn", TURNS)
def test_it_is_undone_and_redone_like_any_other_turn(tree: WorkTree, turn: str) -> None:
    first, command = TURNS[turn]
    before_the_turn(tree, first)
    shell(max=command)
    before = tree.files()
    assert run_here("send", "Go").code == 0
    after = tree.files()
    for _ in range(2):
        ran = run_here("undo", "--yes")
        assert (ran.code, tree.files()) == (0, before), ran.err
        ran = run_here("redo", "--yes")
        assert (ran.code, tree.files()) == (0, after), ran.err


@pytest.mark.parametrize("options", [(), ("--theirs",), ("--ours",)])
@pytest.mark.parametrize("turn", [name for name in TURNS if "out of" not in name])
def test_it_is_merged_and_the_merge_undone(tree: WorkTree, turn: str, options: tuple[str, ...]) -> None:
    first, command = TURNS[turn]
    (tree.top / ".gitignore").write_text("build/\nscripts/\nhome/\nstate/\ntmp/\nteamchat.toml\n")
    before_the_turn(tree, first)
    own_worktree(tree.top, max=command)
    before = own_files(tree)
    assert run_here("send", "Go").code == 0
    assert own_files(tree) == before
    ran = run_here("merge", "max", *options)
    assert ran.code == 0, ran.err
    before_the_turn(tree, "true")
    merged = own_files(tree)
    assert merged != before
    ran = run_here("merge", "max", "--undo")
    assert (ran.code, own_files(tree)) == (0, before), ran.err


@pytest.mark.parametrize("there", ["echo mine > tests", "ln -s . tests", "mkdir tests; echo mine > tests/one.py"])
def test_what_a_person_put_there_since_is_in_the_way_and_stays(tree: WorkTree, there: str) -> None:
    shell(max="mv tests shared; ln -s shared tests")
    assert run_here("send", "Go").code == 0
    before_the_turn(tree, f"rm tests; {there}")
    after = tree.files()
    ran = run_here("undo", "--yes")
    assert ran.code == 1
    assert "changed since, by somebody else" in ran.err
    assert tree.files() == after


@pytest.mark.parametrize("there", ["echo mine > build", "ln -s tests build"])
def test_what_git_ignores_is_in_the_way_of_a_folder_and_stays(tree: WorkTree, there: str) -> None:
    (tree.top / ".gitignore").write_text("build\nscripts/\nhome/\n")
    before_the_turn(tree, "mkdir build; echo 1 > build/one.py; git add -f build")
    shell(max="rm -r build")
    assert run_here("send", "Go").code == 0
    assert os.system(f"cd {tree.top} && {there}") == 0  # noqa: S605 (our own words)
    after = tree.files()
    ran = run_here("undo", "--yes")
    assert (ran.code, tree.files()) == (1, after)
    assert "build/one.py changed since, by somebody else" in ran.err


def test_a_file_that_no_checkpoint_has_goes_from_the_place_of_a_folder_and_is_kept(tree: WorkTree) -> None:
    before_the_turn(tree, "")
    shell(max="rm -r tests; truncate -s 60M tests")
    before = tree.files()
    assert run_here("send", "Go").code == 0
    ran = run_here("undo", "--yes")
    assert (ran.code, tree.files()) == (0, before), ran.err
    assert "kept: tests" in ran.err


@pytest.mark.parametrize("there", ["echo mine > build", "ln -s tests build", "mkfifo build"])
def test_force_keeps_what_is_in_the_way_of_a_folder(tree: WorkTree, there: str) -> None:
    (tree.top / ".gitignore").write_text("build\nscripts/\nhome/\n")
    before_the_turn(tree, "mkdir build; echo 1 > build/one.py; git add -f build")
    shell(max="rm -r build")
    before = tree.files()
    assert run_here("send", "Go").code == 0
    assert os.system(f"cd {tree.top} && {there}") == 0  # noqa: S605 (our own words)
    ran = run_here("undo", "--yes", "--force")
    assert (ran.code, tree.files()) == (0, before), ran.err
    assert "kept: build" in ran.err
