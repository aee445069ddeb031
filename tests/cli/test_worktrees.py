"""Members with worktrees of their own: what their turns change, and that the user's files stay as they are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from teamchat.cli.startup.workspace import store_file
from teamchat.core.conversation.permission import trust_store
from teamchat.core.team.find import load
from teamchat.core.worktrees.make import free_name
from tests.cli.helpers import objects, refused
from tests.core.checkpoint.worktree import WorkTree
from tests.program import run_here


@pytest.fixture
def tree(world: Path, tmp_path: Path) -> WorkTree:
    """The working folder as a repository with one commit, with changes that are staged, not staged and untracked."""
    files = {"app.txt": b"a = 1\nb = 2\nc = 3\n", "docs/one.md": b"one\n", "gone.txt": b"gone\n"}
    ignored = b"build/\nhome/\nstate/\ntmp/\nteamchat.toml\n"
    made = WorkTree.committed(world, tmp_path / "unused", {**files, ".gitignore": ignored})
    made.write("staged.txt", b"staged\n")
    made.git("add", "staged.txt")
    made.write("app.txt", b"a = 1\nb = 2\nc = 4\n")
    made.write("new.txt", b"untracked\n")
    (made.top / "gone.txt").unlink()
    return made


def commit(tree: WorkTree, subject: str) -> None:
    tree.git("-c", "user.name=kai", "-c", "user.email=kai@example.invalid", "commit", "-q", "-m", subject)


def shell(world: Path, keys: Mapping[str, object] | None = None, **commands: str) -> None:
    """A team of programs that read their prompt and run a shell; all may edit."""
    chosen = {"workspace": "worktree"} if keys is None else keys
    parts = ['[[members]]\nname = "kailai"\ntype = "human"']
    for name, command in commands.items():
        argv = ["/bin/sh", "-c", f"cat > /dev/null; {command}\necho Done"]
        given = "".join(f"\n{key} = {json.dumps(value)}" for key, value in chosen.items())
        parts.append(f'[[members]]\nname = "{name}"\nagent = "{name}-agent"\naccess = "edit"{given}')
        parts.append(f"[agents.{name}-agent]\ncommand = {json.dumps(argv)}")
    (world / "teamchat.toml").write_text("\n".join(parts))
    trust_store().grant(load(world / "teamchat.toml"))


def own_files(tree: WorkTree) -> dict[bytes, tuple[str, bytes]]:
    """The files of the user, without teamchat's own, which the tests keep in the same folder."""
    return {path: found for path, found in tree.files().items() if not path.startswith(b"state/")}


def folder_of(tree: WorkTree, member: str, session: int = 1) -> Path:
    return store_file(tree.top).parent.resolve() / "worktrees" / str(session) / member / tree.top.name


def test_a_turn_in_a_worktree_leaves_the_users_files_and_git_as_they_are(tree: WorkTree) -> None:
    shell(tree.top, max="echo more >> app.txt; rm new.txt; pwd > where; git status --porcelain > ../status")
    files, standing = own_files(tree), tree.standing()
    ran = run_here("send", "Go")
    assert ran.code == 0, ran.err
    after = tree.standing()
    assert own_files(tree) == files
    for what in ("status", "HEAD", "index", "stash", "config"):
        assert after[what] == standing[what], what
    folder = folder_of(tree, "max")
    assert (folder / "app.txt").read_text() == "a = 1\nb = 2\nc = 4\nmore\n"
    assert (folder / "where").read_text().strip() == str(folder)
    assert not (folder / "gone.txt").exists()
    status = (folder.parent / "status").read_text().splitlines()
    assert status == [" M app.txt", " D gone.txt", "A  staged.txt", "?? where"]


def test_receipts_and_git_know_the_worktree(tree: WorkTree) -> None:
    shell(tree.top, max="echo more >> app.txt")
    assert run_here("send", "Go").code == 0
    shown = objects(run_here("show", "--json"))[0]
    folder = folder_of(tree, "max")
    assert shown["setup"]["cwd"] == str(folder)  # type: ignore[index]
    assert [file["path"] for file in shown["outcome"]["changes"]["files"]] == ["app.txt"]  # type: ignore[index]
    listed = tree.git("worktree", "list", "--porcelain")
    assert f"worktree {folder}\n" in listed
    assert "branch refs/heads/teamchat/s1/max\n" in listed
    tree.git("worktree", "prune")
    assert tree.git("worktree", "list", "--porcelain") == listed
    assert tree.git("fsck", "--strict") == ""


