"""A process with a lease: its guardian ends it when that is over, whatever becomes of who has started it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from teamchat.runners.child.guardian import boot_time
from teamchat.runners.child.process import ChildProcess
from teamchat.runners.child.running import Launch, Lease
from tests.runners.processes import PATIENCE_S, Ran, eventually, follow, following, guardian_of, lives, shell, state

SHORT_S = 0.5
BEGUN_S = 1.5  # in which an agent also hears no soft signal any more on a busy machine
DEAF = "trap '' TERM; echo begun; while :; do sleep 0.05; done"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "turn"


def leased(folder: Path, script: str, seconds: float) -> ChildProcess:
    lease = Lease(boot_time() + seconds, grace_s=0.1)
    return ChildProcess(Launch(shell(script), folder.parent, {"PATH": "/bin:/usr/bin"}, b"", folder, lease=lease))


@contextlib.contextmanager
def stopped(*pids: int) -> Iterator[None]:
    """They do nothing meanwhile."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    assert eventually(lambda: all(state(pid) == b"T" for pid in pids))
    try:
        yield
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def test_one_that_ends_in_time_has_not_lapsed(folder: Path) -> None:
    ran = follow(leased(folder, "echo one", PATIENCE_S))
    assert (ran.out, ran.end, ran.exit.lapsed) == (b"one\n", (0, ()), False)


def test_the_guardian_ends_it_also_if_it_hears_no_soft_signal(folder: Path) -> None:
    ran = follow(leased(folder, DEAF, BEGUN_S))
    assert (ran.out, ran.exit.code, ran.exit.lapsed) == (b"begun\n", -signal.SIGKILL, True)


def test_it_runs_as_long_as_its_lease_is_renewed(folder: Path) -> None:
    async def main() -> Ran:
        process = leased(folder, "sleep 1.5; echo done", SHORT_S)
        follows = asyncio.create_task(following(process))
        while not follows.done():
            process.renew(boot_time() + SHORT_S)
            await asyncio.sleep(0.05)
        return await follows

    ran = asyncio.run(main())
    assert (ran.out, ran.end, ran.exit.lapsed) == (b"done\n", (0, ()), False)


def test_a_lease_that_is_over_when_all_have_slept_is_over(folder: Path) -> None:
    process = leased(folder, DEAF, BEGUN_S)
    assert eventually(lambda: (folder / "stdout").read_bytes().endswith(b"begun\n"))
    with stopped(guardian_of(process), process.pid):
        assert eventually(lambda: boot_time() > process._launch.lease.until + 0.2)  # type: ignore[union-attr]
    ran = follow(process)
    assert (ran.exit.code, ran.exit.lapsed) == (-signal.SIGKILL, True)


def test_a_stopped_guardian_is_woken_and_one_that_is_stopped_again_is_killed_with_its_agent(folder: Path) -> None:
    process = leased(folder, DEAF, PATIENCE_S)
    guardian, agent = guardian_of(process), process.pid
    with stopped(guardian):
        process.renew(boot_time() + PATIENCE_S)
        assert eventually(lambda: state(guardian) != b"T")
        assert lives(agent)
    with stopped(guardian):  # as one is that is traced
        process.renew(boot_time() + PATIENCE_S)
        ran = follow(process)
    assert ran.exit.code == -signal.SIGKILL
    assert eventually(lambda: not (lives(agent) or lives(guardian)))
