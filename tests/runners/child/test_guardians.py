"""The guardians as this process sees them: whatever happens to one that was started ahead, the next agent starts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from teamchat.runners.child.guardians import Guardians, end
from tests.program import ROOT
from tests.runners.processes import children, descriptors, eventually, state


@pytest.fixture
def guardians() -> Iterator[Guardians]:
    made = Guardians()
    yield made
    made.dismiss()


def guarded(guardians: Guardians) -> tuple[int, bytes]:
    """A guardian and its `state`."""
    with Path(os.devnull).open("r+b") as nothing:
        folder = os.open("/", os.O_RDONLY)
        process, control = guardians.guard(folder, [nothing.fileno()] * 3)
        os.close(folder)
    found = state(process.pid)
    end(process, control)
    return process.pid, found


def started_ahead(guardians: Guardians) -> int:
    guardians.prepare()
    assert guardians._ahead
    return guardians._ahead[0].pid


def stop(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)
    assert eventually(lambda: state(pid) == b"T")


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    assert eventually(lambda: state(pid) in {b"Z", b"X"})


def test_the_one_that_was_started_ahead_guards_the_next_agent(guardians: Guardians) -> None:
    ahead = started_ahead(guardians)
    guardians.prepare()
    assert guarded(guardians)[0] == ahead
    assert guarded(guardians)[0] != ahead


@pytest.mark.parametrize("harm", [stop, kill])
def test_whatever_happened_to_it_the_next_agent_has_one(guardians: Guardians, harm: Callable[[int], None]) -> None:
    harm(started_ahead(guardians))
    assert guarded(guardians)[1] not in (b"T", b"Z", b"X")


def test_one_that_is_not_needed_ends_and_leaves_nothing(guardians: Guardians) -> None:
    before = children()
    ahead = started_ahead(guardians)
    guardians.dismiss()
    assert not Path(f"/proc/{ahead}").exists()
    assert children() <= before


def test_one_that_was_started_ahead_ends_with_teamchat_though_it_was_stopped() -> None:
    program = (
        "import os, signal, time\n"
        "from teamchat.runners.child.guardians import GUARDIANS\n"
        "GUARDIANS.prepare()\n"
        "ahead = GUARDIANS._ahead[0].pid\n"
        "time.sleep(0.5)\n"  # it has begun
        "os.kill(ahead, signal.SIGSTOP)\n"
        "print(ahead, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, cwd=ROOT, check=False)
    assert eventually(lambda: not Path(f"/proc/{int(ran.stdout)}").exists())


def test_without_an_interpreter_nothing_is_left_open(
    guardians: Guardians, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "missing"))
    before = descriptors()
    with pytest.raises(FileNotFoundError):
        guardians.prepare()
    assert descriptors() == before
