"""A file of the work tree that teamchat's own output is redirected to: it is no change of a member."""

from __future__ import annotations

import shlex
import subprocess

import pytest

from tests.cli.test_changed_files import changes, named
from tests.cli.test_changed_files import tree as tree  # noqa: PLC0414 (a fixture)
from tests.core.checkpoint.worktree import WorkTree
from tests.program import TIMEOUT_S, argv, run_here
from tests.shell_team import shell

SLOW = "echo Fine.; sleep 0.5"  # its text is printed while it works


def at_shell(command: str) -> None:
    """Run teamchat in a shell, with the redirections of the command."""
    line = f"{shlex.join(argv())} {command}"
    subprocess.run(line, shell=True, stdin=subprocess.DEVNULL, timeout=TIMEOUT_S, check=True)  # noqa: S602


@pytest.mark.parametrize(
    "redirections", ["> review.jsonl", "> out.txt 2> err.log", "2>> err.log > /dev/null", ">> app.py"]
)
def test_a_member_is_not_charged_with_the_output_and_undo_is_not_refused(tree: WorkTree, redirections: str) -> None:
    shell(max=SLOW)
    tree.git("add", "teamchat.toml")
    at_shell(f"send --json --stream 'Go' {redirections}")
    assert named(changes()) == {}
    assert changes()["left_out"] == []
    assert "changed" not in run_here("show").out
    ran = run_here("undo", "--yes")
    assert (ran.code, "changed since" in ran.err) == (0, False)


def test_a_file_of_two_names_is_no_change_at_either(tree: WorkTree) -> None:
    shell(max=SLOW)
    (tree.top / "one.jsonl").touch()
    (tree.top / "two.jsonl").hardlink_to(tree.top / "one.jsonl")
    at_shell("send --json --stream 'Go' > one.jsonl")
    assert (named(changes()), changes()["left_out"]) == ({}, [])


def test_what_the_member_itself_changed_is_told_and_goes_back(tree: WorkTree) -> None:
    shell(max=f"{SLOW}; echo new > made; echo more >> app.py")
    before = (tree.top / "app.py").read_bytes()
    at_shell("send --json --stream 'Go' > review.jsonl 2> err.log")
    assert named(changes()) == {"app.py": "changed", "made": "added"}
    review = (tree.top / "review.jsonl").read_bytes()
    assert run_here("undo", "--yes").code == 0
    assert ((tree.top / "app.py").read_bytes(), (tree.top / "made").exists()) == (before, False)
    assert (tree.top / "review.jsonl").read_bytes() == review != b""


def test_the_same_file_may_take_the_output_again_and_then_be_changed_by_a_member(tree: WorkTree) -> None:
    shell(max=SLOW)
    for _ in range(2):
        at_shell("send --json --stream 'Go' > review.jsonl")
        assert named(changes()) == {}
    shell(max="echo more >> review.jsonl")
    review = (tree.top / "review.jsonl").read_bytes()
    assert run_here("send", "Go").code == 0
    assert named(changes()) == {"review.jsonl": "changed"}
    assert run_here("undo", "--yes").code == 0
    assert (tree.top / "review.jsonl").read_bytes() == review


def test_the_output_of_undo_itself_is_in_nobodys_way(tree: WorkTree) -> None:
    shell(max="echo new > made")
    assert run_here("send", "Go").code == 0
    at_shell("undo --yes > undone.txt")
    assert not (tree.top / "made").exists()
    assert "undoes made" in (tree.top / "undone.txt").read_text()
