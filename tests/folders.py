"""A pytest plugin: the folders of a run are in one, which goes with the run, however it ends.

That folder is in memory where there is room, since most of a run waits for disks, and else where temporary files are.
Of a run that fails, the folders go to `.failed-tests` of the checkout, in the place of an earlier run's.
`PYTEST_DEBUG_TEMPROOT` chooses another place, which stays whoever's it is.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from teamchat.runners.child.removal import remove
from tests.program import ROOT

MEMORY, ROOM, FREE = Path("/dev/shm"), 4 << 30, 8 << 30  # bytes that it must have, and the machine's memory
KEPT = ROOT / ".failed-tests"
CHOSEN = "PYTEST_DEBUG_TEMPROOT"
REMOVER = 'read -r done && exit; for seconds in 0 5 25; do sleep $seconds; rm -rf -- "$0"; done'
"""Removes the folder of a run that was killed, and what its workers write to until they notice it."""
RUN = pytest.StashKey[tuple[Path, contextlib.ExitStack]]()
FAILED = pytest.StashKey[bool]()


def available(meminfo: str) -> int:
    """The bytes of memory that programs can have without swapping, as Linux estimates it; 0 where it does not."""
    lines = dict(line.partition(":")[::2] for line in meminfo.splitlines())
    return int(lines.get("MemAvailable", "0 kB").split()[0]) << 10


def has_room(folder: Path, memory: int) -> bool:
    """Whether a folder in memory lets programs run and has `ROOM`, and the machine more than `FREE` of memory."""
    if sys.platform != "linux" or memory <= FREE or not os.access(folder, os.W_OK | os.X_OK):
        return False
    system = os.statvfs(folder)
    return system.f_bavail * system.f_frsize >= ROOM and not system.f_flag & os.ST_NOEXEC


def place(*, in_memory: bool) -> Path:
    fits = in_memory and has_room(MEMORY, available(Path("/proc/meminfo").read_text(encoding="utf-8")))
    return MEMORY if fits else Path(tempfile.gettempdir())


@contextlib.contextmanager
def folder_of_a_run(where: Path) -> Iterator[Path]:
    """A new folder there, which is removed at the end, also where this process is killed."""
    folder = Path(tempfile.mkdtemp(prefix="teamchat-tests-", dir=where))
    remover = subprocess.Popen(
        ["/bin/sh", "-c", REMOVER, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={"PATH": os.defpath},  # without the mark that `leftovers` looks for
        start_new_session=True,
    )
    try:
        yield folder
    finally:
        remove(folder)
        if not folder.exists():
            remover.communicate(b"done\n")


def keep(folder: Path) -> None:
    """Put the folders of a failed run into the checkout, with the pipes, sockets and holes that a test may leave."""
    remove(KEPT)
    subprocess.run(["cp", "-a", folder, KEPT], stderr=subprocess.DEVNULL, check=False)  # as far as they can be read
    print(f"\nthe folders of the failed tests: {KEPT}")


def pytest_configure(config: pytest.Config) -> None:
    """Make the folder, once for all workers, which inherit its name."""
    if hasattr(config, "workerinput") or CHOSEN in os.environ:
        return
    stack = contextlib.ExitStack()
    real = config.option.markexpr != "not real"  # the sandboxes of the real CLIs expect that their folders are in /tmp
    folder = stack.enter_context(folder_of_a_run(place(in_memory=not real)))
    os.environ[CHOSEN] = str(folder)
    config.stash[RUN] = (folder, stack)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    session.config.stash[FAILED] = exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    if RUN not in config.stash:
        return
    folder, stack = config.stash[RUN]
    if config.stash.get(FAILED, False):
        keep(folder)
    stack.close()
    del os.environ[CHOSEN]
