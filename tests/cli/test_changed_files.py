"""What a turn's receipt says of files, whoever wrote them and by whatever tool."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.cli.helpers import objects
from tests.core.checkpoint.worktree import WorkTree, all_refs
from tests.program import ended, run_here, start
from tests.shell_team import repository, shell


@pytest.fixture
def tree(tmp_path: Path) -> WorkTree:
    return repository(tmp_path / "unused")


def changes(turn: int | None = None) -> dict[str, object]:
    shown = objects(run_here("show", *([str(turn)] if turn else []), "--json"))[0]
    outcome = shown["outcome"]
    assert isinstance(outcome, dict)
    found = outcome["changes"]
    assert isinstance(found, dict)
    return found


def named(found: dict[str, object]) -> dict[str, str]:
    files = found["files"]
    assert isinstance(files, list)
    return {file["path"]: file["what"] for file in files}


def test_what_a_shell_wrote_deleted_and_changed_is_on_the_receipt(tree: WorkTree) -> None:
    work = "rm -rf tests; sed -i s/a/A/ app.py; echo new > 'new file'; chmod +x run.sh; ln -s app.py link"
    shell(max=f"{work}; mkdir build; echo ignored > build/x")
    tree.git("add", "teamchat.toml")
    assert run_here("send", "Go").code == 0
    assert named(changes()) == {
        "app.py": "changed", "link": "added", "new file": "added", "run.sh": "mode", "tests/one.py": "deleted",
        "tests/two.py": "deleted",
    }  # fmt: skip
    shown = run_here("show").out
    assert "  changed   app.py  +1 −1  not reported by its CLI\n" in shown
    assert "  try       teamchat diff 1\n  try       teamchat undo 1\n" in shown
    assert "  changed   tests/one.py  +0 −1  deleted  not reported by its CLI\n" in shown


def test_git_sees_the_files_of_the_receipt_and_nothing_else(tree: WorkTree, world: Path) -> None:
    shell(max="echo more >> app.py; rm tests/two.py")
    status, index = tree.git("status", "--porcelain=v2"), (tree.top / ".git" / "index").read_bytes()
    assert run_here("send", "Go").code == 0
    found = changes()
    (store,) = all_refs(world)
    listed = tree.git(
        f"--git-dir={store}", "diff-tree", "-r", "--name-status", str(found["before"]), str(found["after"])
    )
    assert listed.split() == ["M", "app.py", "D", "tests/two.py"]
    assert (tree.top / ".git" / "index").read_bytes() == index
    assert tree.git("status", "--porcelain=v2") != status
    assert tree.git("log", "--all", "--format=%s") == "first\n"


@pytest.mark.usefixtures("tree")
def test_a_turn_that_changes_nothing_says_so() -> None:
    shell(max=":")
    assert run_here("send", "Go").code == 0
    assert (changes()["files"], changes()["more"]) == ([], 0)


def test_outside_git_the_receipt_says_what_the_cli_reports() -> None:
    shell(max="echo more > app.py")
    assert run_here("send", "Go").code == 0
    assert changes() == {"unknown": "no git repository"}
    assert "  files     none (as its CLI reports: no git repository)\n" in run_here("show").out


@pytest.mark.usefixtures("tree")
def test_a_member_that_may_only_read_and_changes_files_is_reported() -> None:
    shell(reader="echo more >> app.py")
    ran = run_here("send", "Go")
    told = "reader may only read, and 1 file changed during its turn (by it or by somebody else)"
    assert f"{told}: teamchat diff 1, teamchat undo 1" in ran.err
    assert "  access    may only read, and 1 file changed during its turn: teamchat diff 1" in run_here("show").out


def test_files_that_two_members_worked_in_at_once_are_said_to_be_shared(tree: WorkTree) -> None:
    wait = "for i in $(seq 1000); do test -e {} && break; sleep 0.01; done"
    reader = f"touch build/r; {wait.format('build/w')}; sleep 0.1"
    writer = f"{wait.format('build/r')}; echo more >> app.py; touch build/w; sleep 0.3"
    (tree.top / "build").mkdir()
    shell(reader=reader, writer=writer)
    ran = run_here("send", "--to", "reader+writer", "Go")
    assert (ran.code, "may only read" in ran.err) == (0, False)
    assert changes(1)["shared_with"] == [2]
    assert named(changes(2)) == {"app.py": "changed"}
    assert changes(2)["shared_with"] == [1]  # nothing bounds a program of the team's own to reading


def test_what_a_killed_turn_changed_is_on_its_receipt(tree: WorkTree) -> None:
    (tree.top / "build").mkdir()
    shell(max="echo more >> app.py; touch build/here; sleep 60")
    with start("send", "Go") as sending:
        while not (tree.top / "build" / "here").exists():
            assert sending.poll() is None
        sending.kill()
        ended(sending)
    run_here("resume", "--drop")
    assert named(changes(1)) == {"app.py": "changed"}


def test_a_hostile_repository_runs_nothing(tree: WorkTree) -> None:
    trap = f"touch {shlex.quote(str(tree.top / 'build' / 'ran'))}"
    (tree.top / "build").mkdir()
    tree.git("config", "core.fsmonitor", f"{trap}; false")
    tree.git("config", "filter.x.clean", f"{trap}; cat")
    tree.write(".gitattributes", b"* filter=x\n")
    hook = tree.top / ".git" / "hooks" / "reference-transaction"
    hook.write_text(f"#!/bin/sh\n{trap}\n")
    hook.chmod(0o755)
    shell(max="echo more >> app.py")
    assert run_here("send", "Go").code == 0
    assert named(changes()) == {"app.py": "changed"}
    assert not (tree.top / "build" / "ran").exists()


@pytest.mark.usefixtures("tree")
def test_the_commands_of_a_receipt_name_the_session_and_the_team_that_were_typed() -> None:
    shell(max="echo 1 >> app.py", reader="echo 2 >> app.py")
    run_here("send", "--to", "max", "Go")
    run_here("send", "--new", "--session", "two", "--to", "reader", "Go on")
    typed = "--team teamchat.toml --session s1"
    shown = run_here("show", "1", *typed.split()).out
    assert f"  try       teamchat diff 1 {typed}\n  try       teamchat undo 1 {typed}\n" in shown
    shown = run_here("show", "--session", "two").out
    assert "during its turn: teamchat diff 1 --session two, teamchat undo 1 --session two\n" in shown


@pytest.mark.usefixtures("tree")
def test_the_receipt_of_a_reply_that_a_branch_shares_names_the_session_that_has_its_turn() -> None:
    shell(max="echo 1 >> app.py")
    run_here("send", "Go")
    run_here("branch", "other")
    shown = run_here("show", "msg-2").out
    assert "  try       teamchat diff 1 --session s1\n  try       teamchat undo 1 --session s1\n" in shown


@pytest.mark.usefixtures("tree")
def test_a_reply_that_a_branch_shares_is_not_undone_by_its_number_there() -> None:
    shell(max="echo 1 >> app.py")
    run_here("send", "Go")
    run_here("branch", "other")
    run_here("send", "Go on")
    ran = run_here("undo", "msg-2", "--yes")
    told = "teamchat: msg-2 was written in session s1, which has the turn to undo"
    assert (ran.code, ran.out, ran.err) == (4, "", f"{told}\n  try: teamchat undo msg-2 --session s1\n")
