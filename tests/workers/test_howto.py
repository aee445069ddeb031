"""The page on workers, followed literally: it kills one worker and the client in between."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.program import ROOT
from tests.workers.hosts import FAST

PAGE = (ROOT / "docs" / "howto" / "workers.md").read_text()
BLOCKS = re.findall(r"```sh\n(.*?)```", PAGE.partition("## The database")[0], re.DOTALL)
END = """
teamchat report
kill $(cat ../alpha/pid); wait $(cat ../alpha/pid); echo "alpha $?"
"""


@pytest.mark.workers
def test_the_page_holds_to_the_letter(database: str, tmp_path: Path) -> None:
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    program = bin_folder / "teamchat"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m teamchat "$@"\n')
    program.chmod(0o755)
    named = "'postgresql:///teamchat?host=/run/postgresql'"
    assert named in BLOCKS[0]
    script = "\n".join(BLOCKS).replace(named, f"'{database}'") + END
    env = {
        **os.environ,
        "PATH": f"{bin_folder}:{os.environ['PATH']}",
        "TEAMCHAT_HOST_CLOCK": FAST,
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@b",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@b",
    }
    work = tmp_path / "work"
    work.mkdir()
    log = (tmp_path / "log").open("w+")
    with (
        log,
        subprocess.Popen(
            ("bash", "-c", script), cwd=work, env=env, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        ) as shell,
    ):
        try:
            code = shell.wait(150)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
        log.seek(0)
        said = log.read()
    assert code == 0, said
    assert "Looked, in" in said
    assert "yes" in said
    assert "alpha 0" in said, said
    assert "\n40\n" in said, said
    assert "40 worktrees merged" in said, said
