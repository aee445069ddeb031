"""Members of a group that may write: at the same time, each in its worktree, and what they changed side by side.

`WRITERS=20` has two members change the same file 20 times.
"""

from __future__ import annotations

import os

import pytest

from tests.cli.helpers import objects
from tests.cli.test_worktrees import folder_of, own_files, shell
from tests.cli.test_worktrees import tree as tree  # noqa: PLC0414 (a fixture)
from tests.core.checkpoint.worktree import WorkTree
from tests.program import run_here

WRITERS = int(os.environ.get("WRITERS", "1"))
MEET = "touch {state}/{me}; while [ ! -e {state}/{other} ]; do sleep 0.01; done"


def meeting(tree: WorkTree, me: str, other: str) -> str:
    """Ends only while both are at work."""
    return MEET.format(state=tree.top / "tmp", me=me, other=other)


@pytest.mark.parametrize("keys", [{}, {"workspace": "worktree"}], ids=["not said", "worktree"])
@pytest.mark.parametrize("again", range(WRITERS))
def test_two_writers_change_the_same_file_at_the_same_time_and_both_are_kept(
    again: int, keys: dict[str, str], tree: WorkTree
) -> None:
    one, two = meeting(tree, "one", "two"), meeting(tree, "two", "one")
    shell(
        tree.top,
        keys,
        ann=f"{one}; sed -i s/2/ann/ app.txt; echo {again} > ann.txt",
        ben=f"{two}; sed -i s/2/ben/ app.txt",
    )
    files, index = own_files(tree), (tree.top / ".git" / "index").read_bytes()
    ran = run_here("send", "--json", "[NEXT: ann + ben] Go")
    assert ran.code == 0, ran.err
    assert own_files(tree).keys() - files.keys() == {b"tmp/one", b"tmp/two"}
    assert (tree.top / "app.txt").read_text() == "a = 1\nb = 2\nc = 4\n"
    assert (tree.top / ".git" / "index").read_bytes() == index
    [compared] = [line for line in objects(ran) if line["type"] == "group_compared"]
    assert compared["conflicts"] == [{"path": "app.txt", "members": ["ann", "ben"], "why": "the same lines"}]
    for name in ("ann", "ben"):
        assert f"b = {name}\n" in (folder_of(tree, name) / "app.txt").read_text()
    assert run_here("merge", "ann").code == 0
    refused = run_here("merge", "ben")
    assert refused.code == 1
    assert "app.txt (the same lines)" in refused.err
    assert "b = ann\n" in (tree.top / "app.txt").read_text()
    assert "b = ben\n" in (folder_of(tree, "ben") / "app.txt").read_text()
    assert (tree.top / ".git" / "index").read_bytes() == index


def test_the_differences_are_shown_side_by_side(tree: WorkTree) -> None:
    shell(tree.top, {}, ann="sed -i s/2/ann/ app.txt; echo x > ann.txt", ben="sed -i s/2/ben/ app.txt; rm docs/one.md")
    ran = run_here("send", "[NEXT: ann + ben] Go")
    assert ran.code == 0
    assert (
        "· side by side  ann    ben\n"
        "· ann.txt       +1 −0\n"
        "· app.txt       +1 −1  +1 −1\n"
        "· docs/one.md          +0 −1\n"
        "· ann and ben both changed app.txt (the same lines)\n"
        "· bring one in: teamchat merge ann, or teamchat merge ben\n"
    ) in ran.err


def test_changes_that_fit_together_are_no_conflict_and_both_are_merged(tree: WorkTree) -> None:
    shell(tree.top, {}, ann="sed -i s/1/ann/ app.txt", ben="echo ben >> app.txt")
    ran = run_here("send", "[NEXT: ann + ben] Go")
    assert "both changed" not in ran.err
    assert run_here("merge", "ann").code == 0
    assert run_here("merge", "ben").code == 0
    assert (tree.top / "app.txt").read_text() == "a = ann\nb = 2\nc = 4\nben\n"


def test_members_that_are_said_to_share_wait_for_each_other(tree: WorkTree) -> None:
    shell(tree.top, {"workspace": "shared"}, ann="echo ann >> app.txt", ben="echo ben >> app.txt")
    ran = run_here("send", "[NEXT: ann + ben] Go")
    assert "ann and ben may write in the same folder, so they speak one after the other" in ran.err
    assert (tree.top / "app.txt").read_text().endswith("ann\nben\n")


def test_one_that_writes_beside_readers_writes_into_the_users_files(tree: WorkTree) -> None:
    shell(tree.top, {}, ann="echo ann >> app.txt", ben="true")
    text = (tree.top / "teamchat.toml").read_text()
    head, ben = text.split('name = "ben"')
    (tree.top / "teamchat.toml").write_text(f'{head}name = "ben"{ben.replace("edit", "read")}')
    assert run_here("send", "--trust", "[NEXT: ann + ben] Go").code == 0
    assert (tree.top / "app.txt").read_text().endswith("ann\n")


def test_who_is_asked_again_after_a_failure_works_in_its_worktree(tree: WorkTree) -> None:
    once = "if [ ! -e ../once ]; then touch ../once; exit 1; fi"
    shell(tree.top, {}, ann="echo ann >> app.txt", ben=f"echo ben >> app.txt; {once}")
    assert run_here("send", "[NEXT: ann + ben] Go").code == 6
    assert run_here("resume").code == 0
    assert (folder_of(tree, "ben") / "app.txt").read_text().count("ben") == 2
    assert "ben" not in (tree.top / "app.txt").read_text()
