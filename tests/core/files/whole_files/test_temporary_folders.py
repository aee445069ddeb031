"""Temporary folders of the state folder: for the user alone, locked while used, swept after their owner."""

from __future__ import annotations

import fcntl
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from teamchat.core.errors import StoreError
from teamchat.core.files.whole_files import FOLDER, temporary_folder

OWNER = """
import sys
from teamchat.core.files.whole_files import temporary_folder
with temporary_folder("rescue") as folder:
    (folder / "sub").mkdir()
    (folder / "sub" / "copy").write_text("a page")
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TEAMCHAT_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def is_locked(folder: Path) -> bool:
    opened = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(opened)
    return False


def test_it_is_in_the_state_folder_for_the_user_alone_whatever_the_umask(state: Path) -> None:
    before = os.umask(0)
    try:
        with temporary_folder("rescue") as folder:
            assert folder.parent == state / FOLDER
            assert [stat.S_IMODE(each.stat().st_mode) for each in (folder, folder.parent)] == [0o700, 0o700]
    finally:
        os.umask(before)


def test_it_is_locked_while_it_is_used_and_removed_at_the_end_and_after_an_error(state: Path) -> None:
    with pytest.raises(KeyError), temporary_folder("rescue") as folder:  # noqa: PT012 (the error ends its use)
        (folder / "copy").write_text("a page")
        assert is_locked(folder)
        raise KeyError
    assert list((state / FOLDER).iterdir()) == []


def test_that_of_a_killed_process_is_swept_and_that_of_a_living_one_stays(state: Path) -> None:
    owners = [
        subprocess.Popen([sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    try:
        killed, living = (Path(owner.stdout.readline().strip()) for owner in owners if owner.stdout)
        owners[0].send_signal(signal.SIGKILL)
        owners[0].wait()
        assert (killed / "sub" / "copy").exists()
        with temporary_folder("rescue") as folder:
            assert {*(state / FOLDER).iterdir()} == {living, folder}
            assert (living / "sub" / "copy").read_text() == "a page"
        owners[1].communicate("", timeout=60)
        assert list((state / FOLDER).iterdir()) == []
    finally:
        for owner in owners:
            owner.kill()
            owner.communicate()


def test_a_link_in_the_place_of_their_folder_is_not_followed(state: Path, tmp_path: Path) -> None:
    (tmp_path / "theirs" / "kept").mkdir(parents=True)
    state.mkdir()
    (state / FOLDER).symlink_to(tmp_path / "theirs")
    with pytest.raises(StoreError, match="no temporary folder can be made"), temporary_folder("rescue"):
        pass
    assert [file.name for file in (tmp_path / "theirs").iterdir()] == ["kept"]
