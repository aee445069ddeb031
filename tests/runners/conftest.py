from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

import pytest
from hypothesis import settings

from teamchat.runners.base import StopRule
from teamchat.runners.child.guardian import send_signal
from teamchat.runners.child.process import ChildProcess
from teamchat.runners.child.running import MAX_OUTPUT_BYTES, Launch
from tests.leftovers import marked
from tests.runners.processes import Pids, lives

settings.register_profile("fuzz", max_examples=10_000, database=None, deadline=None)  # of `make fuzz`


class Start(Protocol):
    """Starts a real process under its guardian; what still runs at the test's end is killed."""

    def __call__(
        self,
        argv: tuple[str, ...],
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        scratch: Path | None = None,
        stop: StopRule | None = None,
        max_output: int = MAX_OUTPUT_BYTES,
    ) -> ChildProcess: ...


@pytest.fixture
def pids(tmp_path: Path) -> Iterator[Pids]:
    found = Pids(tmp_path / "pids")
    yield found
    for pid in found.alive():  # only when a test has failed
        send_signal(pid, signal.SIGKILL)


@pytest.fixture
def start(tmp_path: Path, pids: Pids) -> Iterator[Start]:
    started: list[ChildProcess] = []

    def run(
        argv: tuple[str, ...],
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        scratch: Path | None = None,
        stop: StopRule | None = None,
        max_output: int = MAX_OUTPUT_BYTES,
    ) -> ChildProcess:
        process = ChildProcess(
            Launch(
                argv=argv,
                cwd=cwd or tmp_path,
                env=marked({"PATH": os.environ["PATH"], "AGENT_PIDS": str(pids.file)}) if env is None else env,
                stdin=stdin,
                folder=tmp_path / f"turn{len(started)}",
                scratch=scratch,
                stop=stop or StopRule(),
                max_output=max_output,
            )
        )
        started.append(process)
        return process

    yield run
    for process in started:
        if process.exit is None and process.pid and lives(process.pid):
            process.stop(hard=True)
