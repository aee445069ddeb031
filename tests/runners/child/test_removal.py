"""Removing what an agent has left: any tree, nothing but that tree, and never an exception."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from teamchat.runners.child import removal
from teamchat.runners.child.removal import remove
from tests.runners.processes import descriptors

LEVELS = 1010  # beyond PATH_MAX, and beyond Python's recursion limit


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "private"
    path.mkdir()
    return path


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Path]:
    """A folder of somebody else's with one file, both with permissions of their own, which it keeps."""
    path = tmp_path / "elsewhere"
    path.mkdir()
    (path / "kept").write_text("kept")
    (path / "kept").chmod(0o440)
    path.chmod(0o750)
    yield path
    assert (path / "kept").read_text() == "kept"
    assert [stat.S_IMODE(one.stat().st_mode) for one in (path, path / "kept")] == [0o750, 0o440]


def chain(folder: Path, levels: int) -> None:
    """A folder in a folder in a folder, made as a shell's `mkdir d; cd d` makes it."""
    place = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d" * 20, dir_fd=place)
        below = os.open("d" * 20, os.O_RDONLY, dir_fd=place)
        os.close(os.open("file", os.O_CREAT, dir_fd=below))
        os.close(place)
        place = below
    os.close(place)


def a_chain(folder: Path) -> None:
    chain(folder, LEVELS)


def many_files(folder: Path) -> None:
    for number in range(1000):
        (folder / f"{number}").touch()


def many_folders(folder: Path) -> None:
    for number in range(100):
        (folder / f"{number}" / "in" / "it").mkdir(parents=True)
        (folder / f"{number}" / "in" / "file").touch()


def odd_names(folder: Path) -> None:
    for name in (b"\xff\xfe", b"\n", b"-rf", b" ", b"...", b"\x1b[2J", b"x" * 255, b".removed-1-0", b"*"):
        path = folder / os.fsdecode(name)
        path.mkdir()
        (path / path.name).touch()


def no_permissions(folder: Path) -> None:
    (folder / "a" / "b" / "c").mkdir(parents=True)
    (folder / "a" / "b" / "c" / "file").touch()
    for path in (folder / "a" / "b" / "c", folder / "a" / "b", folder / "a", folder):
        path.chmod(0)


def of_every_kind(folder: Path) -> None:
    os.mkfifo(folder / "fifo")
    with socket.socket(socket.AF_UNIX) as one, contextlib.chdir(folder):  # the path may be too long for a socket
        one.bind("socket")
    with (folder / "sparse").open("wb") as file:
        file.truncate(1 << 40)


TREES = (a_chain, many_files, many_folders, odd_names, no_permissions, of_every_kind, lambda _: None)


@pytest.mark.parametrize("make", TREES)
def test_any_tree_is_removed(folder: Path, make: Callable[[Path], None]) -> None:
    make(folder)
    before = descriptors()
    assert remove(folder) is None
    assert not os.path.lexists(folder)
    assert descriptors() == before


def test_what_is_not_there_is_removed_already(tmp_path: Path) -> None:
    assert remove(tmp_path / "none") is None
    assert remove(tmp_path / "none" / "neither") is None


