from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from teamchat.runners.child.guardian import send_signal
from tests.runners.processes import Pids, clocks_wait_for


@pytest.fixture
def pids(world: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pids]:
    """The processes of the agents that the test runs."""
    found = Pids(world / "pids")
    monkeypatch.setenv("AGENT_PIDS", str(found.file))
    yield found
    for pid in found.alive():  # only when a test has failed
        send_signal(pid, signal.SIGKILL)


@pytest.fixture
def _until_it_hangs(pids: Pids, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clocks of turns in this process wait until the agent hangs."""
    clocks_wait_for(pids.hang, monkeypatch)
