"""A pytest plugin: a run fails if a process that it started still lives when all its tests are over.

Every process of a run inherits a mark in its environment, which Linux shows in /proc; where there is no /proc, nothing
is looked for. The workers of pytest-xdist carry the mark too, and have ended by the time that is looked at.
"""

from __future__ import annotations

import os
import signal
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from teamchat.runners.child.guardian import send_signal

MARK = "TEAMCHAT_TEST_RUN"
TEST = "PYTEST_CURRENT_TEST"
PATIENCE_S = 60.0  # guardians of what a test has killed take two seconds; a busy machine gets more
FAILED = 1
LEFT = pytest.StashKey[list[str]]()


@dataclass(frozen=True)
class Left:
    pid: int
    command: str
    test: str

    def __str__(self) -> str:
        return f"process {self.pid} ({self.command}), started by {self.test or 'no test'}"


def marked(env: Mapping[str, str]) -> dict[str, str]:
    """An environment that is built from nothing, with the mark of this run in it."""
    return {**env, **{name: os.environ[name] for name in (MARK, TEST) if name in os.environ}}


def alive(mark: str) -> list[Left]:
    """The processes with this mark, but for this one."""
    return [left for left in _all(mark) if left.pid != os.getpid()]


def _all(mark: str) -> Iterator[Left]:
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            env = (folder / "environ").read_bytes().split(b"\0")
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue  # it has ended, or is somebody else's
        if f"{MARK}={mark}".encode() in env:
            test = next((entry for entry in env if entry.startswith(TEST.encode())), b"")
            yield Left(
                int(folder.name),
                b" ".join(words).decode(errors="replace").strip()[:200],
                test.partition(b"=")[2].decode(errors="replace"),
            )


def waited(mark: str, patience_s: float) -> list[Left]:
    """Those that do not end by themselves in that time."""
    until = time.monotonic() + patience_s
    while (left := alive(mark)) and time.monotonic() < until:
        time.sleep(0.05)
    return left


def _controls(config: pytest.Config) -> bool:
    return not hasattr(config, "workerinput")  # which pytest-xdist gives its workers


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    if _controls(config):
        os.environ[MARK] = uuid.uuid4().hex


@pytest.hookimpl(wrapper=True, tryfirst=True)  # around xdist, which ends its workers in here
def pytest_sessionfinish(session: pytest.Session) -> Iterator[None]:
    result = yield
    if _controls(session.config):
        left = waited(os.environ[MARK], PATIENCE_S)
        session.config.stash[LEFT] = [str(one) for one in left]
        for one in left:
            send_signal(one.pid, signal.SIGKILL)
        if left:
            session.exitstatus = FAILED
    return result


def pytest_unconfigure(config: pytest.Config) -> None:
    for words in config.stash.get(LEFT, []):
        print(f"LEFT BEHIND: {words}")
