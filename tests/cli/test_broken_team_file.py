"""A turn that breaks, empties or deletes the team file can be undone, and nothing else hides behind the file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from teamchat.core.errors import ExitCode
from tests.cli.helpers import refused
from tests.core.checkpoint.worktree import WorkTree
from tests.program import run_here
from tests.shell_team import repository, shell

BREAKS = {
    "no TOML": "echo '[[members' >> teamchat.toml",
    "no members": "echo 'max_bytes = 1' > teamchat.toml",
    "another schema": "echo '[[members]]' > teamchat.toml; echo 'colour = 1' >> teamchat.toml",
    "no text": "printf '\\377\\376' > teamchat.toml",
    "empty": ": > teamchat.toml",
    "gone": "rm teamchat.toml",
    "a folder": "rm teamchat.toml; mkdir teamchat.toml",
    "a link to nowhere": "ln -sf nowhere teamchat.toml",
}


@pytest.fixture
def tree(world: Path, tmp_path: Path) -> WorkTree:
    assert world
    return repository(tmp_path / "unused")


def broken(tree: WorkTree, how: str) -> str:
    """Have a turn break the team file; what the file was."""
    shell(max=f"echo made > made.txt; {BREAKS[how]}")
    tree.git("add", "--all")
    tree.git("-c", "user.name=kai", "-c", "user.email=kai@example.invalid", "commit", "-q", "-m", "team")
    before = Path("teamchat.toml").read_text()
    ran = run_here("send", "Go")
    assert ran.code == 0, ran.err
    assert not Path("teamchat.toml").is_file() or Path("teamchat.toml").read_bytes() != before.encode()
    return before


@pytest.mark.parametrize("how", BREAKS)
def test_the_turn_that_broke_it_is_undone_and_made_again(tree: WorkTree, how: str) -> None:
    before = broken(tree, how)
    ran = run_here("undo", "--yes")
    assert ran.code == 0, ran.err
    assert Path("teamchat.toml").read_text() == before
    assert not Path("made.txt").exists()
    assert tree.git("status", "--short") == ""
    ran = run_here("redo", "--yes")
    assert ran.code == 0, ran.err
    assert Path("made.txt").exists()
    ran = run_here("undo", "--yes")  # of a redo, with the file broken again
    assert ran.code == 0, ran.err
    assert Path("teamchat.toml").read_text() == before


@pytest.mark.parametrize("how", BREAKS)
def test_what_runs_members_says_which_turn_to_undo(tree: WorkTree, how: str) -> None:
    before = broken(tree, how)
    for command in (("resume",), ("retry", "--yes")):
        ran = run_here(*command)
        assert ran.code == ExitCode.USAGE
        assert "turn 1 (max) changed it" in refused(ran)
        assert "teamchat undo 1" in ran.err
    assert run_here("undo", "1", "--yes").code == 0
    assert Path("teamchat.toml").read_text() == before


@pytest.mark.parametrize("how", BREAKS)
def test_commands_that_run_nobody_work_without_it(tree: WorkTree, how: str) -> None:
    broken(tree, how)
    for command in (("log",), ("show", "1"), ("diff",), ("worktrees",), ("sessions",), ("usage",)):
        ran = run_here(*command)
        assert ran.code == 0, (command, ran.err)
    ran = run_here("resume", "--drop")
    assert "the team file" not in ran.err
    assert "teamchat.toml" not in ran.err
    assert run_here("merge", "max").code == ExitCode.UNKNOWN_NAME
    assert run_here("undo", "--yes").code == 0
    assert run_here("sessions", "delete", "s1", "--yes").code == 0


def test_one_that_team_names_is_brought_back(tree: WorkTree) -> None:
    shell(max="echo '[[members' >> others.toml")
    os.rename("teamchat.toml", "others.toml")  # noqa: PTH104
    before = Path("others.toml").read_text()
    tree.git("add", "--all")
    assert run_here("send", "--trust", "--team", "others.toml", "Go").code == 0
    ran = run_here("resume", "--team", "others.toml")
    assert ran.code == ExitCode.USAGE
    assert "teamchat undo 1 --team others.toml" in ran.err or "teamchat undo --team others.toml 1" in ran.err
    assert run_here("undo", "--yes", "--team", "others.toml").code == 0
    assert Path("others.toml").read_text() == before


def test_a_file_that_no_turn_broke_is_just_wrong(tree: WorkTree) -> None:
    shell(max="echo made > made.txt")
    tree.git("add", "--all")
    assert run_here("send", "Go").code == 0
    Path("teamchat.toml").write_text("[[members")
    ran = run_here("resume")
    assert ran.code == ExitCode.USAGE
    assert "changed it" not in ran.err
    assert run_here("undo", "--yes").code == 0
    assert not Path("made.txt").exists()
