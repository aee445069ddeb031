"""The real program, killed at the writes that make, merge and remove a worktree: the command again completes it.

`DEATHS=1` kills it at each write.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.cli.test_killed import Mortals
from tests.cli.test_killed import mortals as mortals  # noqa: PLC0414 (a fixture)
from tests.cli.test_killed_undo import killed
from tests.cli.test_worktrees import folder_of, shell
from tests.cli.test_worktrees import own_files as files_but_state
from tests.cli.test_worktrees import tree as tree  # noqa: PLC0414 (a fixture)
from tests.core.checkpoint.worktree import Files, WorkTree
from tests.program import run_here

pytestmark = pytest.mark.long

EVERY = 1 if "DEATHS" in os.environ else 61
WORK = "grep -q max app.txt || echo max >> app.txt; rm -f docs/one.md; echo new > made.txt; ln -sf made.txt link"
MERGE, UNDO, REMOVE = ("merge", "max"), ("merge", "--undo", "max"), ("worktrees", "remove", "--force", "max")


@pytest.fixture(autouse=True)
def _git_as_it_was(tree: WorkTree) -> Iterator[None]:
    """What is the user's own in git is the same in the end."""

    def look() -> list[object]:
        found = tree.standing()
        return [found[what] for what in ("HEAD", "index", "stash", "config")]

    before = look()
    yield
    assert look() == before
    assert tree.git("fsck", "--strict", "--no-dangling") == ""


def own_files(tree: WorkTree) -> Files:
    """The user's files. A killed process leaves its temporary ones."""
    return {path: found for path, found in files_but_state(tree).items() if not path.startswith(b"tmp/")}


def test_what_a_killed_removal_took_out_is_named(tree: WorkTree, mortals: Mortals) -> None:
    shell(tree.top, max="mkdir -p build; echo mine > build/out")
    ends = set()
    for step in count(1, 1 if "DEATHS" in os.environ else 7):
        assert run_here("send", "Go").code == 0
        file = folder_of(tree, "max") / "build" / "out"
        if not killed(mortals, step, *REMOVE):
            break
        if not file.exists():
            told = run_here(*REMOVE).err.splitlines()
            (place,) = (
                Path(line.split(" is at ")[1].split(", which")[0]) for line in told if line.startswith("· kept: ")
            )
            assert (place / "build" / "out").read_text() == "mine\n", step
        ends.add(file.exists())
    assert ends == {True, False}


def in_worktree(tree: WorkTree) -> Files:
    return WorkTree(folder_of(tree, "max"), tree.state).files()


def test_the_killed_making_and_removal_of_a_worktree_are_completed(tree: WorkTree, mortals: Mortals) -> None:
    shell(tree.top, max=WORK)
    users = own_files(tree)
    assert run_here("send", "Go").code == 0
    wanted = in_worktree(tree)
    for step in count(1, EVERY):
        died = [killed(mortals, step, *REMOVE)]
        assert run_here(*REMOVE).code in {0, 4}  # 4: it had removed everything
        assert run_here("worktrees", "--json").out == ""
        assert tree.git("worktree", "list").count("\n") == 1
        assert tree.git("branch", "--list", "teamchat/*") == ""
        died.append(killed(mortals, step, "send", "Go"))
        assert run_here("worktrees").code == 0
        if died[1] and run_here("resume").code != 0:  # it was killed before the message was stored, or after the turn
            assert run_here("send", "Go").code == 0
        assert (in_worktree(tree), own_files(tree)) == (wanted, users), step
        assert tree.git("worktree", "list").count("\n") == 2
        assert tree.git("branch", "--list", "teamchat/*").count("\n") == 1
        if not any(died):
            break
    assert step > 150


def test_a_killed_merge_and_its_killed_undo_are_completed_or_reversed(tree: WorkTree, mortals: Mortals) -> None:
    users, merged = ready_to_merge(tree)
    for step in count(1, EVERY):
        died = [killed(mortals, step, *MERGE)]
        assert run_here(*MERGE).code == 0
        assert own_files(tree) == merged, step
        died.append(killed(mortals, step, *UNDO))
        assert run_here(*UNDO).code in {0, 2}  # 2: it had put back everything
        assert own_files(tree) == users, step
        died.append(killed(mortals, step, *MERGE))
        assert run_here(*UNDO).code in {0, 2}  # 2: it had merged nothing yet
        assert own_files(tree) == users, step
        assert run_here(*MERGE).code == 0
        died.append(killed(mortals, step, *UNDO))
        assert run_here(*MERGE).code == 0
        assert own_files(tree) == merged, step
        assert run_here(*UNDO).code == 0
        assert own_files(tree) == users, step
        if not any(died):
            break
    assert step > 90


def ready_to_merge(tree: WorkTree) -> tuple[Files, Files]:
    """The user's files before and after the merge of a worktree, of which an earlier part is merged already."""
    shell(tree.top, max="echo first > first.txt; sed -i s/1/one/ app.txt")
    assert run_here("send", "Go").code == 0
    assert run_here(*MERGE).code == 0
    shell(tree.top, max=WORK)
    assert run_here("send", "Go on").code == 0
    users = own_files(tree)
    assert run_here(*MERGE).code == 0
    merged = own_files(tree)
    assert run_here(*UNDO).code == 0
    assert own_files(tree) == users != merged
    return users, merged


def test_a_killed_merge_with_a_conflict_changes_nothing(tree: WorkTree, mortals: Mortals) -> None:
    shell(tree.top, max=WORK.replace("echo max >>", "sed -i s/2/max/"))
    assert run_here("send", "Go").code == 0
    tree.write("app.txt", b"a = 1\nb = mine\nc = 4\n")
    users, theirs = own_files(tree), in_worktree(tree)
    for step in count(1, EVERY):
        ran = mortals.ask(args=MERGE, env=dict(os.environ), cwd=str(tree.top), count="writes", last=step)
        assert mortals.ask(settle=60.0) == []
        assert (own_files(tree), in_worktree(tree)) == (users, theirs), step
        if ran["code"] == 1:
            break
    assert "conflict: app.txt (the same lines)" in run_here(*MERGE).err
    assert step > 60