def test_a_member_works_in_the_same_folder_of_its_worktree(tree: WorkTree) -> None:
    shell(tree.top, {"workspace": "worktree", "cwd": "docs"}, max="pwd > where")
    assert run_here("send", "Go").code == 0
    assert (folder_of(tree, "max") / "docs" / "where").read_text().strip() == str(folder_of(tree, "max") / "docs")


def test_the_worktree_stays_and_gets_what_the_user_changed_while_it_has_no_changes(tree: WorkTree) -> None:
    shell(tree.top, max="cat app.txt > ../seen")
    assert run_here("send", "Go").code == 0
    tree.write("app.txt", b"mine\n")
    (tree.top / "new.txt").unlink()
    tree.git("add", "app.txt")
    commit(tree, "second")
    assert run_here("send", "Again").code == 0
    folder = folder_of(tree, "max")
    assert (folder.parent / "seen").read_text() == "mine\n"
    assert not (folder / "new.txt").exists()
    assert tree.git("rev-parse", "main") == tree.git("rev-parse", "teamchat/s1/max")


def test_changes_of_the_member_stay_when_the_user_changes_something(tree: WorkTree) -> None:
    shell(tree.top, max="echo more >> app.txt; cat docs/one.md > ../seen")
    assert run_here("send", "Go").code == 0
    tree.write("docs/one.md", b"two\n")
    assert run_here("send", "Again").code == 0
    folder = folder_of(tree, "max")
    assert (folder / "app.txt").read_text().count("more") == 2
    assert (folder.parent / "seen").read_text() == "one\n"


def test_outside_of_a_repository_it_is_said_what_to_do(world: Path) -> None:
    shell(world, max="true")
    ran = run_here("send", "Go")
    assert ran.code == 2
    assert "max cannot have a worktree" in ran.err
    assert 'set workspace = "shared" in the team file' in ran.err
    assert "git -C" in ran.err


def test_an_empty_repository_has_worktrees_too(world: Path, tmp_path: Path) -> None:
    tree = WorkTree(world, tmp_path / "unused")
    tree.git("init", "-q", "-b", "main")
    tree.write(".gitignore", b"home/\n")
    tree.write("first.txt", b"first\n")
    shell(world, max="cat first.txt > second.txt; git add second.txt; git status --porcelain > ../status")
    assert run_here("send", "Go").code == 0
    assert (folder_of(tree, "max") / "second.txt").read_text() == "first\n"
    assert "A  second.txt" in (folder_of(tree, "max").parent / "status").read_text()


def test_a_branch_of_that_name_that_is_there_is_not_touched(tree: WorkTree) -> None:
    tree.git("branch", "teamchat/s1/max")
    shell(tree.top, max="git branch --show-current > branch")
    assert run_here("send", "Go").code == 0
    assert (folder_of(tree, "max") / "branch").read_text() == "teamchat/s1/max-2\n"


def test_a_script_that_trust_covers_is_the_trusted_one_in_the_worktree_too(tree: WorkTree) -> None:
    tree.write("run.sh", b"cat > /dev/null\necho 'echo evil' > run.sh\necho Done\n", 0o755)
    parts = '[[members]]\nname = "max"\nagent = "own"\naccess = "edit"\nworkspace = "worktree"\n'
    (tree.top / "teamchat.toml").write_text(parts + '[agents.own]\ncommand = ["/bin/sh", "run.sh"]\n')
    trust_store().grant(load(tree.top / "teamchat.toml"))
    assert run_here("send", "Go").code == 0
    ran = run_here("send", "Go")
    assert ran.code == 5
    assert "run.sh, which in its worktree is not as you trusted it" in ran.err
    assert "teamchat merge max" in ran.err


def test_a_link_that_leads_out_of_the_worktree_is_not_followed(tree: WorkTree) -> None:
    shell(tree.top, {"workspace": "worktree", "cwd": "docs"}, max=f"rm -r ../docs; ln -s {tree.top}/docs ../docs")
    assert run_here("send", "Go").code == 0
    ran = run_here("send", "Go")
    assert ran.code == 5
    assert "max's folder in its worktree" in ran.err


def test_a_dry_run_makes_no_worktree_and_shows_one_that_is_there(tree: WorkTree) -> None:
    shell(tree.top, max="true")
    before = run_here("send", "--dry-run", "Go")
    assert before.code == 0, before.err
    assert f"it gets a worktree of {tree.top} before its turn\n" in before.out
    assert not folder_of(tree, "max").exists()
    assert run_here("send", "Go").code == 0
    assert f"in {folder_of(tree, 'max')}, access edit" in run_here("send", "--dry-run", "Go").out


