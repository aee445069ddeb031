"""`teamchat merge` and `teamchat worktrees`: all of a member's changes or none, and the user's git as it was."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import hostile_git
from tests.cli.helpers import objects
from tests.cli.test_worktrees import commit, folder_of, own_files, shell
from tests.cli.test_worktrees import tree as tree  # noqa: PLC0414 (a fixture)
from tests.core.checkpoint.worktree import WorkTree
from tests.program import run_here

TEN = "".join(f"line {number}\n" for number in range(1, 11))


@pytest.fixture
def ten(tree: WorkTree) -> WorkTree:
    tree.write("ten.txt", TEN.encode())
    return tree


def work(tree: WorkTree, command: str) -> None:
    """One turn of max in its worktree."""
    shell(tree.top, max=command)
    ran = run_here("send", "Go")
    assert ran.code == 0, ran.err


def standing(tree: WorkTree) -> dict[str, object]:
    found = tree.standing()
    return {what: found[what] for what in ("HEAD", "index", "stash", "config", "logs")}


def test_a_merge_brings_everything_and_leaves_index_and_head(ten: WorkTree) -> None:
    work(ten, "sed -i s/10/ten/ ten.txt; rm docs/one.md; chmod +x staged.txt; ln -s ten.txt link; printf '\\0b' > bin")
    ten.write("ten.txt", TEN.replace("line 1\n", "mine\n").encode())
    before = standing(ten)
    ran = run_here("merge", "max")
    assert ran.code == 0, ran.err
    assert ran.out == "added    bin\ndeleted  docs/one.md\nadded    link\nmode     staged.txt\nchanged  ten.txt\n"
    assert (ten.top / "ten.txt").read_text() == TEN.replace("line 1\n", "mine\n").replace("10", "ten")
    assert not (ten.top / "docs").exists()
    assert os.access(ten.top / "staged.txt", os.X_OK)
    assert (ten.top / "link").readlink() == Path("ten.txt")
    assert (ten.top / "bin").read_bytes() == b"\0b"
    assert standing(ten) == before
    assert ten.git("fsck", "--strict") == ""


def test_a_merge_names_the_files_that_run_things(ten: WorkTree) -> None:
    work(ten, "mkdir -p .husky && echo ls > .husky/pre-push; echo x: > Makefile; ls > $(printf 'b\\342\\200\\213c')")
    ran = run_here("merge", "max")
    assert ran.code == 0, ran.err
    assert "· files that run things: .husky/pre-push, Makefile\n" in ran.err
    assert "added    b\\u200bc\n" in ran.out
    work(ten, "echo y: > Makefile; echo b > a.txt")
    assert objects(run_here("merge", "max", "--json"))[0]["files_that_run"] == ["Makefile"]


def test_a_second_merge_brings_only_what_is_new(ten: WorkTree) -> None:
    work(ten, "sed -i s/10/ten/ ten.txt")
    assert run_here("merge", "max").code == 0
    again = run_here("merge", "max")
    assert (again.code, again.out) == (0, "")
    assert "there is nothing new of max" in again.err
    ten.write("ten.txt", b"all mine\n")
    work(ten, "echo new > new2.txt")
    assert run_here("merge", "max").out == "added    new2.txt\n"
    assert (ten.top / "ten.txt").read_text() == "all mine\n"


@pytest.mark.parametrize(
    ("command", "mine", "named"),
    [
        ("sed -i s/10/ten/ ten.txt", lambda top: (top / "ten.txt").write_text(TEN.replace("10", "X")), "same lines"),
        ("rm ten.txt", lambda top: (top / "ten.txt").write_text("mine\n"), "deleted by one"),
        ("echo a >> ten.txt", lambda top: (top / "ten.txt").unlink(), "deleted by one"),
        ("echo a > both.txt", lambda top: (top / "both.txt").write_text("b\n"), "added by both"),
        ("mkdir build; echo a > build2", lambda top: (top / "build2").mkdir() or (top / "build2/x").write_text("b"),
         "a file of one, a folder of the other"),
        ("printf '\\0a' > ten.txt", lambda top: (top / "ten.txt").write_bytes(b"\0b"), "no text"),
        ("ln -sf app.txt ten.txt", lambda top: (top / "ten.txt").write_text("mine\n"), "a link of one"),
    ],
)  # fmt: skip
def test_a_conflict_is_named_and_nothing_is_changed(
    command: str, mine: Callable[[Path], object], named: str, ten: WorkTree
) -> None:
    work(ten, f"{command}; echo more >> staged.txt")
    mine(ten.top)
    files, before = own_files(ten), standing(ten)
    ran = run_here("merge", "max")
    assert ran.code == 1
    assert ran.out == ""
    assert named in ran.err
    assert "nothing was changed" in ran.err
    assert own_files(ten) == files
    assert standing(ten) == before
    listed = objects(run_here("worktrees", "--json"))[0]
    assert "staged.txt" in str(listed["files"])


def test_a_side_can_be_favoured(ten: WorkTree) -> None:
    work(ten, "sed -i s/10/ten/ ten.txt; echo more >> staged.txt")
    ten.write("ten.txt", TEN.replace("10", "mine").replace("line 1\n", "one\n").encode())
    assert run_here("merge", "max", "--ours").code == 0
    assert "line mine" in (ten.top / "ten.txt").read_text()
    assert (ten.top / "staged.txt").read_text() == "staged\nmore\n"
    assert run_here("merge", "max", "--undo").code == 0
    assert (ten.top / "staged.txt").read_text() == "staged\n"
    assert run_here("merge", "max", "--theirs").code == 0
    assert (ten.top / "ten.txt").read_text() == TEN.replace("10", "ten").replace("line 1\n", "one\n")


def test_a_file_that_git_ignores_is_not_written_over(ten: WorkTree) -> None:
    work(ten, "echo theirs > secret; git -c core.excludesFile=/dev/null status > /dev/null")
    with (ten.top / ".git" / "info" / "exclude").open("a") as file:
        file.write("/secret\n")
    ten.write("secret", b"mine\n")
    ran = run_here("merge", "max")
    assert ran.code in (0, 1)
    assert (ten.top / "secret").read_bytes() == b"mine\n"


def test_what_was_merged_can_be_put_back_unless_it_was_changed_since(ten: WorkTree) -> None:
    files = own_files(ten)
    work(ten, "sed -i s/10/ten/ ten.txt; rm docs/one.md; echo x > x.txt")
    files = own_files(ten)
    assert run_here("merge", "max").code == 0
    assert run_here("merge", "max", "--undo").code == 0
    assert own_files(ten) == files
    assert run_here("merge", "max").code == 0
    ten.write("x.txt", b"changed\n")
    ran = run_here("merge", "max", "--undo")
    assert ran.code == 1
    assert "x.txt (changed since it was merged)" in ran.err
    assert (ten.top / "x.txt").read_text() == "changed\n"


def test_worktrees_are_listed_with_what_is_not_merged(ten: WorkTree) -> None:
    work(ten, "sed -i s/10/ten/ ten.txt; rm docs/one.md")
    ran = run_here("worktrees")
    folder = folder_of(ten, "max")
    assert ran.out == (
        f"max  s1  teamchat/s1/max  2 files, +1 −2\n  in {folder}\n"
        "  deleted  docs/one.md  +0 −1\n  changed  ten.txt  +1 −1\n"
    )
    [row] = objects(run_here("worktrees", "--json"))
    assert (row["member"], row["session"], row["branch"]) == ("max", "s1", "teamchat/s1/max")
    assert (row["added"], row["removed"], row["problem"]) == (1, 2, None)
    assert run_here("merge", "max").code == 0
    assert "all is merged" in run_here("worktrees").out


def test_a_worktree_with_changes_is_removed_by_force_only(ten: WorkTree) -> None:
    work(ten, "echo x > x.txt")
    ran = run_here("worktrees", "remove", "max")
    assert ran.code == 2
    assert "max has changes that are not merged: x.txt (+1 −0)" in ran.err
    assert "teamchat merge max" in ran.err
    assert folder_of(ten, "max").exists()
    assert run_here("worktrees", "remove", "--force", "--all").code == 0
    assert not folder_of(ten, "max").parent.exists()
    assert ten.git("worktree", "list").count("\n") == 1
    assert ten.git("branch", "--list", "teamchat/*") == ""
    assert "worktrees" not in ten.git("for-each-ref")
    work(ten, "cat ten.txt > seen.txt")
    assert run_here("merge", "max").out == "added    seen.txt\n"


def test_a_branch_with_commits_of_its_own_stays(ten: WorkTree) -> None:
    work(ten, "git -c user.name=m -c user.email=m@example.invalid commit -qam theirs")
    assert run_here("merge", "max").code == 0
    ran = run_here("worktrees", "remove", "max")
    assert ran.code == 0
    assert "its branch teamchat/s1/max stays: it has 1 commit of its own" in ran.err
    assert ten.git("log", "-1", "--format=%s", "teamchat/s1/max") == "theirs\n"


def test_deleting_a_session_removes_its_worktrees_unless_something_would_be_lost(ten: WorkTree) -> None:
    work(ten, "echo x > x.txt")
    ran = run_here("sessions", "delete", "--yes", "s1")
    assert ran.code == 2
    assert "not merged" in ran.err
    assert run_here("sessions", "delete", "--yes", "--force", "s1").code == 0
    assert not folder_of(ten, "max").exists()
    assert run_here("worktrees").err == "· no member has a worktree here\n"


def test_a_worktree_whose_folder_is_gone_deletes_nothing(ten: WorkTree) -> None:
    import shutil

    work(ten, "echo x > x.txt")
    shutil.rmtree(folder_of(ten, "max"))
    ran = run_here("merge", "max")
    assert ran.code == 2
    assert "is no longer a worktree" in ran.err
    assert (ten.top / "ten.txt").exists()
    work(ten, "echo y > y.txt")
    assert run_here("merge", "max").out == "added    y.txt\n"


def test_nothing_that_a_hostile_repository_names_is_run(world: Path, tmp_path: Path) -> None:
    traps = tmp_path / "traps"
    traps.mkdir()
    top = hostile_git.make(world / "repo")
    hostile_git.arm(top, lambda name: f"touch {traps}/{name}")
    tree = WorkTree(top, tmp_path / "unused")
    os.chdir(top)
    shell(top, max="echo more >> notes.txt; echo new > new.txt; rm blob.bin")
    ran = run_here("send", "Go")
    assert ran.code == 0, ran.err
    assert run_here("worktrees").code == 0
    ran = run_here("merge", "max")
    assert ran.code == 0, ran.err
    assert (tree.top / "notes.txt").read_text() == "first\nnot committed\nmore\n"
    assert not (tree.top / "blob.bin").exists()
    assert run_here("worktrees", "remove", "max").code == 0
    assert list(traps.iterdir()) == []


def test_a_commit_of_the_user_changes_nothing_for_the_member(ten: WorkTree) -> None:
    work(ten, "echo x > x.txt")
    ten.git("add", "--all")
    commit(ten, "all of it")
    assert run_here("merge", "max").out == "added    x.txt\n"


def test_an_undo_says_what_was_merged_and_stays_in_the_users_files(ten: WorkTree) -> None:
    work(ten, "sed -i s/10/ten/ ten.txt; rm docs/one.md")
    run_here("merge", "max")
    ran = run_here("undo", "--yes")
    stays = "stays in your files, merged from max's worktree: docs/one.md, ten.txt"
    undo = "undo the merge: teamchat merge --undo max"
    assert (ran.code, f"{stays}\n{undo}\n" in ran.out, f"· {stays}\n· {undo}\n" in ran.err) == (0, True, True)
    assert "in max's worktree:\nundoes docs/one.md  +0 −1  deleted\nundoes ten.txt  +1 −1\n" in ran.out
    assert "ten" in (ten.top / "ten.txt").read_text()
    assert run_here("merge", "--undo", "max").code == 0
    assert (ten.top / "ten.txt").read_text() == TEN


def test_an_undo_of_a_turn_before_an_earlier_merge_says_what_shows_its_changes(ten: WorkTree) -> None:
    work(ten, "sed -i s/10/ten/ ten.txt")
    run_here("merge", "max")
    work(ten, "echo new > other.txt")
    run_here("merge", "max")
    ran = run_here("undo", "1", "--dry-run")
    told = "stays in your files, merged from max's worktree: other.txt, ten.txt"
    several = "it came by several merges, of which only the last can be undone: teamchat diff 1, teamchat diff 2"
    assert f"{told}\n{several}\n" in ran.out
    [line] = objects(run_here("undo", "2", "--dry-run", "--json"))
    assert line["merged"] == [{"member": "max", "paths": ["other.txt"], "last": True}]


def test_an_undo_of_what_is_not_merged_says_nothing_of_merges(ten: WorkTree) -> None:
    work(ten, "sed -i s/10/ten/ ten.txt")
    run_here("merge", "max")
    work(ten, "echo new > other.txt")
    assert "merged" not in run_here("undo", "--dry-run").out
    run_here("merge", "--undo", "max")
    assert "merged" not in run_here("undo", "1", "--dry-run").out


def test_an_undo_of_a_merge_names_the_commands_for_what_was_changed_since(ten: WorkTree) -> None:
    work(ten, "sed -i s/10/ten/ ten.txt")
    run_here("merge", "max")
    merged = (ten.top / "ten.txt").read_text()
    ten.write("ten.txt", b"mine\n")
    ran = run_here("merge", "--undo", "max", "--session", "s1")
    assert ran.code == 1
    conflict, nothing, shows, restores = ran.err.splitlines()
    assert (conflict, nothing) == ("· conflict: ten.txt (changed since it was merged)", "· nothing was changed")
    assert restores.endswith(" && teamchat merge --undo max --session s1")
    diff = subprocess.run(["sh", "-c", shows.removeprefix("· try: ")], check=False, capture_output=True, text=True)
    assert "-line ten\n+mine\n" in diff.stdout
    restore = shlex.split(restores.removeprefix("· try: ").partition(" && ")[0])
    subprocess.run(restore, check=True)
    assert (ten.top / "ten.txt").read_text() == merged
    assert run_here("merge", "--undo", "max").code == 0
    assert (ten.top / "ten.txt").read_text() == TEN


def test_the_commands_after_a_conflict_name_the_session_that_was_typed(ten: WorkTree) -> None:
    work(ten, "sed -i s/10/ten/ ten.txt")
    ten.write("ten.txt", TEN.replace("10", "mine").encode())
    ran = run_here("merge", "max", "--session", "s1")
    tries = "· try: teamchat merge --theirs max --session s1\n· try: teamchat merge --ours max --session s1\n"
    assert (ran.code, tries in ran.err) == (1, True)


def test_merge_alone_lists_who_has_something_to_merge(ten: WorkTree) -> None:
    work(ten, "sed -i s/10/ten/ ten.txt")
    ran = run_here("merge")
    assert (ran.code, ran.err) == (0, "· try: teamchat merge max\n")
    assert "changed  ten.txt  +1 −1" in ran.out
    assert [line["member"] for line in objects(run_here("merge", "--json"))] == ["max"]
    assert run_here("merge", "--undo").code == 2
    assert run_here("merge", "max").code == 0
    assert run_here("merge").err == "· nothing is to be merged in session s1\n"
    assert run_here("merge").code == 0


@pytest.mark.parametrize("bits", ["600", "640", "750", "644"])
def test_an_undone_merge_takes_away_what_only_its_user_may_read(tree: WorkTree, bits: str) -> None:
    work(tree, f"echo hi > new1; chmod {bits} new1")
    assert run_here("merge", "max").code == 0
    assert (tree.top / "new1").exists()
    ran = run_here("merge", "--undo", "max")
    assert (ran.code, (tree.top / "new1").exists()) == (0, False), ran.err
    assert run_here("merge", "max").code == 0
    assert (tree.top / "new1").read_text() == "hi\n"


@pytest.mark.parametrize(("command", "left"), [("rm notes", None), ("echo more >> notes", "mine\nmore\n")])
def test_what_a_member_did_to_a_file_that_its_user_made_private_meanwhile_is_merged(
    tree: WorkTree, command: str, left: str | None
) -> None:
    notes = tree.top / "notes"
    notes.write_text("mine\n")
    work(tree, command)
    notes.chmod(0o600)
    ran = run_here("merge", "max")
    assert ran.code == 0, ran.err
    assert (notes.read_text() if notes.exists() else None) == left
    assert run_here("merge", "--undo", "max").code == 0
    assert notes.read_text() == "mine\n"


def test_a_program_of_a_member_does_not_run_as_its_user_after_a_merge(tree: WorkTree) -> None:
    work(tree, "echo '#!/bin/sh' > tool; chmod 6755 tool")
    assert run_here("merge", "max").code == 0
    assert (tree.top / "tool").stat().st_mode & 0o7777 == 0o755
