"""`worktrees remove` and `sessions delete` lose nothing that only a worktree has: it stays, or it moves and is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.helpers import objects, refused
from tests.cli.test_worktrees import folder_of, shell
from tests.cli.test_worktrees import tree as tree  # noqa: PLC0414 (a fixture)
from tests.core.checkpoint.worktree import WorkTree
from tests.program import Result, run_here

LARGE = 50 * 1024**2 + 1
COMMIT = "git -c user.name=max -c user.email=max@example.invalid commit -qam"
REMOVALS = (("worktrees", "remove", "max"), ("sessions", "delete", "--yes", "s1"))
ONLY_THERE = {
    "ignored": ("mkdir -p build/in; echo mine > build/in/out", "build/", "build/in/out"),
    "large": (f"truncate -s {LARGE} big.bin", "big.bin", "big.bin"),
    "nested": ("git init -q inner; echo mine > inner/file", "inner/", "inner/file"),
}


def kept(ran: Result) -> Path:
    (line,) = (line for line in ran.err.splitlines() if line.startswith("· kept: "))
    return Path(line.split(" is at ")[1])


def work(tree: WorkTree, command: str) -> Path:
    shell(tree.top, max=command)
    ran = run_here("send", "Go")
    assert ran.code == 0, ran.err
    return folder_of(tree, "max")


@pytest.mark.parametrize("words", REMOVALS, ids=lambda words: words[0])
@pytest.mark.parametrize("what", ONLY_THERE)
def test_what_only_a_worktree_has_stays_or_moves(tree: WorkTree, what: str, words: tuple[str, ...]) -> None:
    command, named, path = ONLY_THERE[what]
    folder = work(tree, command)
    content = (folder / path).read_bytes()
    assert refused(run_here(*words)) == f"only max's worktree {folder} has {named}; --force moves it"
    assert (folder / path).read_bytes() == content
    listed = run_here("worktrees").out.splitlines()
    assert listed[0].endswith("what only it has is not merged")
    assert listed[-1] == f"  only there: {named}"
    (row,) = objects(run_here("worktrees", "--json"))
    assert (row["only_there"], row["detached_commits"]) == ([named], 0)
    place = kept(run_here(*words, "--force"))
    assert not folder.exists()
    assert (place / path).read_bytes() == content
    files = {file.relative_to(place).parts[0] for file in place.rglob("*") if file.is_file()}
    assert files == {Path(path).parts[0]}  # what the user has, too, is not kept


@pytest.mark.parametrize("words", REMOVALS, ids=lambda words: words[0])
def test_commits_on_no_branch_get_one(tree: WorkTree, words: tuple[str, ...]) -> None:
    folder = work(
        tree, f"git checkout -q --detach; echo detached > app.txt; {COMMIT} detached; git checkout -q HEAD~ -- app.txt"
    )
    (tree.top / "app.txt").write_text((folder / "app.txt").read_text())
    told = refused(run_here(*words))
    assert told == f"only max's worktree {folder} has 1 commit on no branch; --force moves it"
    (line,) = (line for line in run_here(*words, "--force").err.splitlines() if "on no branch" in line)
    branch = line.removeprefix("· its commits that were on no branch are on ").removesuffix(" now")
    assert tree.git("show", f"{branch}:app.txt") == "detached\n"


def test_a_stash_stays(tree: WorkTree) -> None:
    work(tree, "echo stashed > app.txt; git -c user.name=m -c user.email=m@example.invalid stash -q")
    run_here("worktrees", "remove", "--force", "max")
    assert tree.git("show", "stash@{0}:app.txt") == "stashed\n"


def test_what_is_not_merged_moves(tree: WorkTree) -> None:
    folder = work(tree, "echo mine >> app.txt; ln -s app.txt link; mkfifo pipe")
    content = (folder / "app.txt").read_text()
    assert "not merged" in refused(run_here("worktrees", "remove", "max"))
    place = kept(run_here("worktrees", "remove", "--force", "max"))
    assert (place / "app.txt").read_text() == content
    assert (place / "link").is_symlink()
    assert (place / "pipe").is_fifo()


def test_where_all_is_merged_nothing_is_kept(tree: WorkTree) -> None:
    folder = work(tree, "echo mine >> app.txt; ln -s docs link")
    assert run_here("merge", "max").code == 0
    assert run_here("worktrees").out.splitlines()[0].endswith("all is merged")
    ran = run_here("worktrees", "remove", "max")
    assert (ran.code, ran.err) == (0, "· the worktree of max is removed\n")
    assert not folder.exists()
    assert not list(Path(folder).parents[3].glob("kept/*"))


def test_a_file_that_somebody_still_writes_to_is_kept(tree: WorkTree) -> None:
    folder = work(tree, "true")
    with (folder / "app.txt").open("a") as opened:
        place = kept(run_here("worktrees", "remove", "max"))
        opened.write("late\n")
    assert (place / "app.txt").read_text().endswith("late\n")
