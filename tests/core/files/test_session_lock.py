from __future__ import annotations

import errno
import fcntl
import os
import shlex
import signal
import stat
from pathlib import Path

import pytest

from teamchat.core.errors import ExitCode, SessionBusy, StoreError
from teamchat.core.files.session_lock import holder_of, session_lock
from tests.lock_holder import HOLDER, holder

FORKS = "    os.fork() or os._exit(time.sleep(0.5) or 0)\n"
STARTING = "import os\nimport time\n" + HOLDER.replace("    print(", FORKS + "    print(")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "session-1.lock"


def test_the_second_one_is_refused_and_told_who_has_it(path: Path) -> None:
    with holder(path) as other:
        with pytest.raises(SessionBusy) as caught, session_lock(path, "teamchat send"):
            pass
        other.communicate(b"\n")
    assert str(caught.value) == (
        f"this conversation is being run by process {other.pid} (teamchat send 'a very long command')"
        "; wait, stop it, or start another one"
    )
    assert caught.value.code == ExitCode.STORE
    with session_lock(path, "x"):
        pass


def test_the_lock_goes_with_its_holder_however_it_ends(path: Path) -> None:
    with holder(path) as other:
        os.kill(other.pid, signal.SIGKILL)
        other.wait()
        with session_lock(path, "teamchat send"):
            assert path.read_text().startswith(f"process {os.getpid()} (teamchat send)\n")


@pytest.mark.parametrize("killed", [True, False])
def test_what_its_holder_was_just_starting_at_its_end_is_waited_for(path: Path, killed: bool) -> None:
    with holder(path, STARTING) as other:
        if killed:
            other.kill()
        assert other.stdin
        other.stdin.close()
        other.wait()
    with path.open() as left, pytest.raises(BlockingIOError):
        fcntl.flock(left, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with session_lock(path, "teamchat send"):
        assert path.read_text().startswith(f"process {os.getpid()} (teamchat send)\n")


def test_who_held_it_last_is_not_taken_for_its_holder(path: Path) -> None:
    with session_lock(path, "one"):
        assert holder_of(path) == (os.getpid(), f"process {os.getpid()} (one)")
    with path.open() as taken:  # by somebody who has yet to write who it is
        fcntl.flock(taken, fcntl.LOCK_EX)
        assert holder_of(path) is None


def test_who_was_killed_over_it_does_not_hold_it(path: Path) -> None:
    with holder(path) as other:
        other.kill()
        other.wait()
        assert str(other.pid) in path.read_text()
        assert holder_of(path) is None


def test_the_lock_goes_with_an_error(path: Path) -> None:
    with pytest.raises(RuntimeError), session_lock(path, "one"):
        raise RuntimeError
    with session_lock(path, "two"):
        assert "two" in path.read_text()


def test_the_lock_is_for_its_user_alone(path: Path) -> None:
    with session_lock(path, "one"):
        assert path.stat().st_mode & 0o777 == 0o600


def test_two_sessions_have_locks_of_their_own(tmp_path: Path) -> None:
    one, two = tmp_path / "session-1.lock", tmp_path / "session-2.lock"
    with session_lock(one, "one"), session_lock(two, "two"):
        assert one.read_text() != two.read_text()


def test_a_lock_that_can_not_be_made_is_a_failure_of_the_store(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    path = tmp_path / "file" / "session-1.lock"
    with (
        pytest.raises(StoreError, match=f"^the lock {path} cannot be opened: Not a directory; .*$"),
        session_lock(path, "x"),
    ):
        pass


@pytest.mark.parametrize("kind", ["fifo", "device"])
def test_what_is_no_file_is_no_lock(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "it's a lock"
    if kind == "fifo":
        os.mkfifo(path)
    elif os.getuid() == 0:
        os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    else:
        pytest.skip("only root makes devices")
    with pytest.raises(StoreError) as caught, session_lock(path, "x"):
        pass
    assert (str(caught.value), caught.value.hint) == (f"the lock {path} is not a file", f"rm {shlex.quote(str(path))}")
    assert shlex.split(caught.value.hint or "") == ["rm", str(path)]


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS])
def test_a_file_system_without_locks_is_one_sentence(path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def no_locks(_file: int, _operation: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("teamchat.core.files.session_lock.fcntl.flock", no_locks)
    with pytest.raises(StoreError) as caught, session_lock(path, "teamchat send"):
        pass
    assert str(caught.value) == (
        f"the lock {path} cannot be taken: {os.strerror(number)}; set TEAMCHAT_HOME to a folder of another file system"
    )
