from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from teamchat.core.checkpoint import take as taking
from teamchat.core.checkpoint import walk as walking
from teamchat.core.checkpoint.compare import changes, changes_and_lines, entries, left_out_changes, patch, stat
from teamchat.core.checkpoint.find import find_repository
from teamchat.core.checkpoint.refs import prune, prune_daily
from teamchat.core.checkpoint.take import MOST_RULES, take
from teamchat.core.checkpoint.values import CheckpointLimits, GitRepository, LeftOut, Lines, NoRepository
from teamchat.core.errors import CheckpointFailed
from tests.core.checkpoint.worktree import WorkTree


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
    making = {tmp_path / "plain": f"git -C {tmp_path}/plain init"}
    assert {folder: find_repository(folder, tree.state) for folder in reasons} == {
        folder: NoRepository(reason, making.get(folder)) for folder, reason in reasons.items()
    }
    tree.git("config", "core.worktree", os.fspath(tmp_path))
    found = find_repository(tree.top, tree.state)
    assert isinstance(found, NoRepository)
    assert "names another folder" in found.reason or "no work tree" in found.reason


def test_the_repository_is_found_from_a_folder_in_it(tree: WorkTree) -> None:
    found = find_repository(tree.top / "src", tree.state)
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
    assert set(entries(inside.repository, first.tree)) == {"notes.txt", "src/app.py"}


def test_checkpoints_are_removed_by_age(tree: WorkTree) -> None:
    tree.take("1/before")
    times = tree.repository.store / "times"
    times.write_text("1000 refs/teamchat/s/1/before\n")
    tree.take("2/before")
    assert prune(tree.repository, tree.state, before=2000.0) == 1
    assert tree.stored("for-each-ref", "--format=%(refname)", "refs/teamchat").split() == ["refs/teamchat/s/2/before"]
    assert "1/before" not in times.read_text()


