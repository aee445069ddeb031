from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from teamchat.core.checkpoint.values import TreeEntry
from teamchat.core.errors import CheckpointFailed
from tests.core.checkpoint.worktree import WorkTree
from tests.core.full_disk import files_of_at_most


def put_back(tree: WorkTree, paths: dict[str, TreeEntry | None]) -> None:
    tree.restore(tree.take("now"), paths)


def blob(tree: WorkTree, content: str) -> str:
    (tree.state.parent / "content").write_text(content)
    tree.take("kept")
    return tree.stored("hash-object", "-w", "--no-filters", str(tree.state.parent / "content")).strip()


def test_nothing_is_written_or_deleted_through_a_symbolic_link(tree: WorkTree, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "gone").write_text("mine")
    (tree.top / "folder").symlink_to(outside)
    (tree.top / "deep").mkdir()
    (tree.top / "deep" / "link").symlink_to(outside)
    new = TreeEntry("100644", blob(tree, "new"))
    wanted = {"folder/new": new, "folder/gone": None, "deep/link/new": new, "deep/link/gone": None, "good": new}
    with pytest.raises(CheckpointFailed) as failed:
        put_back(tree, wanted)
    reason = "a file or a symbolic link is where its folder was"
    assert str(failed.value) == (f"not put back: deep/link/new ({reason}), folder/new ({reason}); everything else is")
    assert [path.name for path in outside.iterdir()] == ["gone"]
    assert (tree.top / "good").read_text() == "new"


def test_a_link_that_goes_makes_room_for_its_folder(tree: WorkTree, tmp_path: Path) -> None:
    (tree.top / "folder").symlink_to(tmp_path)
    put_back(tree, {"folder": None, "folder/new": TreeEntry("100755", blob(tree, "new"))})
    assert (tree.top / "folder" / "new").read_text() == "new"
    assert os.access(tree.top / "folder" / "new", os.X_OK)
    assert not (tmp_path / "new").exists()


def test_emptied_folders_go_and_others_stay(tree: WorkTree) -> None:
    tree.write("made/deep/er/one", b"1")
    tree.write("made/two", b"2")
    tree.write("mixed/three", b"3")
    tree.write("mixed/mine", b"mine")
    (tree.top / "empty").mkdir()
    put_back(tree, {"made/deep/er/one": None, "made/two": None, "mixed/three": None, "never/was": None})
    assert sorted(path.name for path in tree.top.iterdir()) == [".git", "empty", "mixed", "notes.txt", "src"]
    assert [path.name for path in (tree.top / "mixed").iterdir()] == ["mine"]


def test_a_folder_without_files_makes_room_and_one_with_a_file_does_not(tree: WorkTree) -> None:
    (tree.top / "hollow" / "inner").mkdir(parents=True)
    tree.write("full/inner/mine", b"mine")
    new = TreeEntry("100644", blob(tree, "new"))
    with pytest.raises(CheckpointFailed) as failed:
        put_back(tree, {"hollow": new, "full": new, "other": new})
    assert str(failed.value) == "not put back: full (a folder with other files is in its place); everything else is"
    assert [(tree.top / name).read_text() for name in ("hollow", "other")] == ["new", "new"]
    assert (tree.top / "full/inner/mine").read_text() == "mine"


def test_a_disk_without_room_leaves_the_old_file_whole(tree: WorkTree) -> None:
    large = TreeEntry("100644", blob(tree, "x" * 2000))
    with files_of_at_most(1000), pytest.raises(CheckpointFailed, match=r"notes.txt \(File too large\)"):
        put_back(tree, {"notes.txt": large})
    assert (tree.top / "notes.txt").read_text() == "first\nsecond\n"
    assert sorted(path.name for path in tree.top.iterdir()) == [".git", "notes.txt", "src"]


def test_what_is_no_longer_in_the_repository_is_named(tree: WorkTree) -> None:
    with pytest.raises(CheckpointFailed, match=r"^not put back: notes.txt \(its content is no longer there\)"):
        put_back(tree, {"notes.txt": TreeEntry("100644", "1" * 40), "new": TreeEntry("100644", blob(tree, "new"))})
    assert (tree.top / "notes.txt").read_text() == "first\nsecond\n"
    assert (tree.top / "new").read_text() == "new"


@pytest.mark.parametrize(
    "path", ["../out", "/out", ".git/hooks/pre-commit", "a/.GIT/config", "a//b", "", "git~1", ".g\u200cit"]
)
def test_a_forged_tree_leads_nowhere_else(path: str, tree: WorkTree) -> None:
    tree.take("now")
    new = TreeEntry("100755", blob(tree, "new"))
    before = {file for file in tree.top.parent.rglob("*") if tree.state not in file.parents and file != tree.state}
    with pytest.raises(CheckpointFailed, match="git keeps that name for itself"):
        put_back(tree, {path: new})
    assert {
        file for file in tree.top.parent.rglob("*") if tree.state not in file.parents and file != tree.state
    } == before


def test_the_permissions_of_a_file_stay_but_for_its_x_bit(tree: WorkTree) -> None:
    tree.write("secret", b"old", 0o600)
    tree.git("add", "secret")
    before = tree.take()
    tree.write("secret", b"new", 0o700)
    tree.undo(before, tree.take("1/after"))
    assert (tree.top / "secret").stat().st_mode & 0o777 == 0o600
    tree.write("secret", b"new", 0o640)
    put_back(tree, {"secret": TreeEntry("100755", blob(tree, "x"))})
    assert (tree.top / "secret").stat().st_mode & 0o777 == 0o750


def test_an_ignored_file_outlives_the_folder_that_was_made_around_it(tree: WorkTree) -> None:
    tree.write(".gitignore", b"*.o\n")
    before = tree.take()
    tree.write("build/a.c", b"1")
    tree.write("build/a.o", b"2")
    tree.undo(before, tree.take("1/after"))
    assert [path.name for path in (tree.top / "build").iterdir()] == ["a.o"]


def test_a_damaged_object_is_not_written(tree: WorkTree) -> None:
    entry = TreeEntry("100644", blob(tree, "new"))
    other = blob(tree, "other")
    objects = tree.repository.store / "objects"
    place = objects / entry.blob[:2] / entry.blob[2:]
    place.chmod(0o644)
    shutil.copyfile(objects / other[:2] / other[2:], place)
    with pytest.raises(CheckpointFailed, match="its content is no longer there"):
        put_back(tree, {"notes.txt": entry})
    assert (tree.top / "notes.txt").read_text() == "first\nsecond\n"