def test_what_another_process_removes_meanwhile_is_removed_already(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered = removal._entered

    def removed(place: int, name: str) -> object:
        shutil.rmtree(folder)
        return entered(place, name)

    of_every_kind(folder)
    with monkeypatch.context() as patch:
        patch.setattr(removal, "_entered", removed)
        assert remove(folder) is None


def test_a_name_may_have_any_bytes(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/\xff"
    os.mkdir(path)  # noqa: PTH102
    assert remove(path) is None
    assert os.listdir(os.fsencode(tmp_path)) == []  # noqa: PTH208


def test_links_are_removed_and_not_followed(folder: Path, elsewhere: Path) -> None:
    (folder / "in").mkdir()
    for name in ("folder", "in/folder"):
        (folder / name).symlink_to(elsewhere)
    (folder / "in" / "itself").symlink_to(folder)
    (folder / "nowhere").symlink_to("nowhere")
    (folder / "hard").hardlink_to(elsewhere / "kept")
    assert remove(folder) is None
    assert not folder.exists()


def test_a_link_in_the_place_of_the_folder_is_removed_and_not_followed(folder: Path, elsewhere: Path) -> None:
    folder.rmdir()
    folder.symlink_to(elsewhere)
    assert remove(folder) is None
    assert not os.path.lexists(folder)


def test_a_file_in_the_place_of_the_folder_is_removed(folder: Path) -> None:
    folder.rmdir()
    folder.touch()
    assert remove(folder) is None
    assert not folder.exists()


def test_a_file_in_the_place_of_its_parent_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert remove(tmp_path / "file" / "private") == f"{tmp_path}/file/private cannot be removed: Not a directory"


def test_what_is_swapped_for_a_link_meanwhile_is_not_followed(
    folder: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Right between the look at a folder and its opening."""
    (folder / "in" / "it").mkdir(parents=True)
    entered = removal._entered

    def swapped(place: int, name: str) -> object:
        if name == "in" and not (folder / "in").is_symlink():
            (folder / "in").rename(folder / "aside")
            (folder / "in").symlink_to(elsewhere)
        return entered(place, name)

    monkeypatch.setattr(removal, "_entered", swapped)
    assert remove(folder) is None
    assert not folder.exists()


def test_a_process_that_goes_on_to_swap_folders_for_links_reaches_nothing(folder: Path, elsewhere: Path) -> None:
    over = threading.Event()

    def swap() -> None:
        while not over.is_set():
            try:
                (folder / "in" / "it").mkdir(parents=True)
                (folder / "in" / "it").rename(folder / "out")
                (folder / "in" / "it").symlink_to(elsewhere)
                (folder / "out").rmdir()
            except OSError:
                continue

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for _ in range(50):
            folder.mkdir(exist_ok=True)
            remove(folder)
    finally:
        over.set()
        thread.join()
    assert remove(folder) is None


def test_a_process_that_goes_on_to_write_does_not_keep_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removal, "LONGEST_S", 1.0)
    entered = removal._entered

    @contextmanager
    def refilled(place: int, name: str) -> Iterator[int]:
        with entered(place, name) as opened:
            yield opened
        (folder / "file").touch()

    with monkeypatch.context() as patch:
        patch.setattr(removal, "_entered", refilled)
        (folder / "first").touch()
        assert remove(folder) == f"{folder} cannot be removed: not done after 1 s"
    assert remove(folder) is None


@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs unshare")
@pytest.mark.parametrize("mount", ["--bind {elsewhere} {place}", "-t tmpfs none {place}"])
@pytest.mark.parametrize("place", ["", "in", "in/it/deep"])
def test_what_is_mounted_is_not_touched_and_said(folder: Path, elsewhere: Path, mount: str, place: str) -> None:
    (folder / "in" / "it" / "deep").mkdir(parents=True)
    (folder / "file").touch()
    at = folder / place
    script = f"""
        mount {mount.format(elsewhere=elsewhere, place=at)} || exit 77
        mkdir -p {at}/mine
        {sys.executable} -c 'from teamchat.runners.child.removal import remove; print(remove("{folder}"))'
        find {folder} -name mine -exec rmdir {{}} + -print
    """
    ran = subprocess.run(["unshare", "-r", "-m", "sh", "-c", script], capture_output=True, text=True, check=False)
    if ran.returncode == 77 or "unshare failed" in ran.stderr:
        pytest.skip("this system lets no test mount anything")
    first, *found = ran.stdout.splitlines()
    assert first == f"{folder} cannot be removed: Device or resource busy"
    assert [Path(path).name for path in found] == ["mine"]
    assert remove(folder) is None
    assert not folder.exists()