def test_a_clock_that_is_ahead_for_once_makes_no_checkpoint_old(
    tree: WorkTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, month = time.time(), 30 * 86_400
    tree.take("1/before")
    for days in (0, 40, 0.5, 1.6, 20):
        monkeypatch.setattr(time, "time", lambda days=days: now + days * 86_400)
        assert prune_daily(tree.repository, tree.state, month) == 0
    for days, removed in ((41, 0), (42.5, 1)):
        monkeypatch.setattr(time, "time", lambda days=days: now + days * 86_400)
        assert prune_daily(tree.repository, tree.state, month) == removed


def test_an_unchanged_tree_takes_no_objects(tree: WorkTree, git_calls: Callable[[], list[str]]) -> None:
    tree.write("new.txt", b"new\n")
    first = tree.take()
    before = set((tree.repository.store / "objects").rglob("*"))
    git_calls()
    assert tree.take("1/after").tree == first.tree
    assert "update-index" not in git_calls()
    assert set((tree.repository.store / "objects").rglob("*")) == before


def test_a_damaged_index_of_ours_is_made_again(tree: WorkTree) -> None:
    first = tree.take()
    (index,) = (file for file in tree.repository.store.glob("index-*") if "." not in file.name)
    index.write_bytes(b"damaged")
    assert tree.take().tree == first.tree


def test_a_checkpoint_outlives_whatever_happens_in_the_repository(tree: WorkTree) -> None:
    tree.write("notes.txt", b"only in the checkpoint\n")
    before = tree.take()
    tree.write("notes.txt", b"other\n")
    tree.git("commit", "-q", "--amend", "--all", "-m", "Amended")
    tree.git("reflog", "expire", "--expire=now", "--all")
    tree.git("gc", "-q", "--prune=now")
    after = tree.take("1/after")
    tree.undo(before, after)
    assert (tree.top / "notes.txt").read_bytes() == b"only in the checkpoint\n"
    assert (tree.top / "src/app.py").read_bytes() == b"print()\n"


def test_a_removed_checkpoint_is_gone_and_the_next_is_taken_all_the_same(tree: WorkTree) -> None:
    tree.write("notes.txt", b"only in the checkpoint\n")
    before = tree.take()
    assert prune(tree.repository, tree.state, "other") == 0
    assert prune(tree.repository, tree.state, "s") == 1
    (index,) = (file for file in tree.repository.store.glob("index-*") if "." not in file.name)
    index.unlink()
    tree.stored("prune", "--expire=now")
    with pytest.raises(CheckpointFailed, match="cannot be read"):
        entries(tree.repository, before.tree)
    assert tree.take().tree == before.tree


def test_nothing_is_written_below_the_users_git_folder(tree: WorkTree, tmp_path: Path) -> None:
    tree.write("untracked", b"secret")
    standing = tree.standing()
    before = tree.take()
    tree.write("untracked", b"other")
    tree.undo(before, tree.take("1/after"))
    assert tree.standing() == standing
    subprocess.run(["git", "init", "-q", "--bare", tmp_path / "mirror"], check=True)
    tree.git("push", "-q", "--mirror", str(tmp_path / "mirror"))
    mirrored = subprocess.run(["git", "-C", tmp_path / "mirror", "show-ref"], capture_output=True, check=True).stdout
    assert [line.split()[1] for line in mirrored.splitlines()] == [b"refs/heads/main"]


def test_what_it_keeps_is_the_users_alone(tree: WorkTree) -> None:
    before = os.umask(0)
    try:
        tree.take()
    finally:
        os.umask(before)
    checkpoints = tree.state / "checkpoints"
    assert [path for path in (checkpoints, *checkpoints.rglob("*")) if path.lstat().st_mode & 0o077] == []


def test_permissions_are_kept_beside_the_tree(tree: WorkTree) -> None:
    tree.write("notes.txt", b"tracked\n", 0o600)
    tree.write("run.sh", b"run\n", 0o750)
    tree.git("add", "run.sh")
    found = entries(tree.repository, tree.take().tree)
    assert {path: entry.bits for path, entry in found.items()} == {
        "notes.txt": 0o600,
        "run.sh": 0o750,
        "src/app.py": 0o644,
    }


SECRETS = {".env": 0o644, "deploy/id_rsa": 0o644, "server.pem": 0o644, "mine.txt": 0o600, ".netrc": 0o600}


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_that_was_there_before_the_turn_stays_out_and_is_named_if_it_changes(
    name: str, tree: WorkTree
) -> None:
    tree.write(name, b"secret one", SECRETS[name])
    before = tree.begin()
    assert (name, "private") in [(one.path, one.why) for one in before.left_out]
    tree.write(name, b"secret two!", 0o644)
    after = tree.end()
    assert name not in entries(tree.repository, after.tree)
    assert left_out_changes(tree.repository, before.tree, after.tree) == {name: "changed"}
    assert b"secret" not in b"".join(everything(tree))


def test_a_secret_that_is_tracked_is_recorded_and_so_is_one_that_a_turn_makes(tree: WorkTree) -> None:
    tree.write(".env", b"tracked", 0o600)
    tree.git("add", ".env")
    before = tree.begin()
    tree.write("key.pem", b"made", 0o600)
    after = tree.end()
    assert before.left_out == after.left_out == ()
    assert [change.path for change in tree.changes(before, after)] == ["key.pem"]
    again = tree.take("now")
    assert again.tree == after.tree
    tree.write("key.pem", b"by the user", 0o600)
    assert "key.pem" not in entries(tree.repository, tree.take("now").tree)


def everything(tree: WorkTree) -> Iterator[bytes]:
    for line in tree.stored("cat-file", "--batch-all-objects", "--batch-check").splitlines():
        yield tree.stored("cat-file", "-p", line.split()[0]).encode("utf-8", "surrogateescape")


def _the_users_rules(tmp_path: Path) -> Path:
    with (tmp_path / "gitconfig").open("a") as config:
        config.write(f"[core]\n\texcludesFile = {tmp_path}/mine\n")
    return tmp_path / "mine"


@pytest.mark.parametrize(
    "where", [".gitignore", "deep/.gitignore", ".git/info/exclude", "the user's own", "an ignored .gitignore"]
)
def test_what_was_ignored_when_the_turn_began_is_not_its_work_whatever_becomes_of_the_rules(
    where: str, tree: WorkTree, tmp_path: Path
) -> None:
    rules = _the_users_rules(tmp_path) if where == "the user's own" else tree.top / where
    if where == "an ignored .gitignore":
        rules = tree.top / ".gitignore"
        (tree.top / ".git/info/exclude").write_text(".gitignore\n")
    rules.parent.mkdir(exist_ok=True)
    rules.write_text("data*\nkeep/\n")
    for path in ("deep/data.txt", "deep/er/data2", "deep/keep/notes"):
        tree.write(path, b"the user's")
    before = tree.begin()
    rules.unlink()
    tree.write("deep/new", b"made by the turn")
    after = tree.end()
    made = [change.path for change in tree.changes(before, after) if change.old is None]
    assert made == ["deep/new"]


def test_a_new_rule_hides_nothing_that_the_turn_made(tree: WorkTree) -> None:
    before = tree.begin()
    tree.write(".gitignore", b"*.o\nbuild/\n")
    tree.write("a.o", b"made")
    tree.write("build/b", b"made")
    (tree.top / ".git/info/exclude").write_text("hidden\n")
    tree.write("hidden", b"made")
    after = tree.end()
    made = [change.path for change in tree.changes(before, after)]
    assert made == [".gitignore", "a.o", "build/b", "hidden"]
    assert tree.take("now").tree == after.tree


def test_an_ignored_file_that_is_moved_is_still_the_users(tree: WorkTree) -> None:
    tree.write(".gitignore", b"secrets/\n.venv/\n*.local\n")
    for path in ("secrets/a", ".venv/notes", "one.local"):
        tree.write(path, b"the user's")
    before = tree.begin()
    (tree.top / "secrets").rename(tree.top / "moved")
    (tree.top / ".venv/notes").rename(tree.top / "notes")
    (tree.top / "one.local").rename(tree.top / "one")
    (tree.top / "src").rename(tree.top / "lib")
    after = tree.end()
    changed = [(change.path, change.what) for change in tree.changes(before, after)]
    assert changed == [("lib/app.py", "added"), ("src/app.py", "deleted")]
    assert [(one.path, one.why) for one in after.left_out] == [
        ("moved/a", "earlier"),
        ("notes", "earlier"),
        ("one", "earlier"),
    ]


@pytest.mark.parametrize("damage", [b"damaged", None])
def test_a_turn_whose_index_is_lost_ends_with_what_it_did(tree: WorkTree, damage: bytes | None) -> None:
    tree.write(".gitignore", b"secrets/\n")
    tree.write("secrets/a", b"the user's")
    before = tree.begin()
    [index] = (file for file in tree.repository.store.glob("index-*") if "." not in file.name)
    index.write_bytes(damage) if damage else index.unlink()
    tree.write("notes.txt", b"changed\n")
    tree.write("new", b"new\n")
    (tree.top / "secrets").rename(tree.top / "moved")
    after = tree.end()
    changed = [(change.path, change.what) for change in tree.changes(before, after)]
    assert changed == [("new", "added"), ("notes.txt", "changed")]
    assert [(one.path, one.why) for one in after.left_out] == [("moved/a", "earlier")]


@pytest.mark.parametrize("repository", ["whole", "empty", "gone"])
def test_a_file_that_git_still_sees_below_a_folder_with_a_git_folder_is_recorded(
    tree: WorkTree, monkeypatch: pytest.MonkeyPatch, repository: str
) -> None:
    monkeypatch.setattr(walking, "SOON_S", -1.0)
    tree.write("src/inner/a", b"1\n")
    tree.take()
    if repository == "whole":
        subprocess.run(("git", "init", "-q"), cwd=tree.top / "src", check=True)
    elif repository == "empty":
        (tree.top / "src/.git").mkdir()
    else:
        tree.write("src/.git", b"gitdir: ../gone\n")
    tree.take()
    tree.take()
    tree.write("src/inner/mine", b"my only copy\n")
    tree.write("src/inner/.gitignore", b"*.tmp\n")
    before = tree.begin()
    tree.write("src/inner/mine", b"overwritten\n")
    tree.write("src/inner/new", b"new\n")
    tree.write("src/inner/x.tmp", b"ignored\n")
    after = tree.end()
    changed = [(change.path, change.what) for change in tree.changes(before, after)]
    assert changed == [("src/inner/mine", "changed"), ("src/inner/new", "added")]
    tree.undo(before, after)
    assert (tree.top / "src/inner/mine").read_bytes() == b"my only copy\n"


def test_the_times_of_folders_are_trusted_on_file_systems_of_the_kernel_alone(
    tree: WorkTree, monkeypatch: pytest.MonkeyPatch, git_calls: Callable[[], list[str]]
) -> None:
    monkeypatch.setattr(walking, "SOON_S", -1.0)
    for trusted in (True, False):
        monkeypatch.setattr(taking, "tells_all_changes", lambda _, trusted=trusted: trusted)
        for kept in tree.repository.store.glob("*.memory"):
            kept.unlink()
        for _ in range(3):
            git_calls()
            assert tree.take().left_out == ()
        assert git_calls().count("ls-files") == (0 if trusted else 1)


def test_a_pipe_where_git_looks_for_rules_is_found_before_git_opens_it(tree: WorkTree) -> None:
    for name in (".gitignore", "deep/er/.gitattributes", ".gitmodules"):
        (tree.top / name).parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(tree.top / name)
        began = time.monotonic()
        with pytest.raises(CheckpointFailed, match=f"^{name} is no file, and git would wait"):
            tree.take()
        assert time.monotonic() - began < 5
        (tree.top / name).unlink()
    assert tree.take().tree


@pytest.mark.parametrize("name", ["HEAD", "config", "config.worktree", "commondir"])
@pytest.mark.parametrize("linked", [False, True])
def test_a_pipe_in_the_place_of_a_file_of_the_repository_is_found_before_git_opens_it(
    tree: WorkTree, name: str, linked: bool, tmp_path: Path
) -> None:
    file, began = tree.repository.git_dir / name, time.monotonic()
    file.unlink(missing_ok=True)
    os.mkfifo(tmp_path / "pipe" if linked else file)
    if linked:
        file.symlink_to(tmp_path / "pipe")
    for folder in (tree.top, tree.top / "deep"):
        folder.mkdir(exist_ok=True)
        found = find_repository(folder, tree.state)
        assert found == NoRepository(f"{file} is no file, and git would wait for what it has; remove it")
    assert time.monotonic() - began < 2


def test_a_pipe_in_the_place_of_a_file_of_a_linked_work_tree_is_found_before_git_opens_it(
    tree: WorkTree, tmp_path: Path
) -> None:
    tree.git("worktree", "add", "-q", str(tmp_path / "linked"))
    for file in (tree.repository.git_dir / "worktrees/linked/HEAD", tree.repository.git_dir / "config"):
        kept = file.read_bytes()
        file.unlink()
        os.mkfifo(file)
        found = find_repository(tmp_path / "linked", tree.state)
        assert isinstance(found, NoRepository)
        assert "is no file, and git would wait" in found.reason
        file.unlink()
        file.write_bytes(kept)
    assert isinstance(find_repository(tmp_path / "linked", tree.state), GitRepository)


def test_the_search_for_a_repository_ends_when_a_person_wants_it(tree: WorkTree, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    tree.git("config", "include.path", str(tmp_path / "pipe"))
    began = time.monotonic()
    found = find_repository(tree.top, tree.state, lambda: True)
    assert found == NoRepository("git rev-parse was stopped")
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    "sizes", [{".gitignore": 2.0}, {"a/b/.gitignore": 0.6, ".gitignore": 0.5}, {".git/info/exclude": 2.0}]
)
def test_rules_of_more_than_a_megabyte_are_not_read_and_named(tree: WorkTree, sizes: dict[str, float]) -> None:
    tree.write("one", b"1")
    tree.begin()
    for path, size in sizes.items():
        tree.write(path, b"/some/name.x\n" * int(size * MOST_RULES / 13))
    named = (
        "info/exclude or the file of core.excludesFile"
        if ".git/info/exclude" in sizes
        else max(sizes, key=lambda path: sizes[path])
    )
    tree.write("two", b"2")
    tree.end()  # the rules of its beginning rule
    with pytest.raises(CheckpointFailed, match=f"^the rules of what is ignored have .* bytes, .*; shorten {named}$"):
        tree.begin(2)
    tree.take()
    for path in sizes:
        (tree.top / path).unlink()
    tree.begin(2)


def test_rules_of_ignored_folders_do_not_count(tree: WorkTree) -> None:
    tree.write(".gitignore", b"node_modules/\n")
    tree.write("node_modules/.gitignore", b"x" * (MOST_RULES + 1))
    assert tree.begin().tree


def test_a_pipe_that_a_turn_makes_for_rules_leaves_the_turn_recorded(tree: WorkTree) -> None:
    before = tree.begin()
    os.mkfifo(tree.top / ".gitignore")
    tree.write("made", b"by the turn")
    after = tree.end()
    assert [change.path for change in tree.changes(before, after)] == ["made"]


def test_a_git_that_does_nothing_is_ended(tree: WorkTree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "idle" / "git"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\n[ "$1" = diff-files ] && exec sleep 600\nexec {shutil.which("git")} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    began = time.monotonic()
    with pytest.raises(CheckpointFailed, match=r"^git diff-files did nothing for 0\.5 s$"):
        tree.take(limits=CheckpointLimits(idle_s=0.5))
    with pytest.raises(CheckpointFailed, match=r"^git diff-files was stopped$"):
        tree.take(limits=CheckpointLimits(stopped=lambda: True))
    assert time.monotonic() - began < 10


def test_a_file_that_became_too_large_or_a_pipe_is_left_out_with_what_tells_its_changes(tree: WorkTree) -> None:
    small = CheckpointLimits(file_bytes=100)
    tree.write("grown", b"x" * 10)
    tree.write("piped", b"x")
    tree.take(limits=small)
    tree.write("grown", b"x" * 101)
    (tree.top / "piped").unlink()
    os.mkfifo(tree.top / "piped")
    after = tree.take("1/after", small)
    assert [(one.path, one.why) for one in after.left_out] == [("grown", "large"), ("piped", "special")]
    assert tree.take("now", small).tree == after.tree
    with (tree.top / "grown").open("ab") as file:
        file.write(b"y")
    now = tree.take("now", small)
    assert left_out_changes(tree.repository, after.tree, now.tree) == {"grown": "changed"}


def bits_of(tree: WorkTree, path: str) -> int | None:
    return entries(tree.repository, tree.take().tree)[path].bits


def test_a_change_of_permissions_is_seen_however_soon_it_comes(tree: WorkTree) -> None:
    path = tree.top / "notes.txt"
    for number in range(40):
        bits = (0o600, 0o644, 0o640)[number % 3]
        path.chmod(bits)
        assert bits_of(tree, "notes.txt") == bits


def test_a_change_of_permissions_is_seen_long_after_the_last_look(
    tree: WorkTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(taking, "SOON_S", -1.0)  # nothing is looked at again but for what git finds
    assert bits_of(tree, "notes.txt") == 0o644
    time.sleep(1.1)  # git compares times by the second
    (tree.top / "notes.txt").chmod(0o600)
    assert bits_of(tree, "notes.txt") == 0o600
    time.sleep(1.1)
    (tree.top / "notes.txt").chmod(0o644)
    assert bits_of(tree, "notes.txt") == 0o644


@pytest.mark.parametrize("what", ["index", "memory", "junk", "wrong"])
def test_what_is_kept_for_the_next_look_may_be_lost(tree: WorkTree, what: str) -> None:
    tree.take()
    [index] = [file for file in tree.repository.store.glob("index-*") if "." not in file.name]
    kept = index.with_name(f"{index.name}.memory")
    assert kept.exists()
    if what == "index":
        index.unlink()
    elif what == "memory":
        kept.unlink()
    else:
        kept.write_text("{" if what == "junk" else '{"others": {"notes.txt": "x"}}')
    (tree.top / "notes.txt").chmod(0o600)
    assert bits_of(tree, "notes.txt") == 0o600


def test_a_file_that_becomes_a_link_and_a_file_again_has_its_permissions(tree: WorkTree) -> None:
    path = tree.top / "notes.txt"
    tree.take()
    path.unlink()
    path.symlink_to("src/app.py")
    assert bits_of(tree, "notes.txt") is None
    path.unlink()
    tree.write("notes.txt", b"again\n")
    path.chmod(0o600)
    assert bits_of(tree, "notes.txt") == 0o600


def test_permissions_are_right_after_a_look_that_was_killed_behind_its_index(
    tree: WorkTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(taking, "SOON_S", -1.0)  # nothing is looked at again but for what git finds, or was noted
    assert bits_of(tree, "notes.txt") == 0o644
    time.sleep(1.1)  # git compares times by the second
    (tree.top / "notes.txt").chmod(0o600)
    with monkeypatch.context() as killed:
        killed.setattr(taking._Look, "_remember", interrupted)
        with pytest.raises(KeyboardInterrupt):
            tree.take()
    assert bits_of(tree, "notes.txt") == 0o600


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt
