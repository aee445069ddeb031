from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from teamchat.core.checkpoint.compare import changes, changes_and_lines, entries, patch, stat
from teamchat.core.checkpoint.find import find_repository
from teamchat.core.checkpoint.refs import prune
from teamchat.core.checkpoint.take import take, take_latest
from teamchat.core.checkpoint.values import CheckpointLimits, LeftOut, Lines, NoRepository
from teamchat.core.errors import CheckpointFailed
from tests.core.checkpoint.worktree import WorkTree

pytestmark = pytest.mark.parametrize("waits", [False, True], ids=["alone", "in_a_turn"])


def test_a_checkpoint_has_every_file_that_git_does_not_ignore(tree: WorkTree) -> None:
    tree.write(".gitignore", b"*.o\n")
    tree.write("new.txt", b"new\n")
    tree.write("build/a.o", b"ignored")
    tree.write("kept.o", b"ignored, but tracked")
    tree.git("add", "--force", "kept.o")
    assert set(entries(tree.repository, tree.take().tree)) == {
        ".gitignore",
        "kept.o",
        "new.txt",
        "notes.txt",
        "src/app.py",
    }


def test_what_changed_is_told_by_path(tree: WorkTree) -> None:
    before = tree.take()
    tree.write("notes.txt", b"first\nchanged\nthird\n")
    tree.write("new.bin", b"\0\1")
    (tree.top / "src/app.py").chmod(0o755)
    after = tree.take("1/after")
    found = tree.changes(before, after)
    assert [(change.path, change.what) for change in found] == [
        ("new.bin", "added"),
        ("notes.txt", "changed"),
        ("src/app.py", "mode"),
    ]
    lines = {"new.bin": Lines(None, None), "notes.txt": Lines(2, 1), "src/app.py": Lines(0, 0)}
    assert stat(tree.repository, before.tree, after.tree) == lines
    assert changes_and_lines(tree.repository, before.tree, after.tree) == (found, lines)


def test_git_applies_the_patch(tree: WorkTree) -> None:
    before = tree.take()
    tree.write("notes.txt", b"first\nchanged")
    tree.write("new\n\xff.bin".encode("latin-1").decode("utf-8", "surrogateescape"), bytes(range(256)) * 9, 0o755)
    (tree.top / "src/app.py").unlink()
    after, edited = tree.take("1/after"), tree.files()
    printed = b"".join(patch(tree.repository, before.tree, after.tree))
    tree.undo(before, after)
    subprocess.run(["git", "apply"], cwd=tree.top, input=printed, check=True)
    assert tree.files() == edited


def test_an_unchanged_tree_takes_no_objects_and_two_processes(
    tree: WorkTree, git_calls: Callable[[], list[str]]
) -> None:
    tree.write("new.txt", b"new\n")
    repository, first = tree.repository, tree.take()
    tree.take()  # git notes which folders it has seen
    before = set((tree.top / ".git" / "objects").rglob("*"))
    git_calls()
    second = take(repository, tree.state, "refs/teamchat/s/1/after")
    assert second.tree == first.tree
    assert git_calls() == ["status", "update-ref"]
    assert set((tree.top / ".git" / "objects").rglob("*")) == before


def test_the_index_is_not_written_while_a_turn_waits(
    tree: WorkTree, git_calls: Callable[[], list[str]], tmp_path: Path
) -> None:
    repository, ref = tree.repository, "refs/teamchat/s/1/after"
    take(repository, tree.state, ref)
    for content in (b"new\n", b"newer\n"):
        tree.write("new.txt", content)
        (tree.top / "src/app.py").unlink(missing_ok=True)
        git_calls()
        found = take_latest(repository, tree.state, ref, waits=True)
        assert git_calls() == ["status", "cat-file", "update-ref"]
        assert found.checkpoint.tree == take(repository, tmp_path / "other", ref).tree
    assert take(repository, tree.state, ref).tree == found.checkpoint.tree
    git_calls()
    take(repository, tree.state, ref)
    assert git_calls() == ["status", "update-ref"]


def test_git_notes_what_it_has_read_once_a_minute_while_turns_wait(
    tree: WorkTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    take(tree.repository, tree.state, "refs/teamchat/s/1/before")
    index = next(tree.state.glob("checkpoints/*/index"))
    now, times = time.time(), []
    for minute in (0, 0, 2, 2):
        monkeypatch.setattr(time, "time", lambda minute=minute: now + 60 * minute)
        (tree.top / "notes.txt").touch()
        take_latest(tree.repository, tree.state, None, waits=True)
        times.append(index.stat().st_mtime_ns)
    assert len(set(times)) == 3  # the second look, in the minute of the first, writes nothing


def test_a_new_file_that_only_a_turns_checkpoint_has_stays_when_it_is_ignored(tree: WorkTree) -> None:
    take(tree.repository, tree.state, "refs/teamchat/s/1/before")
    tree.write("new.o", b"x")
    before = take_latest(tree.repository, tree.state, None, waits=True).checkpoint
    tree.write(".gitignore", b"*.o\n")
    after = tree.take("1/after")
    assert [change.path for change in tree.changes(before, after)] == [".gitignore"]
    (tree.top / "new.o").unlink()
    assert [change.path for change in tree.changes(after, tree.take("2/after"))] == ["new.o"]


def test_no_file_is_lost_with_the_tree_of_its_folder(tree: WorkTree) -> None:
    tree.write("src/other.py", b"x")
    before = tree.take()
    lost = tree.git("rev-parse", f"{before.tree}:src").strip()
    tree.write("src/app.py", b"changed")
    (tree.top / ".git/objects" / lost[:2] / lost[2:]).unlink()
    assert set(entries(tree.repository, tree.take("1/after").tree)) == {"notes.txt", "src/app.py", "src/other.py"}


def test_the_user_sees_nothing_of_it(tree: WorkTree) -> None:
    tree.write("notes.txt", b"staged\n")
    tree.git("add", "notes.txt")
    tree.write("notes.txt", b"changed again\n")
    tree.write("untracked", b"x")
    standing, log = tree.standing(), tree.git("log", "--all", "--oneline")
    before = tree.take()
    tree.write("untracked", b"y")
    tree.undo(before, tree.take("1/after"))
    assert tree.standing() == standing
    assert tree.git("log", "--all", "--oneline") == log
    assert tree.git("fsck", "--full", "--strict") == ""


def test_what_is_too_large_is_left_out_and_listed(tree: WorkTree) -> None:
    tree.write("large.bin", b"x" * 101)
    tree.write("fits.bin", b"x" * 100)
    found = tree.take(limits=CheckpointLimits(file_bytes=100))
    assert found.left_out == (LeftOut("large.bin", 101, "large"),)
    assert "large.bin" not in entries(tree.repository, found.tree)
    assert found.largest[0] == ("fits.bin", 100)
    assert tree.take().left_out == ()


def test_a_checkpoint_outlives_garbage_collection_and_one_that_is_removed_does_not(tree: WorkTree) -> None:
    tree.write("notes.txt", b"only in the checkpoint\n")
    before = tree.take()
    tree.git("gc", "-q", "--prune=now")
    assert "notes.txt" in entries(tree.repository, before.tree)
    assert prune(tree.repository, tree.state, "other") == 0
    assert prune(tree.repository, tree.state, "s") == 1
    tree.git("gc", "-q", "--prune=now")
    with pytest.raises(CheckpointFailed, match="cannot be read"):
        entries(tree.repository, before.tree)
    again = tree.take()  # the index still names what is gone
    assert again.tree == before.tree
    tree.git("fsck", "--full")


@pytest.mark.parametrize(
    "ref", ["refs/heads/main", "refs/teamchat/../heads/main", "refs/teamchat/", "HEAD", "refs/teamchat/a\nb"]
)
def test_only_a_ref_of_teamchat_is_written(ref: str, tree: WorkTree) -> None:
    with pytest.raises(ValueError, match="no ref of teamchat"):
        take(tree.repository, tree.state, ref)


def test_a_folder_without_a_work_tree_says_why(tree: WorkTree, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    subprocess.run(["git", "init", "-q", "--bare", tmp_path / "bare"], check=True)
    reasons = {
        tmp_path / "plain": "no git repository",
        tmp_path / "bare": "no work tree of a git repository",
        tmp_path / "none": f"there is no folder {tmp_path}/none",
    }
    assert {folder: find_repository(folder) for folder in reasons} == {
        folder: NoRepository(reason) for folder, reason in reasons.items()
    }
    tree.git("config", "core.worktree", os.fspath(tmp_path))
    found = find_repository(tree.top)
    assert isinstance(found, NoRepository)
    assert "names another folder" in found.reason or "no work tree" in found.reason


def test_the_repository_is_found_from_a_folder_in_it(tree: WorkTree) -> None:
    found = find_repository(tree.top / "src")
    assert found == tree.repository
    assert (found.top, found.git_dir, found.object_format) == (tree.top, tree.top / ".git", "sha1")


def test_changes_of_a_tree_that_is_not_there_are_one_line(tree: WorkTree) -> None:
    with pytest.raises(CheckpointFailed, match="cannot be read"):
        changes(tree.repository, tree.take().tree, "0" * 39 + "1")


def test_a_pipe_in_the_place_of_a_file_is_left_out_and_holds_nobody_up(tree: WorkTree) -> None:
    tree.take()
    (tree.top / "notes.txt").unlink()
    os.mkfifo(tree.top / "notes.txt")
    os.mkfifo(tree.top / "new")
    found = tree.take("1/after")
    assert found.left_out == (LeftOut("notes.txt", None, "special"),)
    assert set(entries(tree.repository, found.tree)) == {"src/app.py"}


def test_a_pipe_where_git_looks_for_rules_ends_in_one_line(tree: WorkTree) -> None:
    os.mkfifo(tree.top / ".gitignore")
    with pytest.raises(CheckpointFailed, match=r"^git [a-z-]+ took longer than 0\.5 s$"):
        tree.take(limits=CheckpointLimits(seconds=0.5))
    (tree.top / ".gitignore").unlink()
    assert tree.take().tree


def test_a_nested_repository_is_left_out_and_a_submodule_is_its_commit(tree: WorkTree) -> None:
    for name in ("nested", "sub"):
        inner = WorkTree.make(tree.top / name, tree.state)
        inner.write("part", b"part\n")
        inner.git("add", ".")
        inner.git("commit", "-qm", "Begin")
    tree.git("add", "sub")
    found = tree.take()
    assert found.left_out == (LeftOut("nested", None, "repository"),)
    known = entries(tree.repository, found.tree)
    assert known["sub"].mode == "160000"
    assert not any(path.startswith(("nested", "sub/")) for path in known)


def test_what_git_tracks_later_although_it_ignores_it_is_in_the_next_checkpoint(tree: WorkTree) -> None:
    tree.write(".gitignore", b"*.o\n")
    tree.write("a.o", b"x")
    assert "a.o" not in entries(tree.repository, tree.take().tree)
    tree.git("add", "--force", "a.o")
    assert "a.o" in entries(tree.repository, tree.take("1/after").tree)


def test_a_file_that_becomes_ignored_is_not_told_to_be_deleted(tree: WorkTree) -> None:
    tree.write("new.o", b"x")
    before = tree.take()
    tree.write(".gitignore", b"*.o\n")
    assert [change.path for change in tree.changes(before, tree.take("1/after"))] == [".gitignore"]


def test_the_users_own_list_of_ignored_files_holds(tree: WorkTree, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("*.mine\n")
    with (tmp_path / "gitconfig").open("a") as config:
        config.write(f"[core]\n\texcludesFile = {tmp_path}/mine\n")
    tree.write("a.mine", b"x")
    assert "a.mine" not in entries(tree.repository, tree.take().tree)


def test_a_state_folder_in_the_work_tree_is_no_part_of_a_checkpoint(tree: WorkTree) -> None:
    inside = WorkTree(tree.top, tree.top / "my [state]*")
    first = inside.take()
    assert inside.take("1/after").tree == first.tree
    assert set(entries(tree.repository, first.tree)) == {"notes.txt", "src/app.py"}


def test_a_damaged_index_of_ours_is_made_again(tree: WorkTree) -> None:
    first = tree.take()
    folder = next((tree.state / "checkpoints").iterdir())
    (folder / "index").write_bytes(b"damaged")
    assert tree.take().tree == first.tree
    (folder / "HEAD").write_text("nonsense\n")
    assert tree.take().tree == first.tree


def test_checkpoints_are_removed_by_age(tree: WorkTree) -> None:
    tree.take("1/before")
    times = next((tree.state / "checkpoints").iterdir()) / "times"
    times.write_text("1000 refs/teamchat/s/1/before\n")
    tree.take("2/before")
    assert prune(tree.repository, tree.state, before=2000.0) == 1
    assert tree.git("for-each-ref", "--format=%(refname)", "refs/teamchat").split() == ["refs/teamchat/s/2/before"]
    assert "1/before" not in times.read_text()


def test_an_index_without_its_shared_part_is_made_anew(tree: WorkTree) -> None:
    for number in range(30):
        tree.write(f"many/{number}", b"%d" % number)
    tree.take()
    tree.write("notes.txt", b"changed\n")
    expected = tree.take("1/after").tree
    shared = list(tree.state.glob("checkpoints/*/sharedindex.*"))
    assert shared
    for file in shared:
        file.unlink()
    assert tree.take("2/before").tree == expected