def test_trust_is_given_to_where_a_member_edits(tree: WorkTree) -> None:
    shell(tree.top, max="true")
    text = (tree.top / "teamchat.toml").read_text()
    (tree.top / "teamchat.toml").write_text(text.replace('workspace = "worktree"', 'workspace = "shared"'))
    assert "has changed since you trusted it" in refused(run_here("send", "Go"))


def test_a_session_is_named_behind_remove_and_another_one_is_never_taken(tree: WorkTree) -> None:
    shell(tree.top, max="echo d >> app.txt")
    assert run_here("send", "--session", "first", "--new", "Go").code == 0
    assert run_here("send", "--session", "second", "--new", "Go").code == 0
    told = refused(run_here("worktrees", "--session", "first", "remove", "--all", "--force"))
    assert told == "options go behind the command"
    assert run_here("worktrees", "remove", "--all", "--force", "--session", "first").code == 0
    assert [line["session"] for line in objects(run_here("worktrees", "--json"))] == ["second"]


def test_a_member_in_a_worktree_is_not_told_of_itself_as_another_one(tree: WorkTree) -> None:
    shell(tree.top, max=":", eva=":")
    run_here("send", "--to", "max", "Go")
    assert "The others: kailai (person), eva.\n" in run_here("show", "--prompt").out


TOLD = "not merged: 1 file in max's worktree (teamchat worktrees, teamchat merge max)"


def test_after_a_turn_it_is_said_that_its_changes_are_in_the_worktree(tree: WorkTree) -> None:
    shell(tree.top, max="echo more >> app.txt", eva=":")
    assert f"· {TOLD}\n" in run_here("send", "--to", "max", "Go").err
    again = run_here("send", "--to", "max", "Go on", "--json")
    assert [line["text"] for line in objects(again) if line["type"] == "warning"] == [TOLD]
    run_here("merge", "max")
    assert "not merged" not in run_here("send", "--to", "eva", "Go on").err


def test_it_is_said_once_in_a_run(tree: WorkTree) -> None:
    shell(
        tree.top,
        max="echo more >> app.txt; echo '[NEXT: eva]'",
        eva="test -e ../once || echo '[NEXT: max]'; touch ../once",
    )
    ran = run_here("send", "--to", "max", "Go")
    assert (ran.out.count("Done"), ran.err.count(TOLD)) == (4, 1)


def test_a_group_of_which_one_member_changed_files_is_told_where_they_are(tree: WorkTree) -> None:
    shell(tree.top, max="echo more >> app.txt", eva=":")
    ran = run_here("send", "--to", "max+eva", "Go")
    assert ran.err.count(TOLD) == 1


def test_a_replay_has_no_worktree_to_tell_of(tree: WorkTree) -> None:
    shell(tree.top, max="echo more >> app.txt")
    assert TOLD in run_here("send", "Go", "--record", "one.cassette").err
    ran = run_here("replay", "--verify", "one.cassette")
    assert ran.code == 0, ran.out + ran.err


@pytest.mark.usefixtures("tree")
def test_names_of_files_that_would_be_lost_write_nothing_to_the_terminal(world: Path) -> None:
    shell(world, max="printf 1 > \"$(printf 'a\\033[31m\\377')\"")
    run_here("send", "Go")
    told = refused(run_here("worktrees", "remove", "max"))
    assert told == r"max has changes that are not merged: a\x1b[31m\xff (+1 −0)"


def test_without_worktrees_there_is_nothing_to_remove(tree: WorkTree) -> None:
    shell(tree.top, {}, max=":")
    run_here("send", "Go")
    assert run_here("worktrees", "remove", "--all").err == "· no member has a worktree in session s1\n"


@pytest.mark.parametrize(
    ("taken", "free"),
    [
        ([], "teamchat/s1/max"),
        (["teamchat/s1/max"], "teamchat/s1/max-2"),
        (["teamchat/s1/max", "teamchat/s1/max-2"], "teamchat/s1/max-3"),
        (["teamchat"], "teamchat-2/s1/max"),
        (["teamchat/s1"], "teamchat/s1-2/max"),
        (["teamchat/s1", "teamchat/s1-2/max"], "teamchat/s1-2/max-2"),
        (["teamchat/s1/max/mine"], "teamchat/s1/max-2"),
        (["teamchat", "teamchat-2"], "teamchat-3/s1/max"),
    ],
)
def test_a_branch_gets_a_name_beside_those_of_the_user(taken: list[str], free: str) -> None:
    assert free_name("teamchat/s1/max", taken) == free
