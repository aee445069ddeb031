"""Checkpoints as packs between two machines: what travels, how little of it, and what is refused."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from teamchat.core.checkpoint import packs
from teamchat.core.checkpoint.compare import entries
from teamchat.core.checkpoint.packs import CheckpointPack, LacksBase, TooLarge, borrow, pack, unpack
from teamchat.core.checkpoint.take import take
from teamchat.core.errors import CheckpointFailed
from tests.core.checkpoint.worktree import WorkTree

REF = "refs/teamchat/a/came"


def two(tmp_path: Path, files: dict[str, bytes]) -> tuple[WorkTree, WorkTree]:
    """A repository, and a clone of it as another machine has it."""
    home = WorkTree.committed(tmp_path / "home", tmp_path / "state", files)
    clone = tmp_path / "clone"
    subprocess.run(("git", "clone", "-q", home.top, clone), check=True)
    return home, WorkTree(clone, tmp_path / "other-state")


def sent(home: WorkTree, *known: str) -> CheckpointPack:
    own = home.repository
    checkpoint = take(own, home.state, "refs/teamchat/a/sent").tree
    return pack(own, home.state, checkpoint, known, own.common_dir / "objects")


def head(tree: WorkTree) -> str:
    return tree.git("rev-parse", "HEAD").strip()


def test_a_clone_gets_only_what_is_new_and_has_all_of_it_then(tmp_path: Path) -> None:
    home, clone = two(tmp_path, {"a.txt": b"a\n", "large.bin": os.urandom(1 << 20)})
    home.write("new.txt", b"new\n")
    (home.top / "a.txt").chmod(0o755)
    (home.top / "link").symlink_to("a.txt")
    packed = sent(home, head(home))
    assert len(packed.pack) < 2000
    borrow(clone.repository, clone.state)
    unpack(clone.repository, clone.state, packed, REF)
    assert entries(clone.repository, packed.checkpoint) == entries(home.repository, packed.checkpoint)


def test_who_has_nothing_gets_everything(tmp_path: Path) -> None:
    home, clone = two(tmp_path, {"a.txt": b"a\n"})
    packed = sent(home)
    assert packed.base is None
    unpack(clone.repository, clone.state, packed, REF)
    assert entries(clone.repository, packed.checkpoint) == entries(home.repository, packed.checkpoint)


@pytest.mark.long
def test_a_second_time_sends_little_of_a_tree_of_20_megabytes(tmp_path: Path) -> None:
    files = {f"folder-{number % 20}/file-{number}.bin": os.urandom(20_000) for number in range(1_000)}
    home, clone = two(tmp_path, files)
    borrow(clone.repository, clone.state)
    first = sent(home, head(home))
    unpack(clone.repository, clone.state, first, REF)
    home.write("folder-3/file-3.bin", files["folder-3/file-3.bin"] + b"more")
    second = sent(home, first.checkpoint)
    assert len(second.pack) < 2_000
    unpack(clone.repository, clone.state, second, REF)
    same = sent(home, second.checkpoint)
    assert len(same.pack) < 1_000
    unpack(clone.repository, clone.state, same, REF)


def test_what_the_receiver_lacks_is_told_before_anything_is_taken_over(tmp_path: Path) -> None:
    home, clone = two(tmp_path, {"a.txt": b"a\n"})
    with pytest.raises(LacksBase, match="no longer here"):
        unpack(clone.repository, clone.state, sent(home, head(home)), REF)  # its store does not borrow


def test_too_much_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs, "LARGEST", 1 << 20)
    home, clone = two(tmp_path, {"a.txt": b"a\n"})
    home.write("large.bin", os.urandom(2 << 20))
    home.write("small.bin", b"small")
    with pytest.raises(TooLarge, match=r"2\.0 MB, over 1 MB; the largest: large\.bin \(2\.0 MB\)"):
        sent(home, head(home))
    monkeypatch.undo()
    packed = sent(home, head(home))
    monkeypatch.setattr(packs, "LARGEST", 1 << 20)
    borrow(clone.repository, clone.state)
    with pytest.raises(TooLarge):
        unpack(clone.repository, clone.state, packed, REF)


@pytest.mark.parametrize("broken", [b"", b"no pack", b"PACK" + bytes(40)])
def test_what_is_no_pack_is_refused(tmp_path: Path, broken: bytes) -> None:
    home, clone = two(tmp_path, {"a.txt": b"a\n"})
    packed = sent(home)
    with pytest.raises(CheckpointFailed):
        unpack(clone.repository, clone.state, CheckpointPack(packed.checkpoint, None, broken), REF)


def test_a_pack_without_all_objects_is_refused(tmp_path: Path) -> None:
    home, clone = two(tmp_path, {"a.txt": b"a\n"})
    packed = sent(home, head(home))
    with pytest.raises(CheckpointFailed):
        unpack(clone.repository, clone.state, CheckpointPack(packed.checkpoint, None, packed.pack), REF)


def test_a_tree_that_would_be_written_into_git_is_refused(tmp_path: Path) -> None:
    home, clone = two(tmp_path, {"a.txt": b"a\n"})
    blob = home.git("hash-object", "-w", "a.txt").strip()
    entries_of = f"100644 blob {blob}\tconfig\n"
    inner = subprocess.run(
        ("git", "mktree"), cwd=home.top, input=entries_of, capture_output=True, text=True, check=True
    ).stdout.strip()
    made = subprocess.run(
        ("git", "mktree"),
        cwd=home.top,
        input=f"040000 tree {inner}\t.git\n",
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    commit = subprocess.run(
        ("git", "-c", "user.name=kai", "-c", "user.email=kai@example.invalid", "commit-tree", made, "-m", "x"),
        cwd=home.top, capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    packed = subprocess.run(
        ("git", "pack-objects", "--revs", "--stdout", "-q"), cwd=home.top, input=commit.encode(), capture_output=True,
        check=True,
    ).stdout  # fmt: skip
    with pytest.raises(CheckpointFailed, match=r"\.git"):
        unpack(clone.repository, clone.state, CheckpointPack(commit, None, packed), REF)
